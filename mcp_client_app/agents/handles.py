"""The runs that this process executes, so that they can be stopped from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

__all__ = ["RunHandle", "cancel_here", "handles"]

Reason = Literal["", "cancelled", "lost"]


class RunHandle:
    """Stops one run."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        self.reason: Reason = ""
        """Why the run is to stop: somebody wants it, or another worker has it. Empty while it goes on."""

    def cancel(self) -> None:
        """End the run as cancelled."""
        self.reason = self.reason or "cancelled"
        self._stop()

    def lose(self) -> None:
        """Stop, and write nothing more."""
        self.reason = self.reason or "lost"
        self._stop()


class Handles:
    """Run id to handles: of the worker that has the run, and of those that try to get it."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew, in a forked child: the runs have stayed in the parent."""
        self._lock = threading.Lock()
        self._handles: dict[str, list[RunHandle]] = {}

    def add(self, run_id: str, handle: RunHandle) -> None:
        """Make a run known that is to begin here."""
        with self._lock:
            self._handles.setdefault(run_id, []).append(handle)

    def drop(self, run_id: str, handle: RunHandle) -> None:
        """Forget a run that has come to rest, or was not to be had."""
        with self._lock:
            left = [each for each in self._handles.pop(run_id, ()) if each is not handle]
            if left:
                self._handles[run_id] = left

    def find(self, run_id: str) -> list[RunHandle]:
        """Return the handles of a run, if this process executes it."""
        with self._lock:
            return list(self._handles.get(run_id, ()))


handles = Handles()
"""Those of this process."""


def cancel_here(run_id: str) -> None:
    """Stop a run at once if this process executes it; others notice within a third of the lease."""
    for handle in handles.find(run_id):
        handle.cancel()
