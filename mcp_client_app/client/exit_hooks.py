"""Has things closed when a process ends, whichever way it ends in good order.

``atexit`` covers ordinary processes; children of ``multiprocessing`` leave by ``os._exit``
and run its finalizers only; Celery's pool processes send a signal. What was killed hard
is the reaper's.
"""

from __future__ import annotations

import logging
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

logger = logging.getLogger(__name__)

__all__ = ["AFTER_MANAGERS", "register"]

PRIORITY = 100
"""Before multiprocessing's own finalizers, which end its queues and managers."""
AFTER_MANAGERS = PRIORITY - 1
"""For what the calls that a manager ends leave to be done."""

_closes: dict[weakref.WeakMethod[Callable[[], None]], int] = {}
"""What is to be called, with its priority."""
_hooked = 0
"""The process in which multiprocessing's finalizers run them."""


def register(close: Callable[[], None], *, priority: int = PRIORITY) -> None:
    """Have ``close`` called at the end of this process, besides ``atexit``; it must bear being called twice.

    Call it in the process that is meant, after any fork. Registering it again changes nothing.

    Args:
        close: A method; of an object that nobody keeps any more, nothing is called.
        priority: Higher ones come first.
    """
    _closes[weakref.WeakMethod(close, _drop)] = priority
    _hook()


def _drop(gone: weakref.WeakMethod[Callable[[], None]]) -> None:
    _closes.pop(gone, None)


def _hook() -> None:
    global _hooked
    process = sys.modules.get("multiprocessing.process")
    if _hooked != os.getpid() and process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize  # loaded already: this is one of its children

        Finalize(None, _close_all, exitpriority=PRIORITY)
        _hooked = os.getpid()
    celery = sys.modules.get("celery.signals")
    if celery is not None:
        for signal in (celery.worker_process_shutdown, celery.worker_shutdown):
            signal.connect(_close_all, weak=False, dispatch_uid=__name__)


def _close_all(**kwargs: Any) -> None:
    for reference, _ in sorted(_closes.items(), key=lambda item: -item[1]):
        close = reference()
        if close is None:
            continue
        try:
            close()
        except Exception:
            logger.exception("Something could not be closed at the end of the process.")
