"""Sends one request to one server under one deadline: waits, queues, connects, retries by rule.

The replay rule: a request *known not to have been sent* is sent again once. One that may
have run is repeated once only if that can do no harm: a read of ours, or a tool that says
so and whose server is trusted to say so. Writes are never repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from mcp_client_app.client.connection import Connection
from mcp_client_app.client.exchange import Exchange, recorded
from mcp_client_app.client.link import OnProgress
from mcp_client_app.client.pool import ConnectionPool
from mcp_client_app.datatypes import Transport
from mcp_client_app.exceptions import (
    AuthRequiredError,
    MCPClientError,
    NotConnectedError,
    RequestTimeoutError,
    ServerConnectionError,
    ServerUnavailableError,
    TransportError,
)

__all__ = ["Answer", "Deadline", "send_round"]


@dataclass(slots=True)
class Answer:
    """A result, how it came, and whether it took a second try."""

    result: Mapping[str, Any] = field(default_factory=dict)
    exchange: Exchange = field(default_factory=Exchange)
    declared: frozenset[str] = frozenset()
    """See ``Exchange``."""
    tried_again: bool = False
    replayed: bool = False
    """Sent a second time, although the first may have run."""
    lost: ServerConnectionError | None = None
    """Why the first try was, then."""

    def next_round(self) -> None:
        """What follows is a request of its own: how an earlier one fared does not count for it."""
        self.tried_again, self.lost = False, None

    @property
    def may_have_run(self) -> bool:
        """Whether the server may have got the request, by whichever try."""
        return self.exchange.sent or self.replayed


class Deadline:
    """Bounds everything in its ``async with`` block.

    Raises:
        RequestTimeoutError: Time is over; says whether the request may have reached the server.
    """

    # A class, and not a generator: this is entered with every call.
    __slots__ = ("_answer", "_seconds", "_server", "_timeout", "_what")

    def __init__(self, server: str | None, seconds: float, answer: Answer, what: str) -> None:
        """``server`` is None if it is not known yet; ``seconds`` are 0 for no limit."""
        self._server = server
        self._seconds = seconds
        self._answer = answer
        self._what = what
        self._timeout = asyncio.timeout(seconds) if seconds else None

    async def __aenter__(self) -> None:
        if self._timeout is not None:
            await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timeout is None:
            return
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as over:
            who = f"The server {self._server!r}" if self._server is not None else "No server"
            did = "did not finish" if self._server is not None else "finished"
            raise RequestTimeoutError(
                f"{who} {did} {self._what} within {self._seconds:.3g} s.",
                server=self._server,
                seconds=self._seconds,
                sent=self._answer.may_have_run,
            ) from over


async def send_round(
    pool: ConnectionPool,
    server: str,
    method: str,
    params: Mapping[str, Any],
    answer: Answer,
    principal: str,
    repeatable: bool,
    on_progress: OnProgress | None,
    more: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Send a request over the server's connection; run it within a ``Deadline``. Returns its result.

    With all but the last argument filled in, it is what ``Rounds`` goes on with. A function and no closure:
    each variable of a closure is an object that the collector of garbage goes through with every call.

    Args:
        answer: What is filled in.
        repeatable: A second execution does no harm.
        more: What this round adds to the params.

    Raises:
        MCPClientError: Why there is no result.
    """
    answer.next_round()
    try:
        await _tried(pool, server, method, {**params, **more}, answer, principal, repeatable, on_progress)
    except MCPClientError as error:
        if answer.lost is None or answer.exchange.sent:
            raise
        # There was no second try to speak of. What counts is that the first may have run.
        raise answer.lost from error
    return answer.result


async def _tried(
    pool: ConnectionPool,
    server: str,
    method: str,
    params: Mapping[str, Any],
    answer: Answer,
    principal: str,
    repeatable: bool,
    on_progress: OnProgress | None,
) -> Answer:
    found_dead = False
    while True:
        connection = pool.connection(server, principal)
        try:
            connection.began_call()
            try:
                if connection.slots is None:
                    return await _attempt(connection, method, params, answer, on_progress)
                async with connection.slots:  # the server's call slots: first come, first served
                    return await _attempt(connection, method, params, answer, on_progress)
            finally:
                connection.ended_call()
        except NotConnectedError:
            if not connection.retired:
                raise
            # Edited meanwhile: the next round takes the new connection.
        except _BrokeError as broke:
            if answer.tried_again or not (connection.spec.auto_reconnect or connection.retired):
                raise broke.error from broke.error.__cause__
            if answer.exchange.sent and not repeatable:
                raise broke.error from broke.error.__cause__
            if not (found_dead or answer.exchange.sent) and isinstance(broke.error, TransportError):
                found_dead = True  # a kept socket, which says nothing yet of the server or the session
                continue
            answer.tried_again = True
            if answer.exchange.sent:
                answer.replayed, answer.lost = True, broke.error
                answer.exchange = Exchange(declared=answer.declared)


class _BrokeError(Exception):
    """The link failed during the request, as opposed to: could not be had in the first place."""

    def __init__(self, error: ServerConnectionError) -> None:
        self.error = error
        super().__init__()


async def _attempt(
    connection: Connection,
    method: str,
    params: Mapping[str, Any],
    answer: Answer,
    on_progress: OnProgress | None,
) -> Answer:
    link = await connection.ready()
    answer.exchange = Exchange(declared=answer.declared)
    try:
        with recorded(answer.exchange):
            answer.result = await link.request(method, params, on_progress=on_progress)
    except AuthRequiredError:
        raise
    except ServerConnectionError as error:
        if isinstance(error, TransportError) and error.status is not None:
            raise  # the server is there and said no: the same again would not help
        if error.retry_after is not None:
            raise  # it said when to come again, which is not now
        if hasattr(error, "sent"):
            # It was made when the link broke; until the request had been taken back, a byte may have left.
            error.sent = answer.exchange.sent
        if not answer.exchange.sent:
            _note_outage(connection, error)
        raise _BrokeError(error) from error
    connection.succeeded()
    return answer


def _note_outage(connection: Connection, error: ServerConnectionError) -> None:
    """A request that found no server is a sign of life that is missing: do not go on looking connected.

    Other calls in flight may still be answered, so a connection that others use is left alone.
    """
    over_http = connection.spec.transport in (Transport.STREAMABLE_HTTP, Transport.SSE)
    if isinstance(error, ServerUnavailableError) and over_http and connection.in_flight == 1:
        connection.break_link(error)
