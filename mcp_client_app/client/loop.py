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
import inspect
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from mcp_client_app.exceptions import AsyncContextError, ManagerClosedError

logger = logging.getLogger(__name__)

__all__ = ["EventRelay", "LoopThread", "forbid_running_loop"]

T = TypeVar("T")
Start = Callable[[], Coroutine[Any, Any, T]]

GRACE = 10.0
"""Seconds that stopping waits for the thread, and for tasks that do not want to end."""
LOOK = 5.0
"""Seconds after which a waiting thread looks whether the loop still lives."""


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
            f"{verb}() would block the running event loop; use 'await a{verb}(...)' or call it from a thread."
        )


class _Job(Generic[T]):
    """One coroutine to run, and how its outcome gets back."""

    __slots__ = ("_cancelled", "_loop", "_notify", "_task", "error", "finished", "result", "start")

    def __init__(self, start: Start[T], loop: asyncio.AbstractEventLoop, notify: Callable[[], None]) -> None:
        self.start = start
        self.result: T | None = None
        self.error: BaseException | None = None
        self._loop = loop
        self._notify = notify
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False
        self.finished = False

    def run(self) -> None:
        if self._cancelled:
            self.fail(asyncio.CancelledError())
            return
        self._task = self._loop.create_task(self._work(), context=contextvars.Context())
        self._task.add_done_callback(self._done)

    async def _work(self) -> None:
        """Tell the outcome from within the task: a callback on it would come one turn of the loop later."""
        try:
            result = await self.start()
        except BaseException as error:  # noqa: BLE001 - the outcome, whatever it is, belongs to the waiting caller
            self.fail(error)
        else:
            if not self.finished:
                self.result = result
                self.finished = True
                self._notify()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():  # before it began to work
            self.fail(asyncio.CancelledError())

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
        if isinstance(self.error, asyncio.CancelledError):
            raise ManagerClosedError  # nobody else cancels a job that is still waited for
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # None only where T allows it


class _Latch:
    """A one-shot event on a raw lock: cheaper than ``threading.Event``."""

    __slots__ = ("_lock", "set")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.set = self._lock.release

    def wait(self, timeout: float) -> bool:
        return self._lock.acquire(timeout=timeout)

    def clear(self) -> None:
        """Never needed: without events, a latch is set once."""


class EventRelay:
    """Carries events of a running job to the thread or loop that waits for it, oldest dropped first."""

    def __init__(self, deliver: Callable[[Any], Any], size: int = 1000) -> None:
        self._deliver = deliver
        self._events: deque[Any] = deque(maxlen=size)
        self.wake: Callable[[], None] = lambda: None

    def put(self, event: Any) -> None:
        """Queue an event; on the manager's loop."""
        self._events.append(event)
        self.wake()

    def deliver(self) -> None:
        """Call the callback with each event, in this thread; its failures are logged, not raised."""
        while self._events:
            try:
                self._deliver(self._events.popleft())
            except Exception:
                logger.exception("A progress callback failed.")

    async def adeliver(self) -> None:
        """Do the same on the caller's loop; the callback may be a coroutine function."""
        while self._events:
            try:
                outcome = self._deliver(self._events.popleft())
                if inspect.isawaitable(outcome):
                    await outcome
            except Exception:
                logger.exception("A progress callback failed.")


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
        self._at_exit = False
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
            # Here, not in the thread that stops us: that one may be running a loop of its own.
            _finish(self.loop, at_exit=self._at_exit)
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
            try:
                self._inbox.popleft()()
            except Exception:  # one bad callback must not hold up those behind it
                logger.exception("A callback on %r failed.", self.thread.name)

    def run(self, start: Start[T], relay: EventRelay | None = None) -> T:
        """Run a coroutine on the loop and wait in this thread; events of ``relay`` are delivered here."""
        if threading.current_thread() is self.thread:
            raise AsyncContextError("The manager's own loop cannot wait for itself; await the async twin.")
        done = threading.Event() if relay is not None else _Latch()
        job = _Job(start, self.loop, done.set)
        if relay is not None:
            relay.wake = done.set
        self._submit(job)
        try:
            finished = False
            while not finished:
                done.wait(LOOK)
                done.clear()  # before looking, so that an end that comes now wakes us again
                finished = job.finished
                if relay is not None:
                    relay.deliver()
                if not finished and not self.thread.is_alive():
                    raise ManagerClosedError
        finally:
            self._waiting.discard(job)
            if not job.finished:
                self.call_soon(job.cancel)
        return job.outcome()

    async def arun(self, start: Start[T], relay: EventRelay | None = None) -> T:
        """Run a coroutine on the loop and wait on the caller's; events of ``relay`` are delivered there."""
        caller = asyncio.get_running_loop()
        if caller is self.loop and relay is None:
            return await start()
        outbox = self._outbox(caller)
        if relay is None:
            end = caller.create_future()
            job = _Job(start, self.loop, lambda: outbox.put(lambda: _done(end)))
        else:
            wake = asyncio.Event()
            job = _Job(start, self.loop, lambda: outbox.put(wake.set))
            relay.wake = lambda: outbox.put(wake.set)
        self._submit(job)
        try:
            if relay is None:
                await end
            else:
                await self._deliver(job, relay, wake)
        finally:
            self._waiting.discard(job)
            if not job.finished:
                self.call_soon(job.cancel)
        return job.outcome()

    async def _deliver(self, job: _Job[Any], relay: EventRelay, wake: asyncio.Event) -> None:
        """Deliver the events of a job until it has finished."""
        finished = False
        while not finished:
            await wake.wait()
            wake.clear()
            finished = job.finished  # before delivering: events come before the end
            await relay.adeliver()

    def _submit(self, job: _Job[Any]) -> None:
        if not self.is_alive:
            raise ManagerClosedError
        self._waiting.add(job)
        try:
            self.call_soon(job.run)
            if self._closed:  # since we looked: then nobody might tell this job
                raise ManagerClosedError
        except ManagerClosedError:
            self._waiting.discard(job)
            raise

    def _outbox(self, loop: asyncio.AbstractEventLoop) -> _Outbox:
        outbox = self._outboxes.get(id(loop))
        if outbox is None or outbox._loop is not loop:  # noqa: SLF001 - the id of a dead loop may come again
            self._outboxes = {
                key: value
                for key, value in self._outboxes.items()
                if not value._loop.is_closed()  # noqa: SLF001
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
        self._closed, self._at_exit = True, at_exit
        if self.pid != os.getpid():
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(2 * GRACE)
        if self.thread.is_alive():
            logger.error("The thread %r did not stop.", self.thread.name)
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


def _done(end: asyncio.Future[None]) -> None:
    if not end.done():  # its task may have been cancelled
        end.set_result(None)


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
