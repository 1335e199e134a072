"""What the SDK's streamable HTTP transport sees instead of a network.

Its requests go to our transport by what they mean. The answers given here say only what it has to do
next; what servers say goes another way.
"""

from __future__ import annotations

from typing import Any, Protocol

import httpx2
from mcp_types import RequestId

from mcp_client_app import json_codec
from mcp_client_app.client.event_stream import EventStreamParser
from mcp_client_app.client.http import HttpClient
from mcp_client_app.client.http_session import EVENT_STREAM
from mcp_client_app.client.httpx_adapter import HttpxAdapter

__all__ = ["COMPLETION", "StreamableAdapter", "done", "event_stream", "position_of"]

_DONE = b'{"jsonrpc":"2.0","id":0,"result":{}}'
COMPLETION = b"data: %b\n\n" % _DONE
"""An event that makes the SDK regard the request of its stream as answered."""


class Exchanges(Protocol):
    """What the adapter asks for what it is asked for."""

    async def post_request(self, request_id: RequestId, headers: httpx2.Headers) -> httpx2.Response: ...

    async def post_message(self, message: dict[str, Any], headers: httpx2.Headers) -> httpx2.Response: ...

    async def resume(self, headers: httpx2.Headers) -> httpx2.Response: ...


class StreamableAdapter(HttpxAdapter):
    """Takes the SDK's HTTP requests for what they mean."""

    def __init__(self, exchanges: Exchanges, client: HttpClient) -> None:
        super().__init__(client)
        self._exchanges = exchanges

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer without ever raising: that would end the SDK's transport, and with it all requests."""
        if request.method == "GET":
            return await self._exchanges.resume(request.headers)
        message = json_codec.loads(await request.aread())
        if "method" in message and "id" in message:
            return await self._exchanges.post_request(message["id"], request.headers)
        return await self._exchanges.post_message(message, request.headers)


def done() -> httpx2.Response:
    """Make the SDK regard a request as answered."""
    return httpx2.Response(200, headers={"content-type": "application/json"}, content=_DONE)


def event_stream(body: httpx2.AsyncByteStream | bytes) -> httpx2.Response:
    """Give the SDK events to follow; bytes are all of them."""
    headers = {"content-type": EVENT_STREAM}
    if isinstance(body, bytes):
        return httpx2.Response(200, headers=headers, content=body)
    return httpx2.Response(200, headers=headers, stream=body)


def position_of(parser: EventStreamParser) -> bytes:
    """Tell the SDK where, and when, a stream can be taken up again."""
    retry = "" if parser.retry is None else f"retry: {parser.retry}\n"
    return f"id: {parser.last_event_id}\n{retry}data:\n\n".encode()
