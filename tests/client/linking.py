"""Links without a manager: opened, asked and closed in the test's own task; outcomes that can be compared."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any

from mcp_client_app.client.exchange import Exchange, recorded
from mcp_client_app.client.link import Link, LinkContext
from mcp_client_app.client.links import make_link
from mcp_client_app.client.redaction import Redactor
from mcp_client_app.client.starts import StartSlots
from mcp_client_app.datatypes import ManagerOptions, ServerSpec, Transport
from mcp_client_app.exceptions import MCPClientError
from tests.client.peers import PATIENCE, SERVERS

LINKS = ["own", "stock"]
ECHO = {"name": "echo", "arguments": {"text": "hi"}}

_PORT = re.compile(r"(127\.0\.0\.1):\d+")


def make(kind: str, spec: ServerSpec, options: ManagerOptions | None = None, **context: Any) -> Link:
    """Make a link of this kind to a server; it is not open yet."""
    spec = replace(spec, link=kind)
    return make_link(
        LinkContext(
            spec=spec,
            options=options or ManagerOptions(),
            redact=Redactor(spec),
            starts=StartSlots(8),
            mode=spec.mode,
            **context,
        )
    )


@asynccontextmanager
async def linked(kind: str, spec: ServerSpec, **context: Any) -> AsyncIterator[Link]:
    """Give an open link of this kind."""
    link = make(kind, spec, **context)
    try:
        async with asyncio.timeout(PATIENCE):
            await link.open()
            yield link
    finally:
        await link.close()


def http_spec(url: str, **fields: Any) -> ServerSpec:
    """Return the spec of a server at this URL."""
    return ServerSpec(**{"name": "docs", "transport": Transport.STREAMABLE_HTTP, "url": url, **fields})


async def outcome(work: Awaitable[Any]) -> Any:
    """Return what the work gives, or how it fails, in a form that does not depend on ports."""
    try:
        return await work
    except MCPClientError as error:
        return type(error).__name__, error.code, _PORT.sub(r"\1:PORT", str(error)), error.details()


async def call(link: Link, **params: Any) -> dict[str, Any]:
    """Call ``echo``; returns its outcome and what was recorded of the exchange."""
    with recorded(Exchange()) as exchange:
        result = await outcome(link.request("tools/call", {**ECHO, **params}))
    return {
        "result": result,
        "sent": exchange.sent,
        "size": exchange.size,
        "repairs": exchange.repairs,
        "raw": exchange.raw,
    }


@contextmanager
def sdk_over_http(*options: str) -> Iterator[str]:
    """Run the well-behaved peer; gives its URL."""
    process = subprocess.Popen(
        [sys.executable, str(SERVERS / "sdk_http.py"), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[1]
    finally:
        process.stdin.close()
        process.wait(PATIENCE)
        process.stdout.close()
