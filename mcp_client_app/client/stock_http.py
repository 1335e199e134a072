"""Streamable HTTP under the SDK's client: its sessions and resuming, our connections and our reading.

The SDK's transport decides what is sent when. What comes back is read here, under our limits, and
delivered at once; the SDK is told no more than that a request is done with, where a stream could be taken
up again, and that there is a session. The session's id it never sees, since it logs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, RequestId

from mcp_client_app import json_codec
from mcp_client_app.client.decoding import decoded
from mcp_client_app.client.event_stream import EventStreamParser, ServerEvent
from mcp_client_app.client.http import HttpClient, Response
from mcp_client_app.client.http_faults import BODY_LIMIT, FaultReader, Refusal
from mcp_client_app.client.http_session import EVENT_STREAM, PROTOCOL_VERSION, SESSION_ID, HttpSession
from mcp_client_app.client.http_streams import read_refusal
from mcp_client_app.client.httpx_adapter import AdaptedBody, HttpxAdapter, httpx_client, passed_on
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.client.rpc_messages import has_id, pick_answer
from mcp_client_app.client.stock_transport import OpenRequest, StockTransport
from mcp_client_app.datatypes import ServerSpec, safe_url
from mcp_client_app.exceptions import (
    ConnectionLostError,
    MCPClientError,
    ResultTooLargeError,
    TransportError,
)

__all__ = ["StreamableTransport"]

logger = logging.getLogger(__name__)

JSON = "application/json"
LAST_EVENT = "last-event-id"
STAND_IN = "session"
"""What the SDK takes for the id of the session."""
TERMINATION_SECONDS = 3.0
"""For ending the session when closing."""


class StreamableTransport(StockTransport):
    """The SDK's streamable HTTP client, over an adapter that keeps each fault with its request."""

    def __init__(
        self,
        spec: ServerSpec,
        client: HttpClient,
        *,
        repairer: Repairer,
        redact: Callable[[str], str],
        max_frame_size: int,
        probe_timeout: float | None = None,
    ) -> None:
        """Take over ``client``: it is closed with the transport."""
        self._session = HttpSession(spec.name, spec.strict)

        def without_secrets(text: str) -> str:
            return redact(self._session.redact(text))

        super().__init__(
            server=spec.name, repairer=repairer, redact=without_secrets, probe_timeout=probe_timeout
        )
        self._spec = spec
        self._client = client
        self._max_frame_size = max_frame_size
        self._faults = FaultReader(spec.name, without_secrets)
        self._scopes: dict[OpenRequest, asyncio.Timeout] = {}
        """What ends the POST of each request."""
        self._write: Any = None

    # The SDK's side --------------------------------------------------------------------

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        stack.push_async_callback(self._client.aclose)
        stack.push_async_callback(self._end_tasks)
        http = await stack.enter_async_context(httpx_client(_Adapter(self, self._client)))
        read, self._write = await stack.enter_async_context(
            streamable_http_client(
                safe_url(self._client.url),  # the adapter knows the rest, which may be secret
                http_client=http,
                terminate_on_close=self._spec.terminate_on_close,
                max_sse_event_size=None,
            )
        )
        self._spawn(self._drain(read))

    async def _drain(self, read: Any) -> None:
        """Hear what the SDK's transport says of its own accord: that a stream cannot be taken up again."""
        async for item in read:
            message = None if isinstance(item, Exception) else item.message
            request = self._open_request(message.id) if isinstance(message, JSONRPCError) else None
            if request is not None:
                self._fail_request(
                    request,
                    TransportError(
                        f"The server {self.server!r} ended its event stream "
                        f"without an answer to {request.method!r}.",
                        server=self.server,
                    ),
                )

    async def _send(self, item: SessionMessage, request: OpenRequest | None) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._write.send(item)

    async def _cancel(self, item: SessionMessage, request: OpenRequest | None) -> None:
        if request is not None:
            await self._send(item, None)
            self._drop(request)  # the SDK closes the POST itself in the new era only

    def _drop(self, request: OpenRequest) -> None:
        if (scope := self._scopes.get(request)) is not None:
            scope.reschedule(0)

    # Requests --------------------------------------------------------------------------

    async def post_request(self, message: dict[str, Any], headers: httpx2.Headers) -> httpx2.Response:
        """Send a request; returns what the SDK shall believe to be the answer."""
        request = self._open_request(message["id"])
        if request is None:
            return _done(message["id"])
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with self._until_dropped(request):
                    response = await self._exchange(stack, message, headers, request)
            except MCPClientError as error:
                self._fail_request(request, error)
            except _DroppedError:
                pass
            else:
                if response is not None:
                    return _event_stream(AdaptedBody(self._events_for(request, response), stack.pop_all()))
        return _done(message["id"])

    @contextlib.asynccontextmanager
    async def _until_dropped(self, request: OpenRequest) -> AsyncIterator[None]:
        """Run the block until it is done, or nobody waits for the request any more."""
        if not self._waits(request):
            raise _DroppedError
        try:
            async with asyncio.timeout(None) as self._scopes[request]:
                yield
        except TimeoutError:
            raise _DroppedError from None
        finally:
            self._scopes.pop(request, None)

    async def _exchange(
        self,
        stack: contextlib.AsyncExitStack,
        message: dict[str, Any],
        headers: httpx2.Headers,
        request: OpenRequest,
    ) -> Response | None:
        """Send a request and take its answer; returns the response if the answer comes as a stream."""
        is_handshake = request.method == "initialize"
        if is_handshake:
            self._session.begin()
        body = json_codec.dumps(message)
        response = await stack.enter_async_context(
            self._client.request("POST", headers=self._headers(headers), body=body, exchange=request.exchange)
        )
        if response.status >= 300:
            self._take_refusal(await read_refusal(response), request)
            return None
        if is_handshake:
            self._session.learn(response.header(SESSION_ID))
        self._session.check_version(response.header(PROTOCOL_VERSION))
        if response.content_type == EVENT_STREAM:
            return response
        if response.content_type != JSON and not response.content_type.endswith("+json"):
            raise self._faults.no_answer(await read_refusal(response))
        body = await response.read(self._max_frame_size)
        try:
            is_answered = self._route(await decoded(body), len(body), request)
        except ValueError:
            is_answered = False
        if not is_answered:
            raise self._faults.no_answer(Refusal(response.status, response.content_type, body[:BODY_LIMIT]))
        return None

    def _take_refusal(self, refusal: Refusal, request: OpenRequest) -> None:
        if self._session.session_id is not None and refusal.ends_session(request.request_id):
            request.exchange.sent = False  # a session that is gone carries nothing out
            self._lose_session(refusal.status)
            return
        request.exchange.sent = request.exchange.sent and refusal.may_have_run
        error = None if refusal.is_ours else refusal.rpc_error
        if error is None:
            raise self._faults.fault(refusal)
        self._route(error, len(refusal.body), request)

    async def _events_for(self, request: OpenRequest, response: Response) -> AsyncIterator[bytes]:
        """Take the events of a request; yields what the SDK needs of them."""
        parser = self._new_parser()
        position: str | None = None
        try:
            while True:
                async with self._until_dropped(request):
                    chunk = await response.read_chunk()
                if not chunk:
                    return  # the SDK takes the stream up again, or reports that it cannot
                for event in parser.feed(chunk):
                    if await self._take_event(event, request):
                        response.finish()
                        raise _DroppedError
                if parser.last_event_id != position and not self._session.is_modern:
                    position = parser.last_event_id
                    yield _position(parser)
        except _DroppedError:
            pass
        except ResultTooLargeError as error:
            self._fail_request(request, error)
        yield _completion(request.request_id)

    # Other messages --------------------------------------------------------------------

    async def post_message(self, message: dict[str, Any], headers: httpx2.Headers) -> httpx2.Response:
        """Send a notification or an answer; failing is of no consequence to the SDK."""
        work = self._tell(message, self._headers(headers))
        if message.get("method") == "notifications/initialized":
            await work  # requests are refused by strict servers before it
        elif "method" in message:
            self._spawn(self._courtesy(work))  # the SDK sends nothing else while it waits for this
        else:
            self._spawn(work)
        return httpx2.Response(202)

    async def _tell(self, message: dict[str, Any], headers: dict[str, str]) -> None:
        try:
            async with self._client.request(
                "POST", headers=headers, body=json_codec.dumps(message)
            ) as response:
                if response.status < 300:
                    response.finish()
                    return
                refusal = await read_refusal(response)
            if self._session.session_id is not None and refusal.ends_session():
                self._lose_session(refusal.status)
            raise self._faults.fault(refusal)
        except MCPClientError as error:
            what = message.get("method", "an answer")
            logger.debug("Could not send %s to %r: %s", what, self.server, error)

    async def follow_stream(self, headers: httpx2.Headers) -> httpx2.Response:
        """Open the server's own stream, or take up that of a request.

        Raises:
            httpx2.TransportError: It failed.
        """
        async with contextlib.AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(
                    self._client.request("GET", headers=self._headers(headers))
                )
            except MCPClientError as error:
                raise httpx2.TransportError(str(error)) from error
            if response.status >= 300:
                refusal = await read_refusal(response)
                if self._session.session_id is not None and LAST_EVENT in headers and refusal.ends_session():
                    self._lose_session(refusal.status)
            elif response.content_type == EVENT_STREAM:
                return _event_stream(AdaptedBody(self._events(response), stack.pop_all()))
        return httpx2.Response(response.status)

    async def _events(self, response: Response) -> AsyncIterator[bytes]:
        parser = self._new_parser()
        position: str | None = None
        while chunk := await response.read_chunk():
            for event in parser.feed(chunk):
                waiting = set(self._open)
                await self._take_event(event)
                for request_id in waiting - set(self._open):
                    yield _completion(request_id)
            if parser.last_event_id != position:
                position = parser.last_event_id
                yield _position(parser)

    async def end_session(self) -> httpx2.Response:
        """Tell the server that the session is over. Servers need not support it."""
        seconds = min(self._spec.shutdown_timeout or TERMINATION_SECONDS, TERMINATION_SECONDS)
        if self._session.session_id is not None and self.failure is None:
            try:
                async with asyncio.timeout(seconds):
                    async with self._client.request("DELETE", headers=self._session.headers()) as response:
                        response.finish()
            except (MCPClientError, TimeoutError) as error:
                logger.debug("The session of %r was not ended properly: %s", self.server, error)
        return httpx2.Response(204)

    # Pieces ----------------------------------------------------------------------------

    async def _take_event(self, event: ServerEvent, request: OpenRequest | None = None) -> bool:
        """Route what an event carries; say whether it answered ``request``."""
        if event.name != "message" or not event.data:
            return False
        try:
            message = await decoded(event.data)
        except ValueError:
            self._note_noise(f"an event that is no JSON: {event.data[:4000].decode('utf-8', 'replace')}")
            if self._spec.strict.parse_errors:
                self._fail(
                    TransportError(
                        f"The server {self.server!r} sent an event that is no JSON.", server=self.server
                    )
                )
            return False
        return self._route(message, len(event.data), request)

    def _route(self, message: Any, size: int, request: OpenRequest | None) -> bool:
        """Deliver a message or a batch (2025-03-26); say whether it answered ``request``."""
        if request is None:
            for item in message if isinstance(message, list) else [message]:
                self._receive(item, size)
            return False
        answer, others = pick_answer(message, request.request_id)
        for item in others:
            self._receive(item, size)
        if answer is None:
            return False
        if answer.get("id") is not None and not has_id(answer, request.request_id):
            self._note_noise(f"an answer to {request.method!r} bore another id")
        self._receive({**answer, "id": request.request_id}, size)
        return True

    def _headers(self, stamped: httpx2.Headers) -> dict[str, str]:
        """Return what is sent for the headers that the SDK gave: the session's real id is known here only."""
        headers = passed_on(stamped)
        self._session.version = headers.get(PROTOCOL_VERSION, self._session.version)
        headers.pop(SESSION_ID, None)
        return headers | self._session.headers()

    def _new_parser(self) -> EventStreamParser:
        return EventStreamParser(self._max_frame_size, server=self.server)

    def _lose_session(self, status: int) -> None:
        why = f"the server has ended the session (HTTP {status})."
        self._fail(
            ConnectionLostError(f"The connection to {self.server!r} was lost: {why}", server=self.server)
        )


