"""Waiting for servers without keeping a request waiting: so long and no longer.

What takes longer goes on in its thread; the page says so, and the state tells the rest.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from django.db import connections

from mcp_client_app.exceptions import MCPClientError

__all__ = ["Outcome", "Work", "run_bounded"]

T = TypeVar("T")
Work = Callable[[float], T]
"""Something to do, given the seconds that are left."""

MAX_THREADS: Final = 32
"""Further work waits for a free thread."""


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What became of one piece of work."""

    value: T | None = None
    error: MCPClientError | None = None
    is_pending: bool = False
    """It was still running, or waiting for its turn, when patience ended."""


def run_bounded(work: Mapping[str, Work[T]], patience: float) -> dict[str, Outcome[T]]:
    """Do all of ``work``, in parallel; return after ``patience`` seconds at the latest.

    Within a transaction the work is done here and in turn: another thread would not see what
    the transaction has written, or wait for its end.

    Raises:
        Exception: Whatever but an ``MCPClientError`` a piece of work has raised in time.
    """
    queue = _Queue({name: (Future(), function) for name, function in work.items()}, patience)
    if any(connection.in_atomic_block for connection in connections.all(initialized_only=True)):
        queue.work_off()
    else:
        for _ in range(min(MAX_THREADS, len(work))):
            # Each thread takes over the caller's context, such as its trace. No exit waits for a daemon.
            target = contextvars.copy_context().run
            args = (queue.work_off_and_hang_up,)
            threading.Thread(target=target, args=args, name="mcp-admin-request", daemon=True).start()
    return queue.outcomes()


class _Queue(Generic[T]):
    """Pieces of work for any number of threads."""

    def __init__(self, work: Mapping[str, tuple[Future[T], Work[T]]], patience: float) -> None:
        self._futures = {name: future for name, (future, _) in work.items()}
        self._waiting = list(work.values())
        self._waiting.reverse()
        self._end = time.monotonic() + patience

    def work_off(self) -> None:
        """Do what nobody else has begun, while there is time."""
        while (left := self._left()) > 0:
            try:
                future, function = self._waiting.pop()
            except IndexError:
                return
            try:
                future.set_result(function(left))
            except BaseException as error:  # noqa: BLE001 - handed over: it is raised where the future is read
                future.set_exception(error)

    def work_off_and_hang_up(self) -> None:
        """Do the same in a thread of its own, to which its database connections belong."""
        try:
            self.work_off()
        finally:
            connections.close_all()

    def outcomes(self) -> dict[str, Outcome[T]]:
        """Wait while there is time; return what became of everything."""
        wait(self._futures.values(), max(0.0, self._left()))
        return {name: _outcome(future) for name, future in self._futures.items()}

    def _left(self) -> float:
        return self._end - time.monotonic()


def _outcome(future: Future[T]) -> Outcome[T]:
    if not future.done():
        return Outcome(is_pending=True)
    try:
        return Outcome(value=future.result())
    except MCPClientError as error:
        return Outcome(error=error)
