"""Keeps forks and the database work of our threads apart.

A database connection that is open in another thread is copied by a fork. The child cannot
close it and must not use it: SQLite then takes the parent's locks for its own and finds the
database locked for ever. Whoever forks can close the connections of threads of his own, but
not of ours: so a fork waits for these, a little while.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

__all__ = ["ForkGate", "no_fork"]

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

    @contextlib.contextmanager
    def no_fork(self) -> Iterator[None]:
        """Be inside while the block runs; may be nested."""
        me = threading.get_ident()
        condition, inside = self._condition, self._inside
        with condition:
            is_outermost = me not in inside
            inside.add(me)
        try:
            yield
        finally:
            if is_outermost:
                with condition:
                    inside.discard(me)
                    condition.notify_all()

    def hold(self) -> None:
        """Before a fork: wait until nobody is inside, except perhaps this thread, and let nobody in."""
        me = threading.get_ident()
        self._condition.acquire()
        self._condition.wait_for(lambda: self._inside <= {me}, PATIENCE)

    def release(self) -> None:
        """After a fork, in the parent."""
        self._condition.release()


_gate = ForkGate()
no_fork = _gate.no_fork

os.register_at_fork(before=_gate.hold, after_in_parent=_gate.release, after_in_child=_gate.renew)
