"""Opens HTTP connections: the only module that does; ``http_failures`` knows aiohttp, too, but opens nothing.

An ``HttpClient`` belongs to one connection: its cookies and sockets are shared with nobody.
It keeps the URL policy on the URL and on every socket, follows only redirects that stay at
the server, and turns every failure of the network into an exception of ours. It sets no
time limit: deadlines belong to the callers. It knows nothing of MCP.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import aiohttp

from mcp_client_app.client.exchange import Exchange
from mcp_client_app.client.http_failures import BlockedAddressError, how_broken, why_unreachable
from mcp_client_app.client.http_setup import checked_headers, find_proxy, new_socket, shared_tls_context
from mcp_client_app.client.redirects import REDIRECTS, follow, stays_at
from mcp_client_app.client.url_policy import AddressGuard, check_url
from mcp_client_app.datatypes import UrlPolicy, safe_url
from mcp_client_app.exceptions import (
    ConfigurationError,
    ConnectionLostError,
    MCPClientError,
    ResultTooLargeError,
    ServerUnavailableError,
    TransportError,
)

__all__ = ["HttpClient", "Response", "check_url"]

MAX_REDIRECTS = 3
MAX_HEADER_SIZE = 65_536
"""Longer than aiohttp's default: policies and cookies of gateways grow large."""
KEEPALIVE_SECONDS = 4.0
"""Below the five seconds of uvicorn and Node: a request on a connection being closed may be lost."""
LINGER_SECONDS = 1.0
LINGER_SIZE = 65_536
BEGINNING_SECONDS = 1.0
"""For the body of a refusal: its status says enough, and some servers never end it."""
USER_AGENT = "django-mcp-client-app"


class Response:
    """The answer to one request; valid inside the ``async with`` that gave it."""

    def __init__(self, client: HttpClient, answer: aiohttp.ClientResponse, exchange: Exchange) -> None:
        self._client = client
        self._answer = answer
        self._exchange = exchange
        self._lingers = False
        self.status = answer.status
        self.content_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        """The media type in lower case, without parameters; empty if the server named none."""
        self.charset = (answer.charset or "").lower()
        """The encoding that the server names for text, if it does; JSON has to be UTF-8 all the same."""

    def header(self, name: str) -> str | None:
        """Return the header of this name, in any case, or None."""
        return self._answer.headers.get(name)

    def headers(self) -> list[tuple[str, str]]:
        """Return all headers as received."""
        return list(self._answer.headers.items())

    async def read_chunk(self) -> bytes:
        """Return the next piece of the decoded body as soon as there is one; empty at its end.

        Raises:
            TransportError: The connection broke before the body was complete.
        """
        with self._client.translated(self._exchange):
            return await self._answer.content.readany()

    async def read(self, limit: int) -> bytes:
        """Return the whole decoded body.

        Raises:
            ResultTooLargeError: It is larger than ``limit`` bytes.
            TransportError: The connection broke before the body was complete.
        """
        parts: list[bytes] = []
        size = 0
        while chunk := await self.read_chunk():
            parts.append(chunk)
            size += len(chunk)
            if size > limit:
                raise ResultTooLargeError(
                    f"The answer of {self._client.server!r} is larger than {limit} bytes.",
                    server=self._client.server,
                    limit=limit,
                    size=size,
                )
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def read_beginning(self, limit: int) -> bytes:
        """Return at most ``limit`` bytes of the body, fewer if it breaks off or is not there in a second."""
        body = bytearray()
        with contextlib.suppress(MCPClientError, TimeoutError):
            async with asyncio.timeout(BEGINNING_SECONDS):
                while len(body) < limit and (chunk := await self.read_chunk()):
                    body += chunk
        return bytes(body[:limit])

    def finish(self) -> None:
        """Let the rest, which is not wanted, come in behind the scenes: its connection can serve again."""
        if not self._answer.content.at_eof():
            self._lingers = True
            self._client.linger(self._answer)

    def leave(self) -> None:
        """Give the connection back, or close it if the body was not read to its end."""
        if self._answer.content.at_eof():
            self._answer.release()
        elif not self._lingers:
            self._answer.close()


