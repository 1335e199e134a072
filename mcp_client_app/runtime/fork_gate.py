"""Keeps forks and the database work of our threads apart.

A database connection that is open in another thread is copied by a fork. The child cannot
close it and must not use it: SQLite then takes the parent's locks for its own and finds the
database locked for ever. Whoever forks can close the connections of threads of his own, but
not of ours: so a fork waits for these, a little while. A thread that keeps a connection between two
pieces of work stays inside as long, and is asked to leave.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 (its hook takes a lock that ``asked`` needs: it has to come after ours)
import contextlib
import os
import threading
from collections.abc import Callable, Iterator

__all__ = ["ForkGate", "gate", "no_fork"]

PATIENCE = 2.0
"""Seconds that a fork waits for work that does not end."""


class ForkGate:
    """Many threads may be inside at once; a fork waits until nobody is."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Start anew, in a forked child: whoever was inside has stayed in the parent."""
        self._condition = threading.Condition()
        self._inside: set[int] = set()
        self.asked: list[Callable[[], None]] = []
        """Called before a fork, in whichever thread: have those leave that stay inside."""
        self.is_wanted = False
        """Whether a fork waits: leave as soon as you can."""

    def enter(self) -> bool:
        """Have this thread inside until it leaves; returns whether it was not yet."""
        me = threading.get_ident()
        with self._condition:
            is_outermost = me not in self._inside
            self._inside.add(me)
        return is_outermost

    def leave(self) -> None:
        """Have this thread outside; it may be there already."""
        with self._condition:
            self._inside.discard(threading.get_ident())
            self._condition.notify_all()

    @contextlib.contextmanager
    def no_fork(self) -> Iterator[None]:
        """Be inside while the block runs; may be nested."""
        is_outermost = self.enter()
        try:
            yield
        finally:
            if is_outermost:
                self.leave()

    def hold(self) -> None:
        """Before a fork: wait until nobody is inside, except perhaps this thread, and let nobody in."""
        me = threading.get_ident()
        self.is_wanted = True
        for ask in list(self.asked):
            ask()
        self._condition.acquire()
        self._condition.wait_for(lambda: self._inside <= {me}, PATIENCE)

    def release(self) -> None:
        """After a fork, in the parent."""
        self.is_wanted = False
        self._condition.release()


gate = ForkGate()
"""The one of this process."""
no_fork = gate.no_fork

os.register_at_fork(before=gate.hold, after_in_parent=gate.release, after_in_child=gate.renew)
