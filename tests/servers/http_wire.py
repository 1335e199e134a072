"""A raw HTTP/1.1 server side for peers that misbehave: every byte is in the hands of the scenario."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.servers.payloads import META_VERSION


@dataclass(frozen=True)
class Request:
    """One request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str] = field(repr=False)
    """Names in lower case."""
    body: bytes = b""
    connection: int = 0
    """Which connection of the server it came on, counted from 1."""

    @property
    def rpc(self) -> dict[str, Any]:
        message = json.loads(self.body) if self.body else {}
        return message if isinstance(message, dict) else {}

    @property
    def rpc_method(self) -> str:
        return str(self.rpc.get("method", ""))

    @property
    def is_modern(self) -> bool:
        """Whether it bears the envelope of 2026-07-28."""
        params = self.rpc.get("params")
        return isinstance(params, dict) and META_VERSION in params.get("_meta", {})


async def read_request(reader: asyncio.StreamReader, connection: int, early: bytes = b"") -> Request | None:
    """Return the next request of a connection, of which ``early`` was read before; None at its end."""
    first = early or await reader.read(1)
    if not first.isalpha():
        return None  # the client has gone, or speaks TLS to a plain server
    try:
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    start, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = start.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body, connection)


class Reply:
    """Writes the answer to one request, whole or in pieces."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.closes = False

    async def send(
        self,
        status: int = 200,
        body: bytes | str | Any = b"",
        content_type: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a complete answer; anything but text is sent as JSON."""
        if not isinstance(body, bytes | str):
            body, content_type = json.dumps(body), content_type or "application/json"
        data = body.encode() if isinstance(body, str) else body
        await self.head(status, {"content-length": str(len(data)), **(headers or {})}, content_type)
        await self.raw(data)

    async def head(
        self, status: int, headers: Mapping[str, str] | None = None, content_type: str | None = None
    ) -> None:
        lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in (headers or {}).items())]
        if content_type is not None:
            lines.append(f"content-type: {content_type}")
        await self.raw(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def stream(self, headers: Mapping[str, str] | None = None) -> None:
        """Begin a chunked event stream."""
        await self.head(200, {"transfer-encoding": "chunked", **(headers or {})}, "text/event-stream")

    async def chunk(self, data: bytes) -> None:
        await self.raw(b"%x\r\n%b\r\n" % (len(data), data))

    async def event(
        self, message: Any = None, *, event_id: str | None = None, retry: int | None = None
    ) -> None:
        lines = []
        if event_id is not None:
            lines.append(f"id: {event_id}")
        if retry is not None:
            lines.append(f"retry: {retry}")
        if message is not None:
            lines.append(f"data: {json.dumps(message)}")
        await self.chunk(("\n".join(lines) + "\n\n").encode())

    async def end(self) -> None:
        await self.raw(b"0\r\n\r\n")

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """Drop the connection without a word."""
        self.closes = True
        self.writer.transport.abort()