class HttpClient:
    """Sends requests to one URL. Must be made on the loop that uses it, and closed there."""

    def __init__(
        self,
        url: str,
        *,
        server: str,
        policy: UrlPolicy | None = None,
        headers: Mapping[str, str] | None = None,
        trust_env: bool = False,
        tls: ssl.SSLContext | None = None,
        on_connected: Callable[[], None] | None = None,
    ) -> None:
        """Check the configuration; nothing is sent yet.

        Args:
            url: Where every request goes, as written.
            server: The name for messages.
            policy: What may be reached; the default blocks nothing.
            headers: Sent with every request; values may be secret.
            trust_env: Use the proxies that the environment names. A proxy resolves names
                itself, so that an address is then checked only where the URL spells it out.
            tls: Instead of the context that the process shares.
            on_connected: Called once, when the first attempt to connect is over, well or badly.

        Raises:
            ConfigurationError: The URL or a header cannot be used.
        """
        self.url = url.strip()
        self.server = server
        policy = policy or UrlPolicy()
        parts = check_url(self.url, policy, server=server)
        host = parts.hostname or ""
        self._guard = AddressGuard(host, policy)
        self._proxy = find_proxy(parts.scheme, host, server=server) if trust_env else None
        self._on_connected = on_connected
        self._lingering: set[asyncio.Task[None]] = set()
        self._session = aiohttp.ClientSession(
            connector=_Connector(
                self._connected,
                limit=0,
                keepalive_timeout=KEEPALIVE_SECONDS,
                socket_factory=self._make_socket,
                ssl=tls or (shared_tls_context() if parts.scheme == "https" else True),
            ),
            headers={"user-agent": USER_AGENT, **checked_headers(headers or {}, server=server)},
            # Cookies of bare addresses are wanted, values go back verbatim: the jar serves one server.
            cookie_jar=aiohttp.CookieJar(unsafe=True, quote_cookie=False),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            trust_env=False,  # it would read .netrc, too
            max_line_size=MAX_HEADER_SIZE,
            max_field_size=MAX_HEADER_SIZE,
        )

    @contextlib.asynccontextmanager
    async def request(
        self,
        method: str,
        *,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        exchange: Exchange | None = None,
    ) -> AsyncIterator[Response]:
        """Send a request and give the response as soon as its headers are there.

        Leaving the block before the body has been read closes the connection.

        Args:
            method: ``GET``, ``POST`` or ``DELETE``. A POST is never repeated.
            url: Instead of the client's own; it has to be the same server's.
            headers: Override the client's own, whatever their case.
            body: The content of a POST.
            exchange: Its ``sent`` is set as soon as a byte of the body may have left.

        Raises:
            ConfigurationError: The URL policy forbids the address that the name stands for.
            ServerUnavailableError: No connection could be made; nothing was sent.
            AuthRequiredError: The server redirects to a login page.
            TransportError: Broken off before the answer began, a redirect that is not followed, or
                ``url`` is another server's.
            ConnectionLostError: The client has been closed.
        """
        exchange = exchange or Exchange()
        if url is not None and not stays_at(self.url, url):
            raise TransportError(
                f"The server {self.server!r} names {safe_url(url)}, another server, which is not asked.",
                server=self.server,
                sent=False,
            )
        try:
            answer = await self._open(method, url or self.url, headers, body, exchange)
        finally:
            self._connected()
        response = Response(self, answer, exchange)
        try:
            yield response
        finally:
            response.leave()

    async def aclose(self) -> None:
        """Close all connections. May be called again."""
        for task in self._lingering:
            task.cancel()
        await asyncio.gather(*self._lingering, return_exceptions=True)
        await self._session.close()

    def linger(self, answer: aiohttp.ClientResponse) -> None:
        """Read a response to its end, within bounds, in a task of its own."""
        task = asyncio.create_task(_read_to_end(answer))
        self._lingering.add(task)
        task.add_done_callback(self._lingering.discard)

    @contextlib.contextmanager
    def translated(self, exchange: Exchange) -> Iterator[None]:
        """Raise every failure of the network as one of our exceptions."""
        try:
            yield
        except MCPClientError:
            raise
        except (aiohttp.ClientError, OSError, ValueError, RuntimeError) as error:
            raise self._fault(error, exchange) from error

    # Inner workings --------------------------------------------------------------------

    async def _open(
        self, method: str, url: str, headers: Mapping[str, str] | None, body: bytes | None, exchange: Exchange
    ) -> aiohttp.ClientResponse:
        for _ in range(MAX_REDIRECTS + 1):
            if self._session.closed:
                raise ConnectionLostError(
                    f"The connection to {self.server!r} has been closed.", server=self.server, sent=False
                )
            with self.translated(exchange):
                answer = await self._session.request(
                    method,
                    url,
                    headers=headers,
                    data=None if body is None else _Body(body, exchange),
                    allow_redirects=False,
                    proxy=self._proxy,
                )
            if answer.status < 200:
                answer.close()
                raise self._fault(aiohttp.ClientResponseError(answer.request_info, ()), exchange)
            location = answer.headers.get("location")
            if answer.status not in REDIRECTS or location is None:
                return answer
            answer.close()
            exchange.sent = False  # who redirects has done nothing yet
            url = follow(method, url, answer.status, location, server=self.server)
        raise TransportError(
            f"The server {self.server!r} redirects more than {MAX_REDIRECTS} times; mend the URL.",
            server=self.server,
            status=answer.status,
            sent=False,
        )

    def _connected(self) -> None:
        if self._on_connected is not None:
            callback, self._on_connected = self._on_connected, None
            callback()

    def _make_socket(self, info: Any) -> socket.socket:
        """Make the socket for one resolved address: the place where no spelling hides the target."""
        family, kind, protocol, _, address = info
        if self._proxy is None and self._guard.forbids(str(address[0])):
            raise BlockedAddressError
        return new_socket(family, kind, protocol)

    def _fault(self, error: Exception, exchange: Exchange) -> MCPClientError:
        """Find our exception for one of aiohttp's or the system's."""
        if isinstance(error, aiohttp.ClientConnectorError) and isinstance(
            error.os_error, BlockedAddressError
        ):
            return ConfigurationError(
                f"The URL policy blocks the address of {safe_url(self.url)!r}.",
                server=self.server,
                field="url",
            )
        if isinstance(error, aiohttp.InvalidURL):
            return ConfigurationError("The URL is malformed.", server=self.server, field="url")
        if (why := why_unreachable(error)) is not None:
            return ServerUnavailableError(
                f"The server {self.server!r} cannot be reached: {safe_url(self.url)} {why}.",
                server=self.server,
            )
        return TransportError(
            f"The server {self.server!r} ({safe_url(self.url)}) {how_broken(error)}.",
            server=self.server,
            sent=exchange.sent,
        )