class _Adapter(HttpxAdapter):
    """Takes the SDK's HTTP requests for what they mean."""

    def __init__(self, transport: StreamableTransport, client: HttpClient) -> None:
        super().__init__(client)
        self._transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return await self._transport.follow_stream(request.headers)
        if request.method == "DELETE":
            return await self._transport.end_session()
        message = json_codec.loads(await request.aread())
        if "method" in message and "id" in message:
            return await self._transport.post_request(message, request.headers)
        return await self._transport.post_message(message, request.headers)


class _DroppedError(Exception):
    """Nobody waits for the request any more."""


def _done(request_id: RequestId) -> httpx2.Response:
    """Tell the SDK that a request is answered; what the answer is, it has been told already."""
    body = json_codec.dumps({"jsonrpc": "2.0", "id": request_id, "result": {}})
    return httpx2.Response(200, headers={"content-type": JSON, SESSION_ID: STAND_IN}, content=body)


def _event_stream(body: httpx2.AsyncByteStream) -> httpx2.Response:
    return httpx2.Response(200, headers={"content-type": EVENT_STREAM, SESSION_ID: STAND_IN}, stream=body)


def _completion(request_id: RequestId) -> bytes:
    return b'data: {"jsonrpc":"2.0","id":%b,"result":{}}\n\n' % json_codec.dumps(request_id)


def _position(parser: EventStreamParser) -> bytes:
    """Tell the SDK where, and when, a stream can be taken up again."""
    retry = "" if parser.retry is None else f"retry: {parser.retry}\n"
    return f"id: {parser.last_event_id or ''}\n{retry}data:\n\n".encode()
