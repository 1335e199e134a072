"""Has handlers of the project answer what servers ask for: off the loop, each in a thread of its own.

A handler may wait for a person, so it shares no thread with events. Threads are daemons: one that
never comes back holds up nothing but its own place. Knows no links and no calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Coroutine, Mapping
from typing import Any

from mcp_client_app.client.inputs import by_kind, wire_answer
from mcp_client_app.client.link import InputHandler as LinkHandler
from mcp_client_app.datatypes import (
    InputAnswer,
    InputHandler,
    InputKind,
    InputRequest,
    ManagerOptions,
    ServerSpec,
    defer_input,
)

logger = logging.getLogger(__name__)

__all__ = ["InputDesk", "asked", "checked", "in_this_thread"]

PLACES = 16
"""Handlers at work at once; more requests wait, within their time."""


class InputDesk:
    """The handlers of one manager. Everything is called on the manager's loop, unless said otherwise."""

    def __init__(self, handlers: Mapping[str, InputHandler], options: ManagerOptions) -> None:
        self._handlers = handlers
        self._options = options
        self._places = asyncio.Semaphore(PLACES)
        self._threads: set[threading.Thread] = set()

    @property
    def handlers(self) -> dict[InputKind, InputHandler]:
        """The handlers as they are now, by kind.

        Raises:
            ConfigurationError: One of them cannot be one.
        """
        return by_kind(dict(self._handlers)) if self._handlers else {}  # other threads may change them

    def for_link(self, spec: ServerSpec, principal: str) -> dict[str, LinkHandler]:
        """Return what answers requests that come over a connection, by method: these cannot wait for long."""
        return {
            kind.method: _LinkHandler(self, kind, handler, spec, principal)
            for kind, handler in self.handlers.items()
            if handler is not defer_input
        }

    async def ask(self, handler: InputHandler, request: InputRequest) -> InputAnswer | None:
        """Return the handler's answer, or raise what it raises. Cancelling cancels a coroutine.

        Raises:
            TypeError: It returned something that is no answer.
        """
        if handler is defer_input:
            return None
        await self._places.acquire()
        errand = _Errand(handler, request, self._options)
        thread = threading.Thread(target=self._run, args=(errand,), name="mcp-input", daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:  # no new thread at interpreter exit
            self._leave(thread)
            return None
        try:
            return await errand.outcome
        finally:
            errand.give_up()

    def _run(self, errand: _Errand) -> None:
        """In the errand's thread."""
        errand.run()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            errand.loop.call_soon_threadsafe(self._done, errand, threading.current_thread())

    def _done(self, errand: _Errand, thread: threading.Thread) -> None:
        self._leave(thread)
        errand.settle()

    def _leave(self, thread: threading.Thread) -> None:
        self._threads.discard(thread)
        self._places.release()

    def close(self, timeout: float) -> None:
        """Wait, from another thread and at most so long, for handlers that still run."""
        end = time.monotonic() + timeout
        for thread in list(self._threads):
            thread.join(max(0.0, end - time.monotonic()))


class _LinkHandler:
    """Answers one kind of request that comes over a connection."""

    def __init__(
        self, desk: InputDesk, kind: InputKind, handler: InputHandler, spec: ServerSpec, principal: str
    ) -> None:
        self._desk, self._kind, self._handler = desk, kind, handler
        self._spec, self._principal = spec, principal

    async def __call__(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        request = InputRequest(
            server=self._spec.name, kind=self._kind, principal=self._principal, params=params
        )
        # The server does not say which call it belongs to: the limit of a call is the closest that there is.
        async with asyncio.timeout(self._spec.call_timeout or None):
            answer = await self._desk.ask(self._handler, request)
        return None if answer is None else wire_answer(answer)


class _Errand:
    """One handler at work."""

    def __init__(self, handler: InputHandler, request: InputRequest, options: ManagerOptions) -> None:
        self.loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[InputAnswer | None] = self.loop.create_future()
        self._handler, self._request, self._options = handler, request, options
        self._answer: InputAnswer | None = None
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._cancel: Any = None
        self._given_up = False

    def run(self) -> None:
        """Call the handler and keep what comes of it; in the errand's thread."""
        around = self._options.around_callback
        try:
            self._call() if around is None else around(self._call)
        except BaseException as error:  # noqa: BLE001 - belongs to whoever waits for the answer
            self._error = error

    def _call(self) -> None:
        self._answer = in_this_thread(self._handler, self._request, self._options, self._cancellable)

    async def _cancellable(self, work: Awaitable[InputAnswer | None]) -> InputAnswer | None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with self._lock:
            if self._given_up:
                task.cancel()
            self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            return await work
        finally:
            with self._lock:
                self._cancel = None

    def give_up(self) -> None:
        """Nobody waits any more; on the manager's loop."""
        with self._lock:
            self._given_up = True
            if self._cancel is not None:
                self._cancel()

    def settle(self) -> None:
        """Hand the outcome over; on the manager's loop."""
        if self.outcome.done():
            return
        if isinstance(self._error, Exception):
            self.outcome.set_exception(self._error)
        elif self._error is not None:  # the handler ended its own thread, or was cancelled: no answer
            self.outcome.set_result(None)
        else:
            self.outcome.set_result(self._answer)


def in_this_thread(
    handler: InputHandler, request: InputRequest, options: ManagerOptions, wrap: Any = None
) -> InputAnswer | None:
    """Call a handler in this thread, a coroutine function on a loop of its own.

    ``wrap`` turns what it returns into the coroutine that is run.

    Raises:
        TypeError: It returned something that is no answer.
    """
    answer = asked(handler, request)
    if inspect.isawaitable(answer):
        work: Coroutine[Any, Any, Any] = wrap(answer) if wrap is not None else _awaited(answer)
        answer = (options.run_coroutine or asyncio.run)(work)
    return checked(answer, request)


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


def asked(handler: InputHandler, request: InputRequest) -> Any:
    """Call a handler; returns what it returns, which may have to be awaited."""
    try:
        return handler(request)
    except StopIteration as error:  # such as of next(): no future can carry it
        raise RuntimeError("A handler of input raised StopIteration.") from error


def checked(answer: Any, request: InputRequest) -> InputAnswer | None:
    """Return what a handler returned for this request, which it is held to, whoever made it.

    Raises:
        TypeError: It is no answer.
    """
    if answer is None:
        return None
    if isinstance(answer, InputAnswer):
        return InputAnswer(answer.action, answer.content, request)
    raise TypeError(
        "A handler of input returns request.accept(...), request.decline(), request.cancel() or None, "
        f"not {type(answer).__name__}."
    )
