"""What the SDK's client gets as its transport: every message passes here, in both directions.

The SDK's own dispatcher sits on top. Here the requests that wait are remembered, so that their
answers can be repaired and measured, and one request can fail alone, with an exception of ours: it
travels in the ``data`` of a JSON-RPC error, where no server can put one. Everything runs on
one event loop. A subclass moves the bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.dispatcher import as_request_id, coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from mcp_client_app.client.background import spawn
from mcp_client_app.client.declaring import declaring
from mcp_client_app.client.exchange import Exchange, current_exchange
from mcp_client_app.client.failures import carrying
from mcp_client_app.client.leniency import Repairer, notifications
from mcp_client_app.client.negotiation import tells_the_era
from mcp_client_app.client.rpc_messages import (
    LIST_CHANGED,
    LISTEN,
    TypedMessage,
    is_answer,
    is_batch,
    named_id,
    typed_message,
)
from mcp_client_app.client.stock_stream import WriteStream
from mcp_client_app.exceptions import (
    ConnectionLostError,
    MCPClientError,
    ProtocolError,
    RequestTimeoutError,
    ServerCrashedError,
    TransportError,
)

__all__ = ["OpenRequest", "StockTransport", "dumped"]

logger = logging.getLogger(__name__)

MOST_WAITING = 1000
"""Messages that wait for the SDK's dispatcher, from which on notifications are dropped."""
COURTESY_SECONDS = 5.0
"""For telling the server that a request was given up."""

PROBE = "server/discover"
CANCELLED = "notifications/cancelled"

Messages = MemoryObjectReceiveStream[SessionMessage | Exception]


@dataclass(slots=True, eq=False)
class OpenRequest:
    """A request that waits for its answer."""

    request_id: RequestId
    method: str
    exchange: Exchange
    body: bytes = b""
    """What is sent for it, where that happens later."""
    position: str | None = None
    """The event after which the stream with its answer can be taken up again."""
    tries: int = 0
    """To do so, in a row and in vain."""


def dumped(item: SessionMessage) -> dict[str, Any]:
    """Return the wire's form of a message."""
    message: dict[str, Any] = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
    return message


