"""How soon to read the lists again after a change: at once for a few, ever later for very many.

Pure; the clock is an argument. A server that announces a change with each reading would otherwise be read
for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Pace"]

DEBOUNCE = 0.2
"""Seconds to wait after a change: many changes in a row cost one reading."""
FREE = 5
"""Readings in a row without a longer wait."""
LONGEST = 30.0
CALM = 60.0
"""Seconds without a reading after which the next one is the first of a row again."""


@dataclass(slots=True)
class Pace:
    """The memory of the latest readings. Times in seconds."""

    readings: int = 0
    read_at: float = float("-inf")

    def next_pause(self, now: float) -> float:
        """Note that another reading is due; returns how long to wait before it."""
        if now - self.read_at > CALM:
            self.readings = 0
        self.readings += 1
        pause = DEBOUNCE * 2.0 ** max(0, min(self.readings - FREE, 10))
        self.read_at = now + min(pause, LONGEST)
        return min(pause, LONGEST)
