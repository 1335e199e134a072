"""The MCP servers of openai-agents, called without an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

from benchmarks.workers.coroutines import Call, serve
from benchmarks.workers.protocol import Target


@asynccontextmanager
async def connect(target: Target) -> AsyncIterator[Call]:
    """Yield how a tool is called."""
    if target.transport == "stdio":
        server: Any = MCPServerStdio({"command": target.command[0], "args": list(target.command[1:])})
    else:
        server = MCPServerStreamableHttp({"url": target.url})
    async with server:
        await server.list_tools()

        async def call(tool: str, arguments: dict[str, Any]) -> object:
            result = await server.call_tool(tool, arguments)
            assert result.content
            return result

        yield call


if __name__ == "__main__":
    serve(connect)
