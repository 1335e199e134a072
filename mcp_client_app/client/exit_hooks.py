"""Has things closed when a process ends, whichever way it ends in good order.

``atexit`` covers ordinary processes; children of ``multiprocessing`` leave by ``os._exit``
and run its finalizers only; Celery's pool processes send a signal. What was killed hard
is the reaper's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["AFTER_MANAGERS", "register"]

PRIORITY = 100
"""Before multiprocessing's own finalizers, which end its queues and managers."""
AFTER_MANAGERS = PRIORITY - 1
"""For what the calls that a manager ends leave to be done."""


def register(close: Callable[[], None], *, priority: int = PRIORITY) -> None:
    """Have ``close`` called at the end of this process, besides ``atexit``; it must bear being called twice.

    Call it in the process that is meant, after any fork.
    """
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize  # loaded already: this is one of its children

        Finalize(None, close, exitpriority=priority)
    celery = sys.modules.get("celery.signals")
    if celery is not None:

        def on_shutdown(**kwargs: Any) -> None:
            close()

        celery.worker_process_shutdown.connect(on_shutdown, weak=False)
        celery.worker_shutdown.connect(on_shutdown, weak=False)