class _Connector(aiohttp.TCPConnector):
    """Says when there is a connection. A trace could do so, too, at a sixth of the cost of a request."""

    def __init__(self, connected: Callable[[], None], **options: Any) -> None:
        super().__init__(**options)
        self._is_connected = connected

    async def connect(self, *args: Any, **options: Any) -> Any:
        connection = await super().connect(*args, **options)
        self._is_connected()
        return connection


class _Body(aiohttp.BytesPayload):
    """The content of a POST, which notes when it is about to reach the socket; the headers go with it."""

    def __init__(self, content: bytes, exchange: Exchange) -> None:
        super().__init__(content)
        self._exchange = exchange

    async def write(self, writer: Any) -> None:
        self._note(writer)
        await super().write(writer)

    async def write_with_length(self, writer: Any, content_length: int | None) -> None:
        self._note(writer)
        await super().write_with_length(writer, content_length)

    def _note(self, writer: Any) -> None:
        # A kept connection that the server is just ending is refused before anything is written.
        if writer.transport is not None and not writer.transport.is_closing():
            self._exchange.about_to_send()


async def _read_to_end(answer: aiohttp.ClientResponse) -> None:
    """Read what is left, so that the connection is kept; close it if that is much or takes long."""
    size = 0
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while size < LINGER_SIZE and (chunk := await answer.content.readany()):
                size += len(chunk)
    except (aiohttp.ClientError, OSError):
        pass  # the answer has been used already
    finally:
        if answer.content.at_eof():
            answer.release()
        else:
            answer.close()
