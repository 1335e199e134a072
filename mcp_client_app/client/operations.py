"""The verbs of the manager as coroutines on its loop: what is done, without how callers wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mcp_client_app.client import convert
from mcp_client_app.client.caller import Caller
from mcp_client_app.client.calls import Answer, Deadline, send_round
from mcp_client_app.client.catalogue import Catalogue
from mcp_client_app.client.connection import Connection
from mcp_client_app.client.decoding import aside
from mcp_client_app.client.inputs import is_input_required
from mcp_client_app.client.listings import KINDS, gather
from mcp_client_app.client.pool import ROW_STOP, ConnectionPool
from mcp_client_app.client.reads import known_catalogue, send_read
from mcp_client_app.client.resolution import (
    check_allowed,
    check_name,
    check_not_blocked,
    find_in,
    owner_of,
    search,
)
from mcp_client_app.client.rounds import Continuation, Rounds
from mcp_client_app.datatypes import (
    SHARED,
    ProtocolMode,
    ServerSpec,
    ToolInfo,
    ToolResult,
)
from mcp_client_app.exceptions import (
    InputRequiredError,
    InvalidArgumentsError,
    MCPClientError,
    RequestTimeoutError,
    UnknownToolError,
)
from mcp_client_app.json_schema import SchemaChecker

__all__ = ["call_tool", "connect", "disconnect", "find_tool"]


async def connect(
    pool: ConnectionPool, name: str, *, principal: str = SHARED, wait: float | None = None
) -> None:
    """Connect by explicit wish: clears a stop, a failure and the breaker.

    After ``wait`` seconds nobody waits any more, but the attempt goes on: the state tells.
    """
    try:
        async with asyncio.timeout(wait):
            await pool.using(name, principal, Connection.connect)
    except RequestTimeoutError:
        raise  # the server's own limit
    except TimeoutError:
        pass


async def connect_all(
    pool: ConnectionPool,
    names: list[str] | None,
    settled: Callable[[str], None],
    wait: float | None = None,
) -> dict[str, MCPClientError]:
    """Connect servers in parallel; returns the errors of those that failed.

    ``settled`` is told each name as soon as its outcome is known, or ``wait`` seconds are over.
    """
    errors: dict[str, MCPClientError] = {}

    async def one(name: str) -> None:
        try:
            await connect(pool, name, wait=wait)
        except MCPClientError as error:
            errors[name] = error
        settled(name)

    wanted = (
        names
        if names is not None
        else [name for name, entry in pool.snapshot.entries.items() if entry.enabled]
    )
    async with asyncio.TaskGroup() as group:
        for name in wanted:
            group.create_task(one(name))
    return errors


async def disconnect(pool: ConnectionPool, name: str, *, principal: str = SHARED) -> None:
    """Disconnect and stay so until ``connect``; fine if it is not connected."""
    connection = pool.connection(name, principal)
    # Whoever takes the row's flag back, in whatever process, takes back this stop, too.
    await (connection.stop(ROW_STOP) if pool.snapshot.entry(name, principal).stopped else connection.stop())


async def follow(pool: ConnectionPool) -> None:
    """Do nothing but follow the latest snapshot, which happens before every operation."""


async def disconnect_all(pool: ConnectionPool) -> None:
    """Disconnect everything that is connected."""
    async with asyncio.TaskGroup() as group:
        for connection in pool.all():
            group.create_task(connection.stop())


async def refresh(
    pool: ConnectionPool, name: str, *, principal: str = SHARED, wait: float | None = None
) -> Catalogue:
    """Read the lists of a server anew; within ``wait`` seconds, connecting included."""
    try:
        async with asyncio.timeout(wait):
            return await pool.using(name, principal, lambda connection: connection.keeper.refresh())
    except RequestTimeoutError:
        raise  # the server's own limit
    except TimeoutError as error:
        raise RequestTimeoutError(
            f"The lists of {name!r} were not there within {wait:.3g} s.",
            server=name,
            seconds=wait,
        ) from error


async def ping(
    pool: ConnectionPool, name: str, timeout: float | None = None, *, principal: str = SHARED
) -> None:
    """Have the server answer the smallest request of its era; by default within its list time limit."""
    handshake = (await pool.using(name, principal, Connection.ready)).handshake
    modern = handshake is not None and handshake.mode is ProtocolMode.MODERN
    method = "server/discover" if modern else "ping"
    spec = pool.connection(name, principal).spec
    limit = timeout if timeout is not None else spec.list_timeout
    await send_read(pool, spec.name, method, {}, limit, "a ping", principal)


# Tools -------------------------------------------------------------------------------


async def find_tool(
    pool: ConnectionPool, name: str, server: str | None, *, principal: str = SHARED
) -> tuple[ServerSpec, ToolInfo]:
    """Find the tool that ``name`` means; connects what has to be asked.

    Raises:
        BadToolNameError, UnknownToolError, AmbiguousToolError, ToolBlockedError: See these.
        MCPClientError: The server that the name points to cannot be reached.
    """
    name = check_name(name)
    key = (name, server, principal)
    found = pool.found(key)
    if found is not None:
        return found
    owner = server if server is not None else owner_of(pool, name)
    if owner is None:
        try:
            tool = search(pool, name, (), principal)
        except UnknownToolError:
            # Not among those known so far: ask the servers that nobody has tried yet.
            listing = await gather(pool, KINDS["tools"], principal=principal)
            tool = search(pool, name, listing.errors, principal)
        spec = pool.connection(tool.server, principal).spec
    else:
        spec, tool = await pool.using(owner, principal, lambda connection: _find_on(connection, name))
    pool.remember(key, spec, tool)
    return spec, tool


async def _find_on(connection: Connection, name: str) -> tuple[ServerSpec, ToolInfo]:
    prefix = f"{connection.spec.name}__"
    own_name = name[len(prefix) :] if name.casefold().startswith(prefix.casefold()) else name
    check_not_blocked(connection.spec, name, own_name)
    if connection.catalogue is None:
        await connection.ready()
    tool = find_in(connection, name) or find_in(connection, own_name)
    if tool is None:
        # The server may have learnt it since; one more reading tells.
        await connection.keeper.refresh()
        tool = find_in(connection, name) or find_in(connection, own_name)
    if tool is None:
        trouble = connection.catalogue.trouble_with("tools/list") if connection.catalogue else ""
        raise UnknownToolError(
            f"The server {connection.spec.name!r} offers no tool {own_name!r}.{trouble}",
            server=connection.spec.name,
            tool=own_name,
        )
    check_allowed(connection.spec, tool)
    return connection.spec, tool


async def call_tool(
    pool: ConnectionPool,
    name: str,
    arguments: Mapping[str, Any],
    server: str | None,
    timeout: float | None,
    caller: Caller | None,
    continuation: Continuation | None,
    meta: Mapping[str, Any] | None,
    principal: str,
) -> tuple[ToolResult, SchemaChecker | None]:
    """Call a tool; returns its result, and a checker for its structured content, for the caller's thread."""
    answer = Answer()
    known, limit = _who_and_how_long(pool, check_name(name), server, timeout, principal)
    async with Deadline(known, limit, answer, f"the call of {name!r}"):
        spec, tool = await find_tool(pool, name, server, principal=principal)
        params: dict[str, Any] = {"name": tool.name, "arguments": dict(arguments)}
        if meta:
            params["_meta"] = dict(meta)
        rounds = Rounds(pool.host.desk, spec.name, principal, tool.name, caller)
        answer.declared = rounds.declared
        on_progress = caller.report if caller is not None and caller.reports_progress else None
        hints = tool.annotations
        repeatable = spec.trust_annotations and bool(hints.read_only or hints.idempotent)
        send_with = partial(
            send_round, pool, spec.name, "tools/call", params, answer, principal, repeatable, on_progress
        )
        try:
            first = await send_with(continuation.params() if continuation is not None else {})
            if is_input_required(first):
                await rounds.go_on(first, send_with)
        except InvalidArgumentsError as error:
            error.tool, error.schema = tool.name, tool.input_schema
            if answer.exchange.sent:  # else they have no form in which they could be shown
                error.arguments = dict(arguments)
            raise
        except InputRequiredError as error:
            error.tool = tool.name
            raise
    build = partial(convert.tool_result, replayed=answer.replayed)
    result = await aside(answer.exchange.size, build, spec, tool.name, answer.result, answer.exchange)
    if tool.output_schema is None or result.is_error:
        return result, None
    catalogue = known_catalogue(pool, spec.name, principal)
    return result, catalogue.output_checker(tool) if catalogue is not None else None


def _who_and_how_long(
    pool: ConnectionPool, name: str, server: str | None, timeout: float | None, principal: str
) -> tuple[str | None, float]:
    """Return the server that is called, if that is known, and the seconds that the call may take."""
    found = pool.found((name, server, principal))
    if found is not None:
        spec = found[0]
        return spec.name, timeout if timeout is not None else spec.call_timeout
    known = server if server is not None else owner_of(pool, name)
    return known, timeout if timeout is not None else _call_timeout(pool, known, principal)


def _call_timeout(pool: ConnectionPool, server: str | None, principal: str) -> float:
    if server is not None:
        return pool.connection(server, principal).spec.call_timeout
    # The name does not say whose tool it is: the longest of the known limits, 0 meaning none.
    limits = [entry.spec.call_timeout for entry in pool.snapshot.entries.values() if entry.spec is not None]
    return 0.0 if 0.0 in limits else max(limits, default=60.0)
