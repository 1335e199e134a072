"""The dispatcher for streamable HTTP: each request is a POST of its own, and fails alone.

Both eras: up to 2025-11-25 there are sessions, a GET stream for the server's own messages and streams
that can be taken up again; in 2026-07-28 there are only POSTs, and closing one cancels it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.shared.dispatcher import CallOptions

from mcp_client_app import json_codec
from mcp_client_app.client.decoding import decoded, in_utf8
from mcp_client_app.client.dispatch import BaseDispatcher, Pending
from mcp_client_app.client.event_stream import EventStreamParser, ServerEvent
from mcp_client_app.client.exchange import Exchange
from mcp_client_app.client.http import HttpClient, Response
from mcp_client_app.client.http_farewell import end_session, let_finish, session_lost
from mcp_client_app.client.http_faults import BODY_LIMIT, FaultReader, Refusal
from mcp_client_app.client.http_session import EVENT_STREAM, PROTOCOL_VERSION, SESSION_ID, HttpSession
from mcp_client_app.client.http_streams import (
    ServerStream,
    StreamEnd,
    read_events,
    read_refusal,
    retry_delay,
)
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.client.redaction import Redactor
from mcp_client_app.client.rpc_messages import LISTEN, has_id, pick_answer
from mcp_client_app.datatypes import ServerSpec
from mcp_client_app.exceptions import (
    ConnectionLostError,
    MCPClientError,
    ServerUnavailableError,
    TransportError,
)

__all__ = ["HttpDispatcher"]

logger = logging.getLogger(__name__)

JSON = "application/json"
MAX_RESUMES = 5
"""Tries in a row, none of which brought anything, to take up the stream of a request again."""
COURTESY_SECONDS = 5.0
"""For telling the server that a request was given up."""


class HttpDispatcher(BaseDispatcher):
    """Speaks JSON-RPC with one URL."""

    kind = "streamable-http"

    def __init__(
        self,
        spec: ServerSpec,
        client: HttpClient,
        *,
        repairer: Repairer,
        redactor: Redactor,
        max_frame_size: int,
        queue_size: int = 1000,
        resume_delay: float = 1.0,
    ) -> None:
        """Take over ``client``: it is closed by ``aclose``.

        Args:
            spec: Name, strictness and ``terminate_on_close`` are read.
            client: Opens the connections.
            repairer: Mends results.
            redactor: Takes the server's secrets out of what error messages quote.
            max_frame_size: Bytes of a decoded body, or of one event.
            queue_size: Notifications that may wait for the session.
            resume_delay: Seconds before a stream is taken up again, if the server names no time.
        """
        super().__init__(server=spec.name, repairer=repairer, queue_size=queue_size)
        self._strict_parsing = spec.strict.parse_errors
        self._terminates = spec.terminate_on_close
        self._client = client
        self._max_frame_size = max_frame_size
        self._resume_delay = resume_delay
        self._session = HttpSession(spec.name, spec.strict)
        self.redact = lambda text: redactor(self._session.redact(text))
        self._faults = FaultReader(spec.name, self.redact)
        self._tasks: set[asyncio.Future[Any]] = set()
        self._is_listening = False

    async def aclose(self, timeout: float) -> None:
        """End the session, fail what still waits, close all connections. May be called again.

        Args:
            timeout: Seconds for the farewell, of which at most three are used; 0 = no limit of the caller's.
        """
        terminate = self._terminates and self.failure is None
        self._fail(
            ConnectionLostError(f"The connection to {self.server!r} has been closed.", server=self.server)
        )
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
            if terminate:
                await end_session(self._client, self._session, timeout)
        finally:
            self._session.begin()
            await self._client.aclose()

    # What the base class asks for ------------------------------------------------------

    async def _send_request(self, message: dict[str, Any], pending: Pending, opts: CallOptions) -> None:
        running = True

        def stop(_: object) -> None:
            # The link went down, or the answer came by another way: the POST is of no use any more.
            if running:
                scope.reschedule(0)

        pending.future.add_done_callback(stop)
        with contextlib.suppress(TimeoutError):  # says that it was stopped
            async with asyncio.timeout(None) as scope:
                try:
                    await self._post_request(message, pending, opts)
                finally:
                    running = False

    async def _send_message(self, message: dict[str, Any], opts: CallOptions) -> None:
        try:
            await self._post_message(message, opts)
        except MCPClientError as error:
            what = message.get("method", "an answer")
            logger.debug("Could not send %s to %r: %s", what, self.server, error)
            return
        if message.get("method") == "notifications/initialized":
            self._listen()

    def _abandon(self, pending: Pending, reason: str) -> None:
        if self._session.is_modern:
            return  # the POST has been closed, which is the message
        params = {"requestId": pending.request_id, "reason": reason}
        self._spawn(
            self._post_courtesy({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        )

    def _spawn(self, coroutine: Any) -> None:
        """Run something in the background that ends at the latest when the link is closed."""
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.debug("A background task of %r failed.", self.server, exc_info=error)

    # Requests --------------------------------------------------------------------------

    def _post(
        self, message: dict[str, Any], opts: CallOptions, exchange: Exchange | None = None
    ) -> AbstractAsyncContextManager[Response]:
        headers = self._session.post_headers(opts.get("headers"))
        return self._client.request(
            "POST", headers=headers, body=json_codec.dumps(message), exchange=exchange
        )

    async def _post_request(self, message: dict[str, Any], pending: Pending, opts: CallOptions) -> None:
        is_handshake = pending.method == "initialize"
        if is_handshake:
            self._session.begin()
        broken: EventStreamParser | None = None
        async with self._post(message, opts, pending.exchange) as response:
            if response.status >= 300:
                self._take_refusal(await read_refusal(response), pending)
                return
            if is_handshake:
                self._session.learn(response.header(SESSION_ID))
            named_version = response.header(PROTOCOL_VERSION)
            self._session.check_version(named_version)
            if response.content_type == EVENT_STREAM:
                parser = self._new_parser()
                if not await self._take_stream(response, parser, pending):
                    broken = parser
            else:
                await self._take_body(response, pending)
        if broken is not None:
            await self._resume(broken, pending)
        answer = pending.future
        if is_handshake and answer.done() and not answer.cancelled() and answer.exception() is None:
            self._session.check_handshake(named_version, answer.result())

    async def _take_body(self, response: Response, pending: Pending) -> None:
        if response.content_type != JSON and not response.content_type.endswith("+json"):
            raise self._faults.no_answer(await read_refusal(response))
        body = in_utf8(await response.read(self._max_frame_size), response.charset)
        try:
            message = await decoded(body)
        except ValueError:
            message = None
        if message is None or not self._deliver(message, len(body), pending):
            raise self._faults.no_answer(Refusal(response.status, response.content_type, body[:BODY_LIMIT]))

    async def _take_stream(self, response: Response, parser: EventStreamParser, pending: Pending) -> bool:
        """Read the events of a request; say whether its answer was among them."""

        async def handle(event: ServerEvent) -> bool:
            return await self._take_event(event, pending) or pending.future.done()

        try:
            answered = await read_events(response, parser, handle)
        except TransportError as error:
            logger.debug("The event stream of %r from %r broke: %s", pending.method, self.server, error)
            return False
        if answered:
            response.finish()
        return answered

    async def _resume(self, parser: EventStreamParser, pending: Pending) -> None:
        """Wait for the answer on further streams, where the era and the server allow that."""
        barren = 0
        while parser.last_event_id is not None and not self._session.is_modern and barren < MAX_RESUMES:
            parser = parser.continued()
            await asyncio.sleep(retry_delay(parser, self._resume_delay))
            position = parser.last_event_id
            try:
                async with self._client.request(
                    "GET", headers=self._session.get_headers(position)
                ) as response:
                    if response.status >= 300:
                        refusal = await read_refusal(response)
                        if self._session.ended_by(refusal):
                            self._lose_session(refusal.status, pending)  # the request itself may have run
                            return
                        if refusal.is_final:
                            break
                    elif await self._take_stream(response, parser, pending):
                        return
            except (TransportError, ServerUnavailableError) as error:
                logger.debug("Could not resume %r of %r: %s", pending.method, self.server, error)
            barren = 0 if parser.last_event_id != position else barren + 1
        raise TransportError(
            f"The server {self.server!r} ended its event stream without an answer to {pending.method!r}.",
            server=self.server,
        )

    def _take_refusal(self, refusal: Refusal, pending: Pending) -> None:
        """Settle or raise what an answer without success means."""
        if self._session.ended_by(refusal, pending.method, pending.request_id):
            pending.exchange.sent = False  # a session that is gone carries nothing out
            self._lose_session(refusal.status, pending)
            return
        pending.exchange.sent = pending.exchange.sent and refusal.may_have_run
        error = None if refusal.is_ours else refusal.rpc_error
        if error is None or not self._deliver(error, len(refusal.body), pending):
            raise self._faults.fault(refusal)

    # Messages --------------------------------------------------------------------------

    async def _take_event(self, event: ServerEvent, pending: Pending | None = None) -> bool:
        """Route what an event carries; say whether it answered ``pending``."""
        if event.name != "message" or not event.data:
            return False
        try:
            message = await decoded(event.data)
        except ValueError:
            self._note_noise(f"an event that is no JSON: {event.data[:200].decode('utf-8', 'replace')}")
            if self._strict_parsing:
                self._fail(
                    TransportError(
                        f"The server {self.server!r} sent an event that is no JSON.", server=self.server
                    )
                )
            return False
        return self._deliver(message, len(event.data), pending)

    def _deliver(self, message: Any, size: int, pending: Pending | None) -> bool:
        """Route a message or a batch (2025-03-26); say whether it answered ``pending``.

        An answer on a request's own stream answers that request, whatever id it bears.
        """
        if pending is None:
            for item in message if isinstance(message, list) else [message]:
                self._receive(item, size)
            return False
        answer, others = pick_answer(message, pending.request_id)
        for item in others:
            self._receive(item, size)
        if answer is None:
            return False
        if not has_id(answer, pending.request_id):
            if answer.get("id") is not None:
                self._note_noise(f"an answer to {pending.method!r} bore another id")
            answer = {**answer, "id": pending.request_id}
        self._receive(answer, size)
        return True

    async def _post_message(self, message: dict[str, Any], opts: CallOptions) -> None:
        async with self._post(message, opts) as response:
            if response.status < 300:
                response.finish()
                return
            refusal = await read_refusal(response)
        if self._session.ended_by(refusal):
            self._lose_session(refusal.status)
        raise self._faults.fault(refusal)

    async def _post_courtesy(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(COURTESY_SECONDS):
                await self._tell(message, {})

    # The session -----------------------------------------------------------------------

    def _new_parser(self) -> EventStreamParser:
        return EventStreamParser(self._max_frame_size, server=self.server)

    def _listen(self) -> None:
        """Open the stream for the server's own messages, once per link."""
        if self._is_listening or self._session.is_modern or self.failure is not None:
            return
        self._is_listening = True
        self._spawn(self._follow_server())

    async def _follow_server(self) -> None:
        stream = ServerStream(
            self._client, self._session, self._take_event, self._new_parser(), delay=self._resume_delay
        )
        end = await stream.run()
        logger.debug("The server %r has no stream of messages any more: %s.", self.server, end.value)
        if end is StreamEnd.SESSION_LOST:
            self._lose_session(404)

    def _lose_session(self, status: int, pending: Pending | None = None) -> None:
        """Take the link down, for new requests at once; ``pending`` has found out."""
        known, failure = self.failure, self.failure or session_lost(self.server, status)
        self.failure = failure
        if pending is not None:
            self._settle(pending, self._failure_for(pending.exchange))
        if not self._are_waiting():
            self._fail(failure)
        elif known is None:
            self._spawn(let_finish(self._are_waiting, lambda: self._fail(failure)))

    def _are_waiting(self) -> bool:
        return any(each.method != LISTEN and not each.future.done() for each in self._pending.values())
