"""Managers and the process they live in: new in a forked child, closed at its end.

A fork copies everything but the threads: whoever was alive in the parent is told to forget.
"""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from typing import Protocol

logger = logging.getLogger(__name__)

__all__ = ["watch"]


class Mortal(Protocol):
    """What has a life of its own in each process."""

    def forget(self) -> None:
        """Be as new: this is a forked child."""

    def close_at_exit(self) -> None:
        """Close, without an executor and without a new thread: the process ends."""


def watch(mortal: Mortal) -> None:
    """Tell it of forks and of the end, as long as it exists."""
    _alive.add(mortal)


_alive: weakref.WeakSet[Mortal] = weakref.WeakSet()


def _forget_all() -> None:
    for mortal in list(_alive):
        mortal.forget()


def _close_all() -> None:
    for mortal in list(_alive):
        try:
            mortal.close_at_exit()
        except Exception:  # the others have servers of their own
            logger.exception("A manager could not be closed at exit.")


os.register_at_fork(after_in_child=_forget_all)
atexit.register(_close_all)
