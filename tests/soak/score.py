"""What has happened so far: counts, complaints, and the calls under way."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

MOST_COMPLAINTS = 50
GRACE = 30.0
"""Seconds after a call's own limit until it counts as hanging; the machine may be busy."""


@dataclass(frozen=True)
class Running:
    """One call under way."""

    what: str
    since: float
    limit: float

    def hangs(self, now: float) -> bool:
        return now > self.since + self.limit + GRACE


class Score:
    """Shared by everybody."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        """By kind of action, how many were answered rightly."""
        self.errors: Counter[str] = Counter()
        """By code, how many calls of disturbed servers failed as they may."""
        self.disturbances: Counter[str] = Counter()
        self.complaints: list[str] = []
        """Each fails the soak."""
        self.running: dict[int, Running] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def under_way(self, what: str, limit: float) -> Iterator[None]:
        """Note a call for as long as it takes."""
        number = next(self._numbers)
        self.running[number] = Running(what, time.monotonic(), limit)
        try:
            yield
        finally:
            del self.running[number]

    def right(self, kind: str) -> None:
        with self._lock:
            self.calls[kind] += 1

    def failed(self, code: str) -> None:
        with self._lock:
            self.errors[code] += 1

    def disturbed(self, kind: str) -> None:
        with self._lock:
            self.disturbances[kind] += 1

    def complain(self, text: str) -> None:
        with self._lock:
            if len(self.complaints) < MOST_COMPLAINTS:
                self.complaints.append(text)

    @property
    def total(self) -> int:
        """How many calls have come to an end."""
        with self._lock:
            return self.calls.total() + self.errors.total()


class LogWatch(logging.Handler):
    """Complains of every error that the app logs: faults of ours are logged as such."""

    def __init__(self, score: Score) -> None:
        super().__init__(logging.ERROR)
        self._score = score

    def emit(self, record: logging.LogRecord) -> None:
        self._score.complain(f"logged by {record.name}: {logging.Formatter().format(record)}")