class StockTransport:
    """An SDK ``Transport``: an async context manager that gives a read and a write stream. Used once."""

    def __init__(
        self,
        *,
        server: str,
        repairer: Repairer,
        redact: Callable[[str], str],
        probe_timeout: float | None = None,
    ) -> None:
        """``probe_timeout``: seconds for the probe of the new era, if the SDK's client makes one."""
        self.server = server
        self.failure: MCPClientError | None = None
        """Why nothing can be sent any more; None while the link is up."""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done as soon as the link is down, whatever the reason; never an exception."""
        self.died_on_probe = False
        """The link broke while the probe was on its way."""
        self.noise_count = 0
        self.noise_last = ""
        self.dropped_notifications = 0
        """Those that came while the SDK had enough messages to take; of changed lists it is always told."""
        self.trace: Callable[[str, Any], None] | None = None
        """Called with ``->`` or ``<-`` and each message; for debugging."""
        self._repairer = repairer
        self._redact = redact
        self._probe_timeout = probe_timeout
        self._timers: list[asyncio.TimerHandle] = []
        self._verdict: MCPClientError | None = None
        """Why connecting is pointless: the SDK's client would take the fault for a sign of an old server."""
        self._open: dict[RequestId, OpenRequest] = {}
        self._changes: set[str] = set()
        """Changed lists that were told within this turn of the loop."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._stack = contextlib.AsyncExitStack()
        # Unbounded, since the dispatcher takes messages out without ever waiting.
        self._inbox, self._messages = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)

    # What a subclass supplies ----------------------------------------------------------

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        """Begin to receive; what has to be undone goes on ``stack``.

        Raises:
            MCPClientError: Why it cannot be done.
        """
        raise NotImplementedError

    async def _send(self, item: SessionMessage, request: OpenRequest | None) -> None:
        """Send a request, or a notification or answer (``request`` is None then).

        Sets ``request.exchange.sent`` as soon as a byte may have left. Must not raise: what
        keeps a request from being answered goes to ``_fail_request``.
        """
        raise NotImplementedError

    async def _cancel(self, item: SessionMessage, request: OpenRequest | None) -> None:
        """Tell the server with ``item`` that nobody waits for ``request`` any more."""
        await self._send(item, None)

    def _drop(self, request: OpenRequest) -> None:
        """Let go of what a request still holds, without telling the server."""

    # The SDK's Transport protocol ------------------------------------------------------

    async def __aenter__(self) -> tuple[Messages, WriteStream]:
        try:
            async with contextlib.AsyncExitStack() as stack:
                await self._start(stack)
                self._stack = stack.pop_all()
        except BaseException:
            self._messages.close()
            self._inbox.close()
            raise
        return self._messages, WriteStream(self.send)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        try:
            return await self._stack.__aexit__(kind, error, traceback)
        finally:
            self._fail(
                ConnectionLostError(f"The connection to {self.server!r} was closed.", server=self.server)
            )
            self._messages.close()
            self.end_probing()

    async def send(self, item: SessionMessage) -> None:
        """Send what the SDK's dispatcher hands over; in the context of whoever made the call.

        Raises:
            MCPError: It is a request, and the link is down.
        """
        message = item.message
        if isinstance(message, JSONRPCRequest):
            request = self._register(message)
            self._note("->", item)
            await self._send(item, request)
        elif self.failure is None:
            self._note("->", item)
            if isinstance(message, JSONRPCNotification) and message.method == CANCELLED:
                await self._cancel(item, self._take((message.params or {}).get("requestId")))
            else:
                await self._send(item, None)

    def _register(self, message: JSONRPCRequest) -> OpenRequest:
        exchange = current_exchange() or Exchange()
        if self.failure is not None:
            raise carrying(self.failure_for(exchange))
        if self._verdict is not None:
            raise carrying(self._verdict.copy())
        if exchange.declared and message.params is not None:
            message.params = declaring(message.params, exchange.declared)
        request = OpenRequest(message.id, message.method, exchange)
        self._open[coerce_request_id(message.id)] = request
        if message.method == PROBE and self._probe_timeout is not None:
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(self._probe_timeout, self._probe_is_over, request))
        return request

    def end_probing(self) -> None:
        """From now on what the probe was is a request like any other."""
        self._probe_timeout = None
        while self._timers:
            self._timers.pop().cancel()  # it would hold all of this until its time is over

    def _probe_is_over(self, request: OpenRequest) -> None:
        if self._waits(request):
            self._drop(request)
            self._fail_request(
                request,
                RequestTimeoutError(
                    f"The server {self.server!r} did not answer the probe.", server=self.server
                ),
            )

    # Receiving -------------------------------------------------------------------------

    def _receive(self, message: Any, size: int = 0) -> None:
        """Route one decoded message. Never raises: a bad message costs itself only."""
        if is_batch(message):
            for item in message:
                self._receive(item)
            return
        if self.trace is not None:
            self.trace("<-", message)
        if is_answer(message):
            self._answered(message, size)
        elif (typed := typed_message(message)) is None:
            self._note_noise(f"not a JSON-RPC message: {str(message)[:4000]}")
        elif isinstance(typed, JSONRPCNotification) and typed.method in notifications.KNOWN:
            self._notified(typed)
        else:
            self._deliver(typed)

    def _notified(self, message: JSONRPCNotification) -> None:
        params = notifications.notification(message.method, message.params)
        if params is None:
            self._note_noise(f"a malformed notification {message.method!r}")
            return
        if message.method in LIST_CHANGED:
            if message.method in self._changes:
                return  # one of those that came together says it all
            self._changes.add(message.method)
            asyncio.get_running_loop().call_soon(self._changes.discard, message.method)
        elif self._inbox.statistics().current_buffer_used >= MOST_WAITING:
            self.dropped_notifications += 1
            return
        self._deliver(JSONRPCNotification(jsonrpc="2.0", method=message.method, params=params))

    def _answered(self, message: dict[str, Any], size: int) -> None:
        if (request_id := named_id(message)) is not None:
            request = self._open.get(request_id)
        else:
            request = self._only_one_waiting() if "error" in message else None
        if request is None:
            logger.debug("Dropped an answer of %r: nobody waits for it.", self.server)
            return
        request.exchange.size = size
        typed = typed_message({**message, "id": request.request_id})
        if typed is None:
            self._fail_request(
                request,
                TransportError(
                    f"The server {self.server!r} answered {request.method!r} "
                    "with a result that is no object.",
                    server=self.server,
                ),
            )
            return
        if isinstance(typed, JSONRPCResponse):
            try:
                typed = self._repaired(typed, request)
            except ProtocolError as error:
                self._fail_request(request, error)
                return
        self._take(request.request_id)
        self._deliver(typed)

    def _repaired(self, answer: JSONRPCResponse, request: OpenRequest) -> JSONRPCResponse:
        result, repairs = self._repairer.repair(request.method, answer.result)
        request.exchange.raw = answer.result
        request.exchange.repairs = repairs
        return JSONRPCResponse(jsonrpc="2.0", id=answer.id, result=result)

    def _deliver(self, message: TypedMessage) -> None:
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._inbox.send_nowait(SessionMessage(message))

    # Requests that wait ----------------------------------------------------------------

    def _open_request(self, request_id: Any) -> OpenRequest | None:
        """Return the request that waits under this id."""
        narrowed = as_request_id(request_id)
        return None if narrowed is None else self._open.get(coerce_request_id(narrowed))

    def _take(self, request_id: Any) -> OpenRequest | None:
        narrowed = as_request_id(request_id)
        return None if narrowed is None else self._open.pop(coerce_request_id(narrowed), None)

    def _waits(self, request: OpenRequest) -> bool:
        return self._open_request(request.request_id) is request

    def _only_one_waiting(self) -> OpenRequest | None:
        """Return the request that an error without an id must mean; a subscription waits for no answer."""
        waiting = [request for request in self._open.values() if request.method != LISTEN]
        return waiting[0] if len(waiting) == 1 else None

    # Failing ---------------------------------------------------------------------------

    def _fail_request(self, request: OpenRequest, error: MCPClientError) -> None:
        """Let one request fail; the others go on."""
        if not self._waits(request):
            return
        self._take(request.request_id)
        if request.method == PROBE and self._probe_timeout is not None and not tells_the_era(error):
            self._verdict = error
        self._deliver(JSONRPCError(jsonrpc="2.0", id=request.request_id, error=carrying(error).error))

    def _fail(self, failure: MCPClientError) -> None:
        """Take the link down: every waiting request fails, later ones at once. The first reason stays."""
        if self.failure is None:
            self.failure = failure
            probing = self._probe_timeout is not None and any(
                request.method == PROBE for request in self._open.values()
            )
            self.died_on_probe = probing and isinstance(failure, ConnectionLostError | ServerCrashedError)
        # First of all: who waits for a request may try again at once, and must not find the link up.
        if not self.closed.done():
            self.closed.set_result(None)
        for request in list(self._open.values()):
            self._fail_request(request, self.failure_for(request.exchange))
            self._drop(request)
        self._inbox.close()

    def withdraw(self, exchange: Exchange) -> None:
        """Send nothing more of a request whose call has ended, though the SDK's tasks may still hold it."""
        exchange.withdrawn = True
        for request in [each for each in self._open.values() if each.exchange is exchange]:
            self._take(request.request_id)
            self._drop(request)

    def failure_for(self, exchange: Exchange) -> MCPClientError:
        """Return the reason why the link is down, as it concerns one request."""
        assert self.failure is not None
        error = self.failure.copy()
        error.__cause__ = self.failure
        if hasattr(error, "sent"):
            error.sent = exchange.sent
        return error

    # Work in the background ------------------------------------------------------------

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something that ends at the latest when the link is closed."""
        task = spawn(work, f"Sending to {self.server!r}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _end_tasks(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _courtesy(self, work: Coroutine[Any, Any, None]) -> None:
        """Tell the server something that it need not know, for a short while only."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(COURTESY_SECONDS):
                await work

    # Pieces ----------------------------------------------------------------------------

    def _note(self, direction: str, item: SessionMessage) -> None:
        if self.trace is not None:
            self.trace(direction, dumped(item))

    def _note_noise(self, text: str) -> None:
        self.noise_count += 1
        self.noise_last = self._redact(text)[:200]  # in this order: half a secret would not be known as one
        logger.debug("Noise from %r: %s", self.server, self.noise_last)
