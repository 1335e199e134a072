"""Streamable HTTP under the SDK's client: it decides what is sent when; connections and reading are ours.

What comes back is read here, under our limits, and delivered at once. The SDK's transport is told no more
than that a request is done with, or where its stream can be taken up again. Of the session it knows
nothing: it would log the id, and give up the stream of the server's own messages after two tries.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, RequestId

from mcp_client_app import json_codec
from mcp_client_app.client.decoding import decoded, in_utf8
from mcp_client_app.client.event_stream import EventStreamParser, ServerEvent
from mcp_client_app.client.http import HttpClient, Response
from mcp_client_app.client.http_farewell import end_session, let_finish, session_lost
from mcp_client_app.client.http_faults import BODY_LIMIT, FaultReader, Refusal
from mcp_client_app.client.http_session import EVENT_STREAM, PROTOCOL_VERSION, SESSION_ID, HttpSession
from mcp_client_app.client.http_streams import ServerStream, StreamEnd, read_refusal
from mcp_client_app.client.httpx_adapter import AdaptedBody, httpx_client, passed_on
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.client.rpc_messages import LISTEN, TypedMessage, has_id, pick_answer, typed_message
from mcp_client_app.client.stock_adapter import (
    COMPLETION,
    StreamableAdapter,
    done,
    event_stream,
    position_of,
)
from mcp_client_app.client.stock_transport import OpenRequest, StockTransport, dumped
from mcp_client_app.datatypes import ServerSpec, safe_url
from mcp_client_app.exceptions import (
    MCPClientError,
    ProtocolError,
    ResultTooLargeError,
    ServerUnavailableError,
    TransportError,
)

__all__ = ["StreamableTransport"]

logger = logging.getLogger(__name__)

JSON = "application/json"
LAST_EVENT = "last-event-id"
MAX_RESUMES = 5
"""Tries in a row, none of which brought anything, to take up the stream of a request again."""
REOPEN_SECONDS = 1.0
"""Before the stream of the server's own messages is opened again, if the server names no time."""


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
        self._handshake_version: str | None = None
        """As the header of the answer to ``initialize`` names it."""
        self._write: Any = None

    # The SDK's side --------------------------------------------------------------------

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        stack.push_async_callback(self._client.aclose)
        if self._spec.terminate_on_close:
            stack.push_async_callback(self._end_session)
        stack.push_async_callback(self._end_tasks)
        http = await stack.enter_async_context(httpx_client(StreamableAdapter(self, self._client)))
        read, self._write = await stack.enter_async_context(
            streamable_http_client(
                safe_url(self._client.url),  # the adapter knows the rest, which may be secret
                http_client=http,
                terminate_on_close=False,
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
                self._fail_request(request, self._no_end(request))

    async def _send(self, item: SessionMessage, request: OpenRequest | None) -> None:
        # The SDK encodes what it is given, and what it cannot encode (lone surrogates) would end all.
        body = json_codec.dumps(dumped(item))
        if request is not None:
            request.body = body
            # It needs no more of it, and writes less to its log.
            message: TypedMessage | None = JSONRPCRequest(
                jsonrpc="2.0", id=request.request_id, method=request.method
            )
        else:
            message = typed_message(json_codec.loads(body))
        assert message is not None
        await self._write.send(SessionMessage(message, item.metadata))

    async def _cancel(self, item: SessionMessage, request: OpenRequest | None) -> None:
        if request is not None:
            await self._send(item, None)
            self._drop(request)  # the SDK closes the POST itself in the new era only

    def _drop(self, request: OpenRequest) -> None:
        if (scope := self._scopes.get(request)) is not None:
            scope.reschedule(0)

    # Requests --------------------------------------------------------------------------

    async def post_request(self, request_id: RequestId, headers: httpx2.Headers) -> httpx2.Response:
        """Send a request; returns what the SDK shall believe to be the answer."""
        request = self._open_request(request_id)
        if request is None:
            return done()
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with self._until_dropped(request):
                    response = await self._exchange(stack, headers, request)
            except MCPClientError as error:
                self._fail_request(request, error)
            except _DroppedError:
                pass
            else:
                if response is not None:
                    return event_stream(AdaptedBody(self._events_for(request, response), stack.pop_all()))
        return done()

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
        headers: httpx2.Headers,
        request: OpenRequest,
    ) -> Response | None:
        """Send a request and take its answer; returns the response if the answer comes as a stream."""
        is_handshake = request.method == "initialize"
        if is_handshake:
            self._session.begin()
        response = await stack.enter_async_context(
            self._client.request(
                "POST", headers=self._headers(headers), body=request.body, exchange=request.exchange
            )
        )
        if response.status >= 300:
            self._take_refusal(await read_refusal(response), request)
            return None
        named_version = response.header(PROTOCOL_VERSION)
        if is_handshake:
            self._session.learn(response.header(SESSION_ID))
            self._handshake_version = named_version
        self._session.check_version(named_version)
        if response.content_type == EVENT_STREAM:
            return response
        if response.content_type != JSON and not response.content_type.endswith("+json"):
            raise self._faults.no_answer(await read_refusal(response))
        body = in_utf8(await response.read(self._max_frame_size), response.charset)
        try:
            is_answered = self._route(await decoded(body), len(body), request)
        except ValueError:
            is_answered = False
        if not is_answered:
            raise self._faults.no_answer(Refusal(response.status, response.content_type, body[:BODY_LIMIT]))
        return None

    def _take_refusal(self, refusal: Refusal, request: OpenRequest) -> None:
        if self._session.ended_by(refusal, request.method, request.request_id):
            request.exchange.sent = False  # a session that is gone carries nothing out
            self._lose_session(refusal.status, request)
            return
        request.exchange.sent = request.exchange.sent and refusal.may_have_run
        error = None if refusal.is_ours else refusal.rpc_error
        if error is None:
            raise self._faults.fault(refusal)
        self._route(error, len(refusal.body), request)

    async def _events_for(self, request: OpenRequest, response: Response) -> AsyncIterator[bytes]:
        """Take the events of a request; yields what the SDK needs of them."""
        parser = self._new_parser()
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
                if parser.last_event_id not in (None, request.position) and not self._session.is_modern:
                    request.position, request.tries = parser.last_event_id, 0
                    yield position_of(parser)
        except _DroppedError:
            pass
        except TransportError as error:
            logger.debug("The event stream of %r from %r broke: %s", request.method, self.server, error)
            return
        except (ProtocolError, ResultTooLargeError) as error:
            self._fail_request(request, error)
        yield COMPLETION

    async def resume(self, headers: httpx2.Headers) -> httpx2.Response:
        """Take up the event stream of a request again."""
        position = headers.get(LAST_EVENT)
        request = next((each for each in self._open.values() if each.position == position), None)
        if request is None:
            return event_stream(COMPLETION)
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with self._until_dropped(request):
                    response = await stack.enter_async_context(
                        self._client.request("GET", headers=self._headers(headers))
                    )
                    if response.status < 300:
                        chunks = self._events_for(request, response)
                        return event_stream(AdaptedBody(chunks, stack.pop_all()))
                    refusal = await read_refusal(response)
                if self._session.ended_by(refusal):
                    self._lose_session(refusal.status, request)  # the request itself may have run
                is_hopeless = refusal.is_final
            except (TransportError, ServerUnavailableError) as error:
                logger.debug("Could not resume %r of %r: %s", request.method, self.server, error)
                is_hopeless = False
            except MCPClientError as error:
                self._fail_request(request, error)
                is_hopeless = True
            except _DroppedError:
                is_hopeless = True
        request.tries += 1
        if is_hopeless or request.tries >= MAX_RESUMES:
            self._fail_request(request, self._no_end(request))
        # An empty stream, unlike an error, makes the SDK try again.
        return event_stream(b"" if self._waits(request) else COMPLETION)

    def _no_end(self, request: OpenRequest) -> TransportError:
        return TransportError(
            f"The server {self.server!r} ended its event stream without an answer to {request.method!r}.",
            server=self.server,
        )

    # Other messages --------------------------------------------------------------------

    async def post_message(self, message: dict[str, Any], headers: httpx2.Headers) -> httpx2.Response:
        """Send a notification or an answer; failing is of no consequence to the SDK."""
        work = self._tell(message, self._headers(headers))
        if message.get("method") == "notifications/initialized":
            await work  # requests are refused by strict servers before it
            if not self._session.is_modern:
                self._spawn(self._follow_server())
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
            if self._session.ended_by(refusal):
                self._lose_session(refusal.status)
            raise self._faults.fault(refusal)
        except MCPClientError as error:
            what = message.get("method", "an answer")
            logger.debug("Could not send %s to %r: %s", what, self.server, error)

    # The session -----------------------------------------------------------------------

    async def _follow_server(self) -> None:
        """Hear what the server says of its own accord."""
        stream = ServerStream(
            self._client, self._session, self._take_event, self._new_parser(), delay=REOPEN_SECONDS
        )
        end = await stream.run()
        logger.debug("The server %r has no stream of messages any more: %s.", self.server, end.value)
        if end is StreamEnd.SESSION_LOST:
            self._lose_session(404)

    def _lose_session(self, status: int, request: OpenRequest | None = None) -> None:
        """Take the link down, for new requests at once; ``request`` has found out."""
        known, failure = self.failure, self.failure or session_lost(self.server, status)
        self.failure = failure
        if request is not None:
            self._fail_request(request, self.failure_for(request.exchange))
        if not self._are_waiting():
            self._fail(failure)
        elif known is None:
            self._spawn(let_finish(self._are_waiting, lambda: self._fail(failure)))

    def _are_waiting(self) -> bool:
        return any(request.method != LISTEN for request in self._open.values())

    async def _end_session(self) -> None:
        if self.failure is None:
            await end_session(self._client, self._session, self._spec.shutdown_timeout)

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
        """Deliver a message or a batch (2025-03-26); say whether it answered ``request``.

        Raises:
            ProtocolError: It answers the handshake and breaks a rule that ``strict`` asks to be kept.
        """
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
        if request.method == "initialize" and isinstance(answer.get("result"), dict):
            self._session.check_handshake(self._handshake_version, answer["result"])
        self._receive({**answer, "id": request.request_id}, size)
        return True

    def _headers(self, stamped: httpx2.Headers) -> dict[str, str]:
        """Return what is sent for the headers that the SDK gave: the session is known here only."""
        headers = passed_on(stamped)
        self._session.version = headers.get(PROTOCOL_VERSION, self._session.version)
        return headers | self._session.headers()

    def _new_parser(self) -> EventStreamParser:
        return EventStreamParser(self._max_frame_size, server=self.server)


class _DroppedError(Exception):
    """Nobody waits for the request any more."""
