"""A request in several rounds: the server asks for input, the request is sent again with the answers.

Each round is a request of its own, with a slot, a link and a chance to be retried of its own, so
that nothing is held while somebody thinks. What the server asked for is answered by handlers;
where none answers, the caller is told what to go on with. Only 2026-07-28 knows rounds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_client_app.client.caller import Caller
from mcp_client_app.client.failures import root_cause
from mcp_client_app.client.input_desk import InputDesk
from mcp_client_app.client.inputs import is_input_required, read_requests, wire_answer, wire_responses
from mcp_client_app.datatypes import InputAnswer, InputHandler, InputRequest, defer_input
from mcp_client_app.exceptions import (
    ConfigurationError,
    ConnectionLostError,
    InputRequiredError,
    InvalidInputError,
    NotConnectedError,
    ProtocolError,
    UnknownServerError,
)

logger = logging.getLogger(__name__)

__all__ = ["Continuation", "InputResponses", "Rounds"]

InputResponses = Mapping[str, InputAnswer | Mapping[str, Any]]
"""Answers by key, as ``InputAnswer`` or in the wire's form."""

MOST = 10
"""Times that a server may ask in one call."""
STATE_ONLY_DELAYS = (0.05, 0.1, 0.25)
"""Seconds to wait before asking again when the server only says: not yet."""

NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Continuation:
    """What a call goes on with that ended with ``InputRequiredError``."""

    responses: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """In the wire's form."""
    state: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, responses: InputResponses | None, state: str | None) -> Continuation | None:
        """Return what is given; None if nothing is.

        Raises:
            InvalidInputError: One of the responses cannot be sent.
        """
        if not responses and state is None:
            return None
        return cls(wire_responses(responses or {}), state)

    def params(self) -> dict[str, Any]:
        """Return what goes into the request."""
        return _continued(self.responses, self.state)


class Rounds:
    """The rounds of one call."""

    def __init__(
        self, desk: InputDesk, server: str, principal: str, tool: str | None, caller: Caller | None = None
    ) -> None:
        self._server, self._principal, self._tool = server, principal, tool
        self._desk, self._caller = desk, caller
        self._waits = 0
        self._handlers = shared = desk.handlers
        self.declared = NOTHING
        """The kinds that this call may be asked for although the connection has not declared them."""
        own = caller.handlers if caller is not None else None
        if shared or own:
            own = own or {}
            self._handlers = {**shared, **own}
            self.declared = frozenset(
                {*own, *(kind for kind, handler in shared.items() if handler is defer_input)}
            )

    async def go_on(
        self, result: Mapping[str, Any], send: Callable[[dict[str, Any]], Awaitable[Mapping[str, Any]]]
    ) -> None:
        """Answer and send again, until the server asks for nothing more.

        Args:
            result: What asks for input.
            send: Sends the request again, with these params added to its own; returns the result.

        Raises:
            InputRequiredError: Nobody answers.
            InvalidInputError: An answer does not fit.
            ProtocolError: The server asks without end, or in a form that nobody knows.
            ConnectionLostError: The server was taken away meanwhile.
            MCPClientError: As ``send``.
        """
        for _ in range(MOST):
            replies = await self._replies(result)
            try:
                result = await send(replies)
            except (ConfigurationError, NotConnectedError, UnknownServerError) as error:
                # A refusal would mean that nothing was sent, and the call be begun anew: a round has run.
                raise ConnectionLostError(
                    f"The server {self._server!r} asked for input and was gone before it got the answers: "
                    f"{error}",
                    server=self._server,
                    sent=True,
                ) from error
            if not is_input_required(result):
                return
        raise ProtocolError(
            f"The server {self._server!r} asked for input over {MOST} times in one call.", server=self._server
        )

    async def _replies(self, result: Mapping[str, Any]) -> dict[str, Any]:
        requests = read_requests(result, server=self._server, principal=self._principal, tool=self._tool)
        state: str | None = result.get("requestState")
        if not requests:
            await asyncio.sleep(STATE_ONLY_DELAYS[min(self._waits, len(STATE_ONLY_DELAYS) - 1)])
            self._waits += 1
            return _continued({}, state)
        handlers = [self._handlers.get(request.kind, defer_input) for request in requests]
        if any(handler is defer_input for handler in handlers):
            raise self._required(requests, state)  # before anybody is asked for what would be lost
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._ask(request, handler))
                    for request, handler in zip(requests, handlers, strict=True)
                ]
        except BaseExceptionGroup as failed:
            error = root_cause(failed)
            if isinstance(error, InvalidInputError):
                raise error from None
            raise self._required(requests, state, error) from error
        answers = [task.result() for task in tasks]
        if any(answer is None for answer in answers):
            raise self._required(requests, state)
        return _continued(
            {request.key: answer for request, answer in zip(requests, answers, strict=True)}, state
        )

    async def _ask(self, request: InputRequest, handler: InputHandler) -> dict[str, Any] | None:
        caller = self._caller if self._caller is not None and request.kind in self._caller.handlers else None
        try:
            answer = await (caller or self._desk).ask(handler, request)
        except InvalidInputError:
            raise
        except Exception:
            logger.exception("The handler of a request of %r for %s failed.", self._server, request.kind)
            raise
        return None if answer is None else wire_answer(answer)

    def _required(
        self, requests: tuple[InputRequest, ...], state: str | None, error: BaseException | None = None
    ) -> InputRequiredError:
        what = f"the tool {self._tool!r} of" if self._tool else "the server"
        kinds = ", ".join(dict.fromkeys(request.kind.value for request in requests))
        why = (
            f"its handler failed ({type(error).__name__})"
            if error is not None
            else "answer it and call again with the answers"
        )
        message = f"{what} {self._server!r} asks for input ({kinds}): {why}."
        return InputRequiredError(
            message[0].upper() + message[1:],
            server=self._server,
            tool=self._tool,
            requests=requests,
            request_state=state,
        )


def _continued(responses: Mapping[str, Any], state: str | None) -> dict[str, Any]:
    params: dict[str, Any] = {}
    if responses:
        params["inputResponses"] = dict(responses)
    if state is not None:
        params["requestState"] = state
    return params
