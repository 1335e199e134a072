"""What each verb asks of the loop: ``operations`` with their arguments filled in."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from mcp_client_app.client import listings, operations
from mcp_client_app.client.loop import EventRelay
from mcp_client_app.client.pool import ConnectionPool
from mcp_client_app.datatypes import Listing, Progress, ToolInfo
from mcp_client_app.exceptions import MCPClientError

__all__ = ["Blocks", "OnProgress", "Operation", "find", "listing", "relay", "tool_call"]

T = TypeVar("T")
Operation = Callable[[ConnectionPool], Coroutine[Any, Any, T]]
OnProgress = Callable[[Progress], Any]
"""Called where the caller waits: in its thread, or on its loop (there it may be a coroutine function)."""
Blocks = tuple[Mapping[str, Any], ...]
"""Content blocks in the wire's form."""


def relay(on_progress: OnProgress | None) -> EventRelay | None:
    """Return what carries progress to the caller, if the caller wants it."""
    return EventRelay(on_progress) if on_progress is not None else None


def tool_call(
    name: str,
    arguments: Mapping[str, Any] | None,
    server: str | None,
    timeout: float | None,
    events: EventRelay | None,
    meta: Mapping[str, Any] | None,
    principal: str,
) -> Operation[Any]:
    """Plan the call of a tool."""

    def report(progress: float, total: float | None, message: str | None) -> None:
        assert events is not None
        events.put(Progress(progress, total, message))

    return lambda pool: operations.call_tool(
        pool,
        name,
        arguments or {},
        server,
        timeout,
        report if events is not None else None,
        meta,
        principal=principal,
    )


def listing(
    kind: str, server: str | None, refresh: bool, wait: float | None, principal: str
) -> Operation[Listing[Any]]:
    """Plan the listing of one server, or of all; with ``wait``, one server is treated as all are."""
    if server is not None and wait is None:
        return lambda pool: listings.of_server(
            pool, server, listings.KINDS[kind], refresh=refresh, principal=principal
        )
    only = None if server is None else [server]
    return lambda pool: listings.gather(
        pool, listings.KINDS[kind], refresh=refresh, wait=wait, principal=principal, only=only
    )


async def find(pool: ConnectionPool, name: str, server: str | None, principal: str) -> ToolInfo | None:
    """Find a tool; whatever stands in the way means None."""
    try:
        _, tool = await operations.find_tool(pool, name, server, principal=principal)
    except MCPClientError:
        return None
    return tool
