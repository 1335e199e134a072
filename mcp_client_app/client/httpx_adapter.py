"""Lets code that wants an httpx client use our HTTP: one module opens connections, whoever asks.

The SDK speaks HTTP through ``httpx2``. With this adapter as its client's transport, URL policy, TLS,
cookies, redirects and the names of failures are those of ``HttpClient``.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import httpx2

from mcp_client_app.client.exchange import Exchange, current_exchange
from mcp_client_app.client.http import HttpClient, Response
from mcp_client_app.exceptions import MCPClientError

__all__ = ["AdaptedBody", "HttpxAdapter", "httpx_client", "passed_on"]

_OWN_AFFAIR = frozenset(
    {"accept-encoding", "connection", "content-length", "cookie", "host", "transfer-encoding", "user-agent"}
)
"""Request headers that ``HttpClient`` makes itself."""
_USED_UP = frozenset({"connection", "content-encoding", "content-length", "set-cookie", "transfer-encoding"})
"""Response headers that are no longer true, or were not meant for anybody else, once it has read them."""


def passed_on(headers: httpx2.Headers) -> dict[str, str]:
    """Return the headers of a request that ``HttpClient`` has to send."""
    return {name: value for name, value in headers.items() if name not in _OWN_AFFAIR}


def httpx_client(adapter: HttpxAdapter) -> httpx2.AsyncClient:
    """Return a client that sends everything through ``adapter`` and adds no limits of its own."""
    return httpx2.AsyncClient(transport=adapter, timeout=None, trust_env=False, follow_redirects=False)


class HttpxAdapter(httpx2.AsyncBaseTransport):
    """An httpx transport over one ``HttpClient``, which stays the caller's to close."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the server of the client's URL; the body of the response streams.

        Raises:
            httpx2.TransportError: It failed; the cause is an exception of ours.
        """
        body = await request.aread()
        async with contextlib.AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(
                    self._client.request(
                        request.method,
                        url=str(request.url),
                        headers=passed_on(request.headers),
                        body=body or None,
                        exchange=current_exchange() or Exchange(),
                    )
                )
            except MCPClientError as error:
                raise httpx2.TransportError(str(error)) from error
            headers = [(name, value) for name, value in response.headers() if name.lower() not in _USED_UP]
            return httpx2.Response(
                response.status, headers=headers, stream=AdaptedBody(_chunks(response), stack.pop_all())
            )


class AdaptedBody(httpx2.AsyncByteStream):
    """A response's body; closing it lets go of the response."""

    def __init__(self, chunks: AsyncIterator[bytes], stack: contextlib.AsyncExitStack) -> None:
        self._chunks = chunks
        self._stack = stack

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._chunks:
                yield chunk
        except MCPClientError as error:
            raise httpx2.ReadError(str(error)) from error

    async def aclose(self) -> None:
        await self._stack.aclose()


async def _chunks(response: Response) -> AsyncIterator[bytes]:
    while chunk := await response.read_chunk():
        yield chunk
