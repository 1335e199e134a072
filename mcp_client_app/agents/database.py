"""Database work for coroutines of the agents' loop: a few threads that leave no connection open.

What a coroutine hands over with ``sync_to_async`` runs, by default, on the one thread of the process
for such work; whoever waits there for an agent would wait for ever. In a lane it runs on a thread of ours.

Work comes in bursts, between the answers of a model. A lane keeps its connections for as long as
work follows work, and closes them when it has rested, when its last run ends, or when something has
gone wrong with one. ``CONN_MAX_AGE`` makes no difference: to connect once for each burst is cheap.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.db import connections

from mcp_client_app.runtime.fork_gate import gate

__all__ = ["Lanes", "is_lane"]

LANES = 4
REST: Final = 0.25
"""Seconds without work after which connections are closed."""

T = TypeVar("T")
_here = threading.local()


class _Lane(ThreadPoolExecutor):
    """One thread, with the database connections that its work opens."""

    def __init__(self, number: int, at_end: Callable[[], None]) -> None:
        super().__init__(1, f"mcp-client-agents-db-{number}", setattr, (_here, "is_lane", True))
        self._at_end = at_end
        self._resting: asyncio.TimerHandle | None = None
        self.users = 0
        """Who has taken the lane."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        try:
            future = super().submit(_done, fn, *args, **kwargs)
        except RuntimeError:
            # The interpreter ends, and has ended such threads before anybody else was told.
            self._at_end()
            raise asyncio.CancelledError from None
        self._stop_resting()
        with contextlib.suppress(RuntimeError):  # on no loop: the end of the run closes them
            self._resting = asyncio.get_running_loop().call_later(REST, self.let_go)
        return future

    def let_go(self) -> Future[None]:
        """Have the connections closed after the work that is there; from any thread."""
        self._stop_resting()
        try:
            return super().submit(_close)
        except RuntimeError:  # the threads have ended, and their connections with them
            done: Future[None] = Future()
            done.set_result(None)
            return done

    def _stop_resting(self) -> None:
        resting, self._resting = self._resting, None
        if resting is not None:
            resting.cancel()


class Lanes:
    """The threads of one agents' loop, given out in turn."""

    def __init__(self, at_end: Callable[[], None]) -> None:
        """Make them.

        Args:
            at_end: Called, in the coroutine's thread, when work is refused because the process ends.
        """
        self._at_end = at_end
        self._lanes = [_Lane(number, at_end) for number in range(LANES)]
        self._turn = itertools.cycle(self._lanes[:])
        gate.asked.append(self._let_go)

    @contextlib.asynccontextmanager
    async def taken(self, *, alone: bool = False) -> AsyncIterator[None]:
        """Have all thread-sensitive work of this task, and of those that it starts, done in one lane.

        Args:
            alone: In one that nobody else has, and that ends with this.
        """
        context = ThreadSensitiveContext()
        lane = self._extra() if alone else next(self._turn)
        # What ``async with ThreadSensitiveContext(executor=...)`` does; older releases have no such argument.
        SyncToAsync.context_to_thread_executor[context] = lane  # type: ignore[assignment, unused-ignore]
        token = SyncToAsync.thread_sensitive_context.set(context)
        lane.users += 1
        try:
            yield
        finally:
            SyncToAsync.thread_sensitive_context.reset(token)
            lane.users -= 1
            if not lane.users:
                closed = lane.let_go()
                if alone:
                    self._lanes.remove(lane)
                    lane.shutdown(wait=False)
                await asyncio.shield(asyncio.wrap_future(closed))

    def close(self, *, wait: bool = True) -> None:
        """End the threads."""
        with contextlib.suppress(ValueError):  # twice, or in a forked child
            gate.asked.remove(self._let_go)
        self._let_go()
        for lane in list(self._lanes):
            lane.shutdown(wait=wait)

    def _extra(self) -> _Lane:
        lane = _Lane(len(self._lanes), self._at_end)
        self._lanes.append(lane)
        return lane

    def _let_go(self) -> None:
        for lane in list(self._lanes):
            lane.let_go()


def is_lane() -> bool:
    """Say whether this thread is a lane."""
    return getattr(_here, "is_lane", False)


def _done(work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    gate.enter()
    try:
        return work(*args, **kwargs)
    finally:
        if gate.is_wanted or not _are_worth_keeping():
            _close()


def _are_worth_keeping() -> bool:
    """Say whether there are connections, and nothing has gone wrong with any."""
    opened = [each for each in connections.all(initialized_only=True) if each.connection is not None]
    return bool(opened) and not any(each.errors_occurred for each in opened)


def _close() -> None:
    try:
        connections.close_all()
    finally:
        gate.leave()
