"""What each verb asks of the loop: ``operations`` with their arguments filled in."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from mcp_client_app.client import listings as listings_of
from mcp_client_app.client import operations
from mcp_client_app.client.caller import Caller, OnProgress
from mcp_client_app.client.listings import Target
from mcp_client_app.client.loop import EventRelay
from mcp_client_app.client.pool import ConnectionPool
from mcp_client_app.client.rounds import Continuation
from mcp_client_app.client.sources import Snapshot
from mcp_client_app.datatypes import InputHandler, Listing, ManagerOptions, ToolInfo
from mcp_client_app.exceptions import MCPClientError

__all__ = [
    "Blocks",
    "OnProgress",
    "Operation",
    "applied",
    "calling",
    "find",
    "listing",
    "listings",
    "relay_of",
    "tool_call",
]

T = TypeVar("T")
Operation = Callable[[ConnectionPool], Coroutine[Any, Any, T]]
Blocks = tuple[Mapping[str, Any], ...]
"""Content blocks in the wire's form."""


def calling(
    on_progress: OnProgress | None,
    on_input: Mapping[str, InputHandler] | None,
    options: ManagerOptions,
    *,
    is_async: bool = False,
) -> Caller | None:
    """Return the caller as one to be told of progress, or asked for input; None if it wants neither."""
    if on_progress is None and not on_input:
        return None
    return Caller(on_progress, on_input, options, is_async=is_async)


def relay_of(caller: Caller | None) -> EventRelay | None:
    """Return what carries events to the caller, if it wants any."""
    return caller.relay if caller is not None else None


def tool_call(
    name: str,
    arguments: Mapping[str, Any] | None,
    server: str | None,
    timeout: float | None,
    caller: Caller | None,
    continuation: Continuation | None,
    meta: Mapping[str, Any] | None,
    principal: str,
) -> Operation[Any]:
    """Plan the call of a tool."""
    given = (name, arguments or {}, server, timeout, caller, continuation, meta, principal)
    return lambda pool: operations.call_tool(pool, *given)


def listing(
    kind: str, server: str | None, refresh: bool, wait: float | None, principal: str
) -> Operation[Listing[Any]]:
    """Plan the listing of one server, or of all; with ``wait``, one server is treated as all are."""
    if server is not None and wait is None:
        return lambda pool: listings_of.of_server(
            pool, server, listings_of.KINDS[kind], refresh=refresh, principal=principal
        )
    only = None if server is None else [server]
    return lambda pool: listings_of.gather(
        pool, listings_of.KINDS[kind], refresh=refresh, wait=wait, principal=principal, only=only
    )


def listings(
    kind: str, targets: Sequence[Target], every: bool, refresh: bool, wait: float | None
) -> Operation[Listing[Any]]:
    """Plan the listing of some servers, each with its principal."""
    return lambda pool: listings_of.of_targets(
        pool, targets, listings_of.KINDS[kind], every=every, refresh=refresh, wait=wait
    )


async def applied(pool: ConnectionPool, snapshot: Snapshot, operation: Operation[T]) -> T:
    """Follow the snapshot, then do what is asked."""
    pool.apply(snapshot)
    return await operation(pool)


async def find(pool: ConnectionPool, name: str, server: str | None, principal: str) -> ToolInfo | None:
    """Find a tool; whatever stands in the way means None."""
    try:
        _, tool = await operations.find_tool(pool, name, server, principal=principal)
    except MCPClientError:
        return None
    return tool
