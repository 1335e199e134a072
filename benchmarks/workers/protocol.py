"""What the harness and its workers say to each other: one JSON object a line.

A worker connects, says ``{"ready": {...}}``, and answers each order with a sample, until its standard
input ends. Needs nothing but the standard library.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import IO, Any

__all__ = ["Channel", "Meter", "Order", "Sample", "Target", "target_of"]


@dataclass(frozen=True)
class Target:
    """The server that a worker talks to."""

    transport: str
    """``stdio`` or ``http``."""
    era: str
    """``2025-11-25`` or ``2026-07-28``."""
    command: tuple[str, ...] = ()
    url: str = ""

    @property
    def is_modern(self) -> bool:
        """Whether the stateless era is spoken."""
        return self.era == "2026-07-28"


@dataclass(frozen=True)
class Order:
    """Call a tool from ``level`` callers at once, each one call after the other, for ``seconds``."""

    level: int
    seconds: float
    tool: str = "echo"
    arguments: dict[str, Any] = field(default_factory=lambda: {"text": "hello"})


@dataclass(frozen=True)
class Sample:
    """What came of an order."""

    calls: int
    seconds: float
    cpu_us: float
    """CPU time of the worker for each call, system time included, its server not."""
    p50_us: float
    p99_us: float

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls / self.seconds if self.seconds else 0.0


def target_of(argument: str) -> Target:
    """Read the target from the worker's command line."""
    given = json.loads(argument)
    return Target(given["transport"], given["era"], tuple(given["command"]), given["url"])


class Channel:
    """The worker's side of the conversation; nothing that a library prints can get into it."""

    def __init__(self) -> None:
        self._out: IO[str] = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    def say(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    def ready(self, **facts: Any) -> None:
        """Tell that orders can be taken."""
        self.say({"ready": facts})

    def answer(self, sample: Sample) -> None:
        """Send the outcome of an order."""
        self.say({"sample": asdict(sample)})


class Meter:
    """Collects the durations of calls, and what they cost."""

    def __init__(self, seconds: float) -> None:
        # What importing and connecting left behind is not this order's garbage: a full collection costs
        # as much as hundreds of calls, and would hit some order by chance. What calls leave is collected
        # at their cost.
        gc.collect()
        self._cpu = cpu_seconds()
        self._started = time.perf_counter()
        self.until = self._started + seconds

    def sample(self, durations: Sequence[float]) -> Sample:
        """Return what was measured; ``durations`` are seconds, one for each call."""
        seconds = time.perf_counter() - self._started
        cpu = cpu_seconds() - self._cpu
        ordered = sorted(durations)
        return Sample(
            calls=len(ordered),
            seconds=seconds,
            cpu_us=cpu / len(ordered) * 1e6,
            p50_us=ordered[len(ordered) // 2] * 1e6,
            p99_us=ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] * 1e6,
        )


def cpu_seconds() -> float:
    """Return the CPU time that this process has used, all threads together."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
