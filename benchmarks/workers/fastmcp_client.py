"""FastMCP's client, one persistent connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

from benchmarks.workers.coroutines import Call, serve
from benchmarks.workers.protocol import Target


@asynccontextmanager
async def connect(target: Target) -> AsyncIterator[Call]:
    """Yield how a tool is called."""
    if target.transport == "stdio":
        transport: Any = StdioTransport(target.command[0], list(target.command[1:]))
    else:
        transport = StreamableHttpTransport(target.url)
    async with Client(transport, mode=target.era if target.is_modern else "legacy") as client:
        await client.list_tools()

        async def call(tool: str, arguments: dict[str, Any]) -> object:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error
            return result

        yield call


if __name__ == "__main__":
    serve(connect)
