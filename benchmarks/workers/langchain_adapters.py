"""langchain-mcp-adapters as its documentation shows it: a session for each call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient

from benchmarks.workers.coroutines import Call, serve
from benchmarks.workers.protocol import Target


@asynccontextmanager
async def connect(target: Target) -> AsyncIterator[Call]:
    """Yield how a tool is called."""
    if target.transport == "stdio":
        server: Any = {"transport": "stdio", "command": target.command[0], "args": list(target.command[1:])}
    else:
        server = {"transport": "streamable_http", "url": target.url}
    client = MultiServerMCPClient({"fast": server})
    tools = {tool.name: tool for tool in await client.get_tools()}

    async def call(tool: str, arguments: dict[str, Any]) -> object:
        result = await tools[tool].ainvoke(arguments)
        assert result
        return result

    yield call


if __name__ == "__main__":
    serve(connect)
