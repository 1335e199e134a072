"""Database work for coroutines of the agents' loop: a few threads that leave no connection open.

What a coroutine hands over with ``sync_to_async`` runs, by default, on the one thread of the process
for such work; whoever waits there for an agent would wait for ever. In a lane it runs on a thread of ours.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.db import connections

from mcp_client_app.runtime.fork_gate import no_fork

__all__ = ["Lanes"]

LANES = 4

T = TypeVar("T")


class _Lane(ThreadPoolExecutor):
    """One thread; the database connections that a piece of work opens are closed with it."""

    def __init__(self, number: int, at_end: Callable[[], None]) -> None:
        super().__init__(1, thread_name_prefix=f"mcp-client-agents-db-{number}")
        self._at_end = at_end

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        try:
            return super().submit(_closing, fn, *args, **kwargs)
        except RuntimeError:
            # The interpreter ends, and has ended such threads before anybody else was told.
            self._at_end()
            raise asyncio.CancelledError from None


class Lanes:
    """The threads of one agents' loop, given out in turn."""

    def __init__(self, at_end: Callable[[], None]) -> None:
        """Make them.

        Args:
            at_end: Called, in the coroutine's thread, when work is refused because the process ends.
        """
        self._lanes = [_Lane(number, at_end) for number in range(LANES)]
        self._turn = itertools.cycle(self._lanes)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have all thread-sensitive work of this task, and of those that it starts, done in one lane."""
        context = ThreadSensitiveContext()
        # What ``async with ThreadSensitiveContext(executor=...)`` does; older releases have no such argument.
        SyncToAsync.context_to_thread_executor[context] = next(self._turn)  # type: ignore[assignment, unused-ignore]
        token = SyncToAsync.thread_sensitive_context.set(context)
        try:
            yield
        finally:
            SyncToAsync.thread_sensitive_context.reset(token)

    def close(self, *, wait: bool = True) -> None:
        """End the threads."""
        for lane in self._lanes:
            lane.shutdown(wait=wait)


def _closing(work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    with no_fork():
        try:
            return work(*args, **kwargs)
        finally:
            connections.close_all()
