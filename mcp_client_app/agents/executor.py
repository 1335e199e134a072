"""Executes runs in this process: a bounded number in the background, or one that somebody waits for."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Coroutine
from typing import Any, Final

from mcp_client_app.agents.loop import AgentsLoop, get_agents_loop
from mcp_client_app.agents.requirements import load
from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.conf import app_settings
from mcp_client_app.exceptions import BusyError

logger = logging.getLogger(__name__)

__all__ = ["aexecute_run", "drive_here", "execute_run", "submit_run", "submit_run_again"]

REMEMBERED: Final = 1000
"""Runs that go on when there is a place for them, if they are there still."""


class _Places:
    """Who is executed in the background."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew, in a forked child: what was executed goes on in the parent."""
        self._lock = threading.Lock()
        self._taken = 0
        self._left: deque[str] = deque(maxlen=REMEMBERED)

    def take(self, run_id: str, *, remember: bool) -> bool:
        """Take a place; if there is none, perhaps remember the run."""
        with self._lock:
            if self._taken < app_settings.RUN_WORKERS:
                self._taken += 1
                return True
            if remember and run_id not in self._left:
                self._left.append(run_id)
            return False

    def next(self) -> str | None:
        """Give a place back; returns the run that has it now, if one was left out."""
        with self._lock:
            if self._left and self._taken <= app_settings.RUN_WORKERS:
                return self._left.popleft()
            self._taken -= 1
            return None


_places = _Places()
os.register_at_fork(after_in_child=_places.forget)


def submit_run(run_id: str) -> None:
    """Have a run executed by this process, in the background.

    Raises:
        BusyError: It executes as many as it may (``MCP_CLIENT_RUN_WORKERS``).
        ConfigurationError: pydantic-ai is not installed.
    """
    # A new one that is refused must not begin later: whoever ordered it is told that there is no run.
    _submit(run_id, remember=False)


def submit_run_again(run_id: str) -> None:
    """Have a run go on that has begun already; if there is no place, as soon as there is one.

    Raises:
        BusyError, ConfigurationError: As for ``submit_run``.
    """
    _submit(run_id, remember=True)


def execute_run(run_id: object) -> bool:
    """Execute a run, or go on with it, and wait until it comes to rest; for workers such as Celery's.

    Returns:
        Whether it was to be had: False if it is over, waits for people, or has another worker.

    Raises:
        RunStateError: Another worker has taken it over meanwhile.
    """
    forbid_running_loop("execute_run")
    loop = get_agents_loop()
    done: bool = loop.run(lambda: drive_here(run_id, loop))
    return done


async def aexecute_run(run_id: object) -> bool:
    """Async twin of ``execute_run``."""
    loop = get_agents_loop()
    done: bool = await loop.arun(lambda: drive_here(run_id, loop))
    return done


def drive_here(run_id: object, loop: AgentsLoop, **options: Any) -> Coroutine[Any, Any, bool]:
    """Return the coroutine that drives a run; loads what it needs."""
    work: Coroutine[Any, Any, bool] = load("runner").drive(run_id, loop, **options)
    return work


def _submit(run_id: str, *, remember: bool) -> None:
    load("runner")
    if not _places.take(run_id, remember=remember):
        raise BusyError(
            f"This process executes {app_settings.RUN_WORKERS} runs already; try again later.",
            retry_after=5.0,
        )
    try:
        _begin(run_id)
    except BaseException:
        _follow()
        raise


def _begin(run_id: str) -> None:
    loop = get_agents_loop()
    loop.spawn(lambda: drive_here(run_id, loop), lambda: _follow(loop))


def _follow(loop: AgentsLoop | None = None) -> None:
    """Begin the next run in the place of one that is over, or could not be begun; none if the loop ends."""
    while (run_id := _places.next()) is not None:
        if loop is not None and loop.is_closing:
            continue
        try:
            _begin(run_id)
        except Exception:
            logger.exception("The run %s could not be begun.", run_id)
        else:
            return
