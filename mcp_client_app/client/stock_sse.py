"""The HTTP transport of 2024-11-05 under the SDK's client: one event stream, and a POST for each message.

The SDK has a transport of its own for it, which leaves a call waiting whose POST fails, and which ends
with the first large event. Here each POST fails alone, and the end of the stream is known at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification

from mcp_client_app import json_codec
from mcp_client_app.client.decoding import decoded
from mcp_client_app.client.event_stream import EventStreamParser, ServerEvent
from mcp_client_app.client.exchange import Exchange
from mcp_client_app.client.http import HttpClient, Response
from mcp_client_app.client.http_faults import FaultReader
from mcp_client_app.client.http_session import EVENT_STREAM
from mcp_client_app.client.http_streams import read_events, read_refusal
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.client.redirects import stays_at
from mcp_client_app.client.stock_transport import OpenRequest, StockTransport, dumped
from mcp_client_app.datatypes import safe_url
from mcp_client_app.exceptions import ConnectionLostError, MCPClientError, TransportError

__all__ = ["SseTransport"]

logger = logging.getLogger(__name__)

JSON = {"content-type": "application/json"}
STREAM = {"accept": EVENT_STREAM, "cache-control": "no-store"}


class SseTransport(StockTransport):
    """Speaks with one URL; the server names there where to POST."""

    def __init__(
        self,
        client: HttpClient,
        *,
        server: str,
        repairer: Repairer,
        redact: Callable[[str], str],
        max_frame_size: int,
    ) -> None:
        """Take over ``client``: it is closed with the transport."""
        super().__init__(server=server, repairer=repairer, redact=redact)
        self._client = client
        self._max_frame_size = max_frame_size
        self._faults = FaultReader(server, redact)
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._posts: dict[OpenRequest, asyncio.Task[None]] = {}

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        stack.push_async_callback(self._client.aclose)
        stack.push_async_callback(self._end_tasks)
        self._spawn(self._follow())
        either: set[asyncio.Future[Any]] = {self._endpoint, self.closed}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if self.failure is not None:
            raise self.failure

    # The stream ------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Read the stream to its end, which is the end of the link."""
        try:
            async with self._client.request("GET", headers=STREAM) as response:
                if response.status >= 300:
                    raise self._faults.fault(await read_refusal(response))
                if response.content_type != EVENT_STREAM:
                    raise self._faults.no_answer(await read_refusal(response), "is no event stream")
                await self._read(response)
        except MCPClientError as error:
            self._fail(error if not self._endpoint.done() else self._lost(f"its event stream broke. {error}"))
        else:
            self._fail(self._lost("it ended its event stream."))

    async def _read(self, response: Response) -> None:
        await read_events(
            response, EventStreamParser(self._max_frame_size, server=self.server), self._take_event
        )

    async def _take_event(self, event: ServerEvent) -> bool:
        if event.name == "endpoint":
            self._learn_endpoint(event.data.decode("utf-8", "replace"))
        elif event.name == "message" and event.data:
            try:
                message = await decoded(event.data)
            except ValueError:
                self._note_noise(f"an event that is no JSON: {event.data[:4000].decode('utf-8', 'replace')}")
            else:
                self._receive(message, len(event.data))
        return False

    def _learn_endpoint(self, named: str) -> None:
        try:
            endpoint = urljoin(self._client.url, named.strip())
        except ValueError:
            endpoint = ""
        if not stays_at(self._client.url, endpoint):
            raise TransportError(
                f"The server {self.server!r} wants messages sent to another server, {safe_url(endpoint)}."
                " That is not done.",
                server=self.server,
                sent=False,
            )
        if not self._endpoint.done():
            self._endpoint.set_result(endpoint)

    def _lost(self, why: str) -> ConnectionLostError:
        return ConnectionLostError(f"The connection to {self.server!r} was lost: {why}", server=self.server)

    # Messages --------------------------------------------------------------------------

    async def _send(self, item: SessionMessage, request: OpenRequest | None) -> None:
        if request is not None:
            # In the background, for the answer may come by the stream before the POST is done with.
            task = self._posts[request] = self._spawn(self._post_request(item, request))
            task.add_done_callback(lambda _: self._posts.pop(request, None))
        elif isinstance(item.message, JSONRPCNotification):
            await self._post_message(item)  # what comes next may depend on it
        else:
            self._spawn(self._post_message(item))

    async def _cancel(self, item: SessionMessage, request: OpenRequest | None) -> None:
        if request is None:
            return
        self._drop(request)
        if request.exchange.sent:
            self._spawn(self._courtesy(self._post_message(item)))

    def _drop(self, request: OpenRequest) -> None:
        if (task := self._posts.get(request)) is not None:
            task.cancel()

    async def _post_request(self, item: SessionMessage, request: OpenRequest) -> None:
        try:
            await self._post(item, request)
        except MCPClientError as error:
            self._fail_request(request, error)

    async def _post_message(self, item: SessionMessage) -> None:
        try:
            await self._post(item, None)
        except MCPClientError as error:
            logger.debug("Could not send a message to %r: %s", self.server, error)

    async def _post(self, item: SessionMessage, request: OpenRequest | None) -> None:
        exchange = request.exchange if request is not None else Exchange()
        body = json_codec.dumps(dumped(item))
        async with self._client.request(
            "POST", url=self._endpoint.result(), headers=JSON, body=body, exchange=exchange
        ) as response:
            if response.status < 300:
                response.finish()
                return
            refusal = await read_refusal(response)
        exchange.sent = exchange.sent and refusal.may_have_run
        if refusal.ends_session():
            # The only address there is: the server knows this stream no more.
            self._fail(self._lost(f"the server has ended the session (HTTP {refusal.status})."))
            return
        error = None if refusal.is_ours else refusal.rpc_error
        if error is None or request is None:
            raise self._faults.fault(refusal)
        self._receive({**error, "id": request.request_id}, len(refusal.body))
