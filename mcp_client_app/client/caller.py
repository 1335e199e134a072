"""Whoever waits for a call: told of its progress and asked for input, where it waits."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from mcp_client_app.client.input_desk import asked, checked, in_this_thread
from mcp_client_app.client.inputs import by_kind
from mcp_client_app.client.loop import EventRelay
from mcp_client_app.datatypes import (
    InputAnswer,
    InputHandler,
    InputRequest,
    ManagerOptions,
    Progress,
    defer_input,
)

__all__ = ["Caller", "OnProgress"]

OnProgress = Callable[[Progress], Any]
"""Called where the caller waits: in its thread, or on its loop (there it may be a coroutine function)."""

_LOOK: Any = object()
"""An event that says: there are questions."""


class Caller:
    """One waiting caller; ``relay`` carries events to where it waits."""

    def __init__(
        self,
        on_progress: OnProgress | None,
        on_input: Mapping[str, InputHandler] | None,
        options: ManagerOptions,
        *,
        is_async: bool,
    ) -> None:
        self.handlers = by_kind(on_input or {})
        self.reports_progress = on_progress is not None
        self._on_progress = on_progress
        self._options = options
        self._is_async = is_async
        self._questions: deque[_Question] = deque()
        self.relay = EventRelay(self._deliver)

    def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell of progress; on the manager's loop."""
        self.relay.put(Progress(progress, total, message))

    async def ask(self, handler: InputHandler, request: InputRequest) -> InputAnswer | None:
        """Have the handler answer where the caller waits; awaited on the manager's loop."""
        if handler is defer_input:
            return None
        question = _Question(handler, request)
        self._questions.append(question)
        self.relay.put(_LOOK)
        try:
            return await question.outcome
        finally:
            question.give_up()

    def _deliver(self, event: Any) -> Any:
        """Called where the caller waits, with each event that has not been dropped."""
        while self._questions:
            self._answer(self._questions.popleft())
        return None if event is _LOOK or self._on_progress is None else self._on_progress(event)

    def _answer(self, question: _Question) -> None:
        if question.outcome.done():
            return
        try:
            if self._is_async:
                answer = asked(question.handler, question.request)
                if inspect.isawaitable(answer):
                    # A task: the call may come to its end before the handler does.
                    question.follow(asyncio.ensure_future(answer))
                    return
                question.settle(checked(answer, question.request), None)
            else:
                question.settle(in_this_thread(question.handler, question.request, self._options), None)
        except Exception as error:  # noqa: BLE001 - the call's outcome, raised where it is waited for
            question.settle(None, error)


class _Question:
    """A request on its way to the caller, and its answer on the way back."""

    def __init__(self, handler: InputHandler, request: InputRequest) -> None:
        self.handler, self.request = handler, request
        self._loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[InputAnswer | None] = self._loop.create_future()
        self._task: asyncio.Future[Any] | None = None

    # Where the caller waits ------------------------------------------------------------

    def follow(self, task: asyncio.Future[Any]) -> None:
        """Settle as the handler's coroutine does."""
        self._task = task
        task.add_done_callback(self._followed)
        if self.outcome.done():
            task.cancel()

    def _followed(self, task: asyncio.Future[Any]) -> None:
        if task.cancelled():
            self.settle(None, None)
        elif (error := task.exception()) is not None:
            self.settle(None, error)
        else:
            try:
                self.settle(checked(task.result(), self.request), None)
            except TypeError as wrong:
                self.settle(None, wrong)

    def settle(self, answer: InputAnswer | None, error: BaseException | None) -> None:
        """Hand the outcome over to the manager's loop."""
        with contextlib.suppress(RuntimeError):  # it is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._set, answer, error)

    # On the manager's loop -------------------------------------------------------------

    def _set(self, answer: InputAnswer | None, error: BaseException | None) -> None:
        if self.outcome.done():
            return
        if error is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(answer)

    def give_up(self) -> None:
        """Nobody waits any more: a coroutine of the caller's is cancelled."""
        self.outcome.cancel()
        task = self._task
        if task is not None and not task.done():
            with contextlib.suppress(RuntimeError):
                task.get_loop().call_soon_threadsafe(task.cancel)
