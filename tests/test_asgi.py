"""The lifespan of an ASGI application. uvicorn's own is in tests/deployment."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcp_client_app.asgi import with_lifespan
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.datatypes import ManagerOptions
from mcp_client_app.runtime import set_mcp_manager, started_manager

pytestmark = pytest.mark.anyio


class Unclosable(MCPClientManager):
    def close(self) -> None:
        super().close()
        raise OSError("no")


async def django(scope: Any, receive: Any, send: Any) -> None:
    """Answer as Django does, which refuses all but HTTP."""
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 204, "headers": []})


async def live(manager: MCPClientManager) -> list[dict[str, Any]]:
    """Run an application from its start to its end; return what it said."""
    said: list[dict[str, Any]] = []
    told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def send(message: Any) -> None:
        said.append(message)
        if message["type"] == "lifespan.startup.complete":
            assert not manager.is_closed
            told.put_nowait({"type": "lifespan.shutdown"})

    before = set_mcp_manager(manager)
    try:
        told.put_nowait({"type": "lifespan.startup"})
        await with_lifespan(django)({"type": "lifespan"}, told.get, send)
        assert started_manager() is None
    finally:
        set_mcp_manager(before)
    assert manager.is_closed
    return said


async def test_the_end_of_the_application_closes_the_connections():
    said = await live(MCPClientManager(options=ManagerOptions(reaper=False)))
    assert [message["type"] for message in said] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


async def test_a_failure_is_told_to_the_server_and_the_log(caplog: pytest.LogCaptureFixture):
    said = await live(Unclosable(options=ManagerOptions(reaper=False)))
    assert [message["type"] for message in said] == ["lifespan.startup.complete", "lifespan.shutdown.failed"]
    assert "MCP connections" in said[-1]["message"]
    assert "good order" in caplog.text


async def test_requests_go_to_the_application():
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    await with_lifespan(django)({"type": "http"}, None, send)
    assert [message["status"] for message in said] == [204]
