"""Tasks that nobody awaits: kept from being collected, and heard of if they fail."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

logger = logging.getLogger(__name__)

__all__ = ["absorb_cancellation", "spawn"]

_running: set[asyncio.Task[Any]] = set()
"""The loop itself keeps only weak references."""


def spawn(work: Coroutine[Any, Any, Any], purpose: str) -> asyncio.Task[Any]:
    """Start a task on the running loop; ``purpose`` names it in the log should it fail."""
    task = asyncio.get_running_loop().create_task(work, name=purpose)
    _running.add(task)
    task.add_done_callback(_finished)
    return task


def _finished(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("%s failed.", task.get_name(), exc_info=error)


def absorb_cancellation() -> None:
    """Have the current task go on although it was cancelled: that was to make it come to its end."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
