"""The event loop that agents run on: one thread per process, apart from the one of the connections.

A model's HTTP client belongs to the loop that first used it, so models are kept here and used
nowhere else, and whoever wants an agent hands it over: from a thread, or from a loop of his own.
Runs start in an empty context; nothing of a request lives on in them.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mcp_client_app.agents.database import Lanes, is_lane
from mcp_client_app.agents.handles import handles
from mcp_client_app.client import exit_hooks
from mcp_client_app.client.loop import EventRelay, LoopThread
from mcp_client_app.exceptions import ManagerClosedError, RunStateError
from mcp_client_app.runtime import before_close
from mcp_client_app.runtime.environment import refuse_unsuitable

logger = logging.getLogger(__name__)

__all__ = ["AgentsLoop", "close_agents_loop", "get_agents_loop"]

T = TypeVar("T")
Start = Callable[[], Coroutine[Any, Any, T]]


class AgentsLoop:
    """The loop of one process, with what lives on it."""

    def __init__(self) -> None:
        self._thread = LoopThread("mcp-client-agents")
        self._lanes = Lanes(self._leave)
        self._spawned: set[asyncio.Task[Any]] = set()
        self._closers: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self.is_closing = False
        """Whether the process, or a test, ends: then runs are left to whoever finds them."""
        self.kept: dict[Any, Any] = {}
        """What is kept for later runs, by whoever; only touched on the loop."""
        # Before the connections go: a run that ends now ends no call twice.
        exit_hooks.register(self.close_at_exit, priority=exit_hooks.PRIORITY + 1)

    @property
    def is_alive(self) -> bool:
        """Whether runs can be started: in this process, and not closed."""
        return not self.is_closing and self._thread.is_alive

    def run(self, start: Start[T], relay: EventRelay | None = None) -> T:
        """Run a coroutine and wait in this thread; events of ``relay`` are delivered here."""
        return self._thread.run(self._in_lane(start), relay)

    async def arun(self, start: Start[T], relay: EventRelay | None = None) -> T:
        """Run a coroutine and wait on the caller's loop; events of ``relay`` are delivered there."""
        return await self._thread.arun(self._in_lane(start), relay)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run a callback on the loop; from any thread."""
        self._thread.call_soon(callback)

    def spawn(self, start: Start[Any], done: Callable[[], None] | None = None) -> None:
        """Begin a coroutine that nobody waits for; ``done`` is called on the loop when it has ended.

        Raises:
            ManagerClosedError: The loop was closed.
        """
        if not self.is_alive:
            raise ManagerClosedError
        work = self._in_lane(start)

        def begin() -> None:
            task = self._thread.loop.create_task(work(), context=contextvars.Context())
            self._spawned.add(task)
            task.add_done_callback(ended)

        def ended(task: asyncio.Task[Any]) -> None:
            self._spawned.discard(task)
            error = None if task.cancelled() else task.exception()
            if isinstance(error, RunStateError):
                logger.warning("A run was given up here: %s", error)
            elif error is not None:
                logger.error("Something on the agents' loop failed.", exc_info=error)
            if done is not None:
                done()

        self._thread.call_soon(begin)

    def at_close(self, closer: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have something awaited on the loop before it stops."""
        self._closers.append(closer)

    def _in_lane(self, start: Start[T]) -> Start[T]:
        # A run may be begun by what another one has done in a lane, such as an output filter that asks
        # an agent: it waits there, and must not wait for itself.
        alone = is_lane()

        async def work() -> T:
            async with self._lanes.taken(alone=alone):
                return await start()

        return work

    def _leave(self) -> None:
        self.is_closing = True

    # The end ---------------------------------------------------------------------------

    def close(self) -> None:
        """Stop what runs, close what is kept, end the threads. Whoever waits gets ``ManagerClosedError``."""
        self.is_closing = True
        if self._thread.is_alive:
            with contextlib.suppress(ManagerClosedError):  # somebody else was faster
                self._thread.run(self._close_kept)
        self._thread.stop()
        self._lanes.close()

    def close_at_exit(self) -> None:
        """Close at the end of the process; twice does no harm."""
        self.is_closing = True
        self._thread.stop(at_exit=True)
        self._lanes.close(wait=False)

    def forget(self) -> None:
        """After a fork, in the child: nothing of the parent's is touched."""
        self.is_closing = True
        self._thread.forget()

    async def _close_kept(self) -> None:
        for closer in self._closers:
            try:
                await closer()
            except Exception:
                logger.exception("Something that agents kept could not be closed.")
        self.kept.clear()
        # Transports close one turn of the loop after they are told to.
        await asyncio.sleep(0)
        await asyncio.sleep(0)


_lock = threading.Lock()
_loop: AgentsLoop | None = None


def get_agents_loop() -> AgentsLoop:
    """Return this process's loop; made on first use, and made anew after it was closed.

    Raises:
        ConfigurationError: Nothing of this kind can work here (gevent, eventlet, uWSGI without threads).
    """
    global _loop
    loop = _loop
    if loop is None or not loop.is_alive:
        with _lock:
            if _loop is None or not _loop.is_alive:
                refuse_unsuitable()
                _loop = AgentsLoop()
            loop = _loop
    return loop


def close_agents_loop() -> None:
    """Close this process's loop, if there is one; what runs on it is stopped. Blocks until that is done."""
    global _loop
    with _lock:
        loop, _loop = _loop, None
    if loop is not None:
        loop.close()


def _after_fork() -> None:
    """In a forked child: a thread of the parent may have held the lock, and its runs go on there."""
    global _lock, _loop
    _lock = threading.Lock()
    loop, _loop = _loop, None
    if loop is not None:
        loop.forget()
    handles.forget()


def _at_exit() -> None:
    if _loop is not None:
        _loop.close_at_exit()


before_close(close_agents_loop)
# Later than that of the connections, and so called before it.
atexit.register(_at_exit)
os.register_at_fork(after_in_child=_after_fork)
