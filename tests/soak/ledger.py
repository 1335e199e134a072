"""What callers were told of their writes, held against what was really done.

Claims go to a file, as the journal does: in memory they would grow with the time of the soak.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

# What a caller may be told of a write, and how often it may then have been done; for a ``put`` on a trusted
# server, which may be repeated after a loss, once more.
ANSWERED, REPLAYED, UNKNOWN, NOT_SENT = "answered", "replayed", "unknown", "not_sent"
_BOUNDS = {ANSWERED: (1, 1), REPLAYED: (1, 2), UNKNOWN: (0, 1), NOT_SENT: (0, 0)}


class Ledger:
    """Takes claims from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("w")
        self._lock = threading.Lock()

    def claim(self, token: str, outcome: str, *, repeatable: bool, words: str = "") -> None:
        """Note what the caller of a write was told."""
        words = " ".join(words.split())
        with self._lock:
            self._file.write(f"{token} {outcome} {int(repeatable)} {words}\n")

    def complaints(self, journal: Path) -> Iterator[str]:
        """Compare with the journal, once nobody writes any more."""
        self._file.close()
        done = Counter(journal.read_text().split())
        for line in self._path.read_text().splitlines():
            token, outcome, repeatable, words = line.split(" ", 3)
            least, most = _BOUNDS[outcome]
            if outcome == UNKNOWN and repeatable == "1":
                most = 2
            times = done.pop(token, 0)
            if not least <= times <= most:
                yield f"the write {token} was done {times} times, its caller was told: {outcome} {words}"
        for token, times in done.items():
            yield f"the write {token} was done {times} times, and nobody knows its caller"
