"""The SDK's own ``ClientSession``, called on the loop that it lives on: what everything is compared with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import PaginatedRequestParams, Tool

from benchmarks.workers.coroutines import Call, serve
from benchmarks.workers.protocol import Target


@asynccontextmanager
async def open_session(target: Target) -> AsyncIterator[ClientSession]:
    """Connect a session in the target's era."""
    if target.transport == "stdio":
        command, *arguments = target.command
        transport = stdio_client(StdioServerParameters(command=command, args=arguments))
    else:
        transport = streamable_http_client(target.url)
    async with transport as (read, write), ClientSession(read, write) as session:
        await (session.discover() if target.is_modern else session.initialize())
        assert session.protocol_version == target.era, session.protocol_version
        yield session


async def list_all(session: ClientSession) -> list[Tool]:
    """Page through the tools; a session that has not does so before each call of a tool it never saw."""
    tools: list[Tool] = []
    cursor = None
    while True:
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tools


@asynccontextmanager
async def connect(target: Target) -> AsyncIterator[Call]:
    """Yield how a tool is called."""
    async with open_session(target) as session:
        await list_all(session)

        async def call(tool: str, arguments: dict[str, Any]) -> object:
            result = await session.call_tool(tool, arguments)
            assert not result.is_error
            return result

        yield call


if __name__ == "__main__":
    serve(connect)
