"""An event loop on a thread of its own, and the hand-over to it from threads and other loops.

Work is handed over by a queue that wakes the loop once for many jobs; a waiting thread
sleeps on a raw lock, a waiting coroutine is woken through a queue of its own loop. Jobs
start in an empty context: request context must not live on in long-lived tasks. Knows
nothing of MCP.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from mcp_client_app.exceptions import AsyncContextError, ManagerClosedError

logger = logging.getLogger(__name__)

__all__ = ["LoopThread", "forbid_running_loop"]

T = TypeVar("T")
Start = Callable[[], Coroutine[Any, Any, T]]

GRACE = 10.0
"""Seconds that a thread waits beyond a job's own deadline, should the loop be stuck."""


def forbid_running_loop(verb: str) -> None:
    """Raise if this thread runs an event loop, which the sync form of ``verb`` would block.

    Django's opt-out, the environment variable ``DJANGO_ALLOW_ASYNC_UNSAFE``, holds here too.

    Raises:
        AsyncContextError: Naming the async twin.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    if not os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE"):
        raise AsyncContextError(
            f"{verb}() would block the running event loop; use 'await a{verb}(...)', or call it from a thread."
        )


class _Job(Generic[T]):
    """One coroutine to run, and how its outcome gets back."""

    __slots__ = ("_cancelled", "_notify", "_task", "error", "finished", "result", "start")

    def __init__(self, start: Start[T], notify: Callable[[], None]) -> None:
        self.start = start
        self.result: T | None = None
        self.error: BaseException | None = None
        self._notify = notify
        self._task: asyncio.Task[T] | None = None
        self._cancelled = False
        self.finished = False

    def run(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._cancelled:
            self.fail(asyncio.CancelledError())
            return
        try:
            self._task = loop.create_task(self.start(), context=contextvars.Context())
        except BaseException as error:  # the outcome, whatever it is, belongs to the waiting caller
            self.fail(error)
        else:
            self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[T]) -> None:
        self._task = None
        if task.cancelled():
            self.fail(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self.fail(error)
        elif not self.finished:
            self.result = task.result()
            self.finished = True
            self._notify()

    def cancel(self) -> None:
        """Cancel; on the loop."""
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()

    def fail(self, error: BaseException) -> None:
        if not self.finished:
            self.error = error
            self.finished = True
            self._notify()

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # None only where T allows it


class _Outbox:
    """Wakes waiting futures of one foreign loop, many at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._items: deque[Callable[[], None]] = deque()
        self._woken = False

    def put(self, callback: Callable[[], None]) -> None:
        self._items.append(callback)
        if not self._woken:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # the caller's loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        self._woken = False
        while self._items:
            self._items.popleft()()


class LoopThread:
    """A daemon thread that runs one event loop until it is stopped."""

    def __init__(self, name: str, *, use_uvloop: bool = False) -> None:
        self.pid = os.getpid()
        self.loop = _new_loop(use_uvloop)
        self._inbox: deque[Callable[[], None]] = deque()
        self._woken = False
        self._closed = False
        self._waiting: set[_Job[Any]] = set()
        self._outboxes: dict[int, _Outbox] = {}
        started = threading.Event()
        self.thread = threading.Thread(target=self._main, args=(started,), name=name, daemon=True)
        self.thread.start()
        started.wait()

    def _main(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(started.set)
        try:
            self.loop.run_forever()
        finally:
            asyncio.set_event_loop(None)

    @property
    def is_alive(self) -> bool:
        """Whether jobs can be run: in this process, and not stopped."""
        return not self._closed and self.pid == os.getpid() and self.thread.is_alive()

    # Handing work over -----------------------------------------------------------------

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run a callback on the loop; from any thread."""
        self._inbox.append(callback)
        if not self._woken:
            self._woken = True
            try:
                self.loop.call_soon_threadsafe(self._drain)
            except RuntimeError as error:
                raise ManagerClosedError from error

    def _drain(self) -> None:
        self._woken = False
        while self._inbox:
            self._inbox.popleft()()

    def run(self, start: Start[T], *, deadline: float | None = None) -> T:
        """Run a coroutine on the loop and wait for it in this thread.

        ``deadline`` (seconds) is the coroutine's own; it only bounds the wait should the loop be stuck.
        """
        done = threading.Lock()
        done.acquire()
        job = _Job(start, done.release)
        self._submit(job)
        finished = False
        try:
            finished = done.acquire(timeout=-1 if not deadline else deadline + GRACE)
        finally:
            self._waiting.discard(job)
            if not finished:
                self.call_soon(job.cancel)
        if not finished:
            raise TimeoutError("The MCP event loop did not answer; it may be blocked.")
        return job.outcome()

    async def arun(self, start: Start[T]) -> T:
        """Run a coroutine on the loop and wait for it on the caller's loop, whichever that is."""
        caller = asyncio.get_running_loop()
        if caller is self.loop:
            return await start()
        waiter: asyncio.Future[None] = caller.create_future()
        outbox = self._outbox(caller)

        def wake() -> None:
            if not waiter.done():
                waiter.set_result(None)

        job = _Job(start, lambda: outbox.put(wake))
        self._submit(job)
        try:
            await waiter
        except asyncio.CancelledError:
            self.call_soon(job.cancel)
            raise
        finally:
            self._waiting.discard(job)
        return job.outcome()

    def _submit(self, job: _Job[Any]) -> None:
        if not self.is_alive:
            raise ManagerClosedError
        self._waiting.add(job)
        self.call_soon(lambda: job.run(self.loop))

    def _outbox(self, loop: asyncio.AbstractEventLoop) -> _Outbox:
        outbox = self._outboxes.get(id(loop))
        if outbox is None or outbox._loop is not loop:  # noqa: SLF001 - the id of a dead loop may come again
            self._outboxes = {
                key: value for key, value in self._outboxes.items() if not value._loop.is_closed()  # noqa: SLF001
            }
            outbox = self._outboxes[id(loop)] = _Outbox(loop)
        return outbox

    # The end ---------------------------------------------------------------------------

    def stop(self, *, at_exit: bool = False) -> None:
        """Stop the loop and end the thread; whoever still waits gets ``ManagerClosedError``.

        ``at_exit`` leaves out what would need an executor or a new thread.
        """
        if self._closed:
            return
        self._closed = True
        if self.pid != os.getpid():
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(GRACE)
        if self.thread.is_alive():
            logger.error("The thread %r did not stop.", self.thread.name)
            return
        _finish(self.loop, at_exit=at_exit)
        for job in list(self._waiting):
            job.fail(ManagerClosedError())

    def forget(self) -> None:
        """After a fork, in the child: close the copies of the loop's descriptors, touch nothing else."""
        self._closed = True
        with contextlib.suppress(Exception):
            # run_forever() never returns here, so close() would refuse: it believes to be running.
            selector = getattr(self.loop, "_selector", None)
            if selector is not None:
                selector.close()


def _new_loop(use_uvloop: bool) -> asyncio.AbstractEventLoop:
    if use_uvloop:
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


def _finish(loop: asyncio.AbstractEventLoop, *, at_exit: bool) -> None:
    """Cancel what is left on a loop that has stopped, and close it."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=GRACE))
    loop.run_until_complete(loop.shutdown_asyncgens())
    if not at_exit:
        loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
