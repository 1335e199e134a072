"""Lists over many servers: partial results, and the reason for what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_client_app.client.catalogue import Catalogue
from mcp_client_app.client.connection import Connection
from mcp_client_app.client.pool import ConnectionPool
from mcp_client_app.datatypes import SHARED, ConnectionState, Listing
from mcp_client_app.exceptions import MCPClientError, RequestTimeoutError, ServerUnavailableError

__all__ = ["KINDS", "Kind", "Target", "gather", "of_server", "of_targets"]

Target = tuple[str, str]
"""A server and the principal whose connection is meant."""

SOON = 1.0
"""Seconds for which lists that a server has announced are waited for."""

_UP = (ConnectionState.READY, ConnectionState.IDLE, ConnectionState.LOST, ConnectionState.CONNECTING)
"""States in which the last catalogue still says what can be called: the next use (re)connects."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the lists of a catalogue."""

    name: str
    select: Callable[[Catalogue], tuple[Any, ...]]


KINDS = {
    "tools": Kind("tools", lambda catalogue: catalogue.tools),
    # With what the server-level filter forbids.
    "known_tools": Kind("known_tools", lambda catalogue: catalogue.known),
    "resources": Kind("resources", lambda catalogue: catalogue.resources),
    "resource_templates": Kind("resource_templates", lambda catalogue: catalogue.resource_templates),
    "prompts": Kind("prompts", lambda catalogue: catalogue.prompts),
}


async def of_server(
    pool: ConnectionPool, server: str, kind: Kind, *, refresh: bool, principal: str = SHARED
) -> Listing[Any]:
    """List what one server offers; connects it first.

    Raises:
        MCPClientError: It cannot be reached.
    """

    async def read(connection: Connection) -> Catalogue | None:
        catalogue = connection.catalogue
        if refresh:
            catalogue = await connection.keeper.refresh()
        elif catalogue is None or connection.state not in _UP:
            await connection.ready()
            catalogue = connection.catalogue
        elif catalogue.is_stale and connection.link is not None:
            connection.keeper.refresh_soon()
        return catalogue

    catalogue = await pool.using(server, principal, read)
    return Listing(kind.select(catalogue) if catalogue is not None else ())


async def gather(
    pool: ConnectionPool,
    kind: Kind,
    *,
    refresh: bool = False,
    wait: float | None = None,
    principal: str = SHARED,
    only: Sequence[str] | None = None,
) -> Listing[Any]:
    """List what all enabled servers offer, or ``only`` these.

    Servers that nobody has tried yet are connected, in parallel. One that is slow to connect
    is waited for at most ``wait`` seconds, counted from the start of its attempt (None: its
    list time limit; 0: nothing is connected or waited for). If ``wait`` is given, lists that a
    server has announced just now are read first, within ``SOON``.
    """
    names = _enabled(pool) if only is None else [pool.snapshot.entry(name).name for name in only]
    return await of_targets(pool, [(name, principal) for name in names], kind, refresh=refresh, wait=wait)


async def of_targets(
    pool: ConnectionPool,
    targets: Sequence[Target],
    kind: Kind,
    *,
    every: bool = False,
    refresh: bool = False,
    wait: float | None = None,
) -> Listing[Any]:
    """List what some servers offer, and with ``every`` also what all other enabled ones do; see ``gather``.

    One that does not exist has an error like those that cannot be reached.
    """
    if every:
        named = {name.casefold() for name, _ in targets}
        targets = [*targets, *((name, SHARED) for name in _enabled(pool) if name.casefold() not in named)]
    names = [name for name, _ in targets]
    results = await asyncio.gather(*(_one(pool, *target, kind, refresh, wait) for target in targets))
    items: list[Any] = []
    errors: dict[str, MCPClientError] = {}
    for name, outcome in zip(names, results, strict=True):
        if isinstance(outcome, MCPClientError):
            errors[name] = outcome
        else:
            items.extend(outcome)
    return Listing(tuple(items), errors)


def _enabled(pool: ConnectionPool) -> list[str]:
    return [name for name, entry in pool.snapshot.entries.items() if entry.enabled]


async def _one(
    pool: ConnectionPool, name: str, principal: str, kind: Kind, refresh: bool, wait: float | None
) -> tuple[Any, ...] | MCPClientError:

    async def read(connection: Connection) -> Catalogue:
        if refresh:
            return await connection.keeper.refresh()
        catalogue = connection.catalogue
        if catalogue is None or connection.state not in _UP:
            return await _first(connection, wait)
        if catalogue.is_stale and connection.link is not None:
            connection.keeper.refresh_soon()
        elif wait and connection.keeper.is_behind:
            return await _newest(connection, catalogue, wait)
        return catalogue

    try:
        return kind.select(await pool.using(name, principal, read))
    except MCPClientError as error:
        return error


async def _newest(connection: Connection, known: Catalogue, wait: float) -> Catalogue:
    """Return what the server has announced, if it comes soon, else what is known."""
    try:
        async with asyncio.timeout(min(wait, SOON)):
            await connection.keeper.catch_up()
    except TimeoutError:
        return known
    return connection.catalogue or known


async def _first(connection: Connection, wait: float | None) -> Catalogue:
    """Return the catalogue of a server that has to be connected, within the time allowed."""
    name = connection.spec.name
    if wait == 0 and connection.link is None:
        connection.standing.check_may_connect(asyncio.get_running_loop().time())
        if connection.standing.error is not None:
            raise connection.standing.explanation()
        how = (
            "still connecting" if connection.standing.state is ConnectionState.CONNECTING else "not connected"
        )
        raise ServerUnavailableError(f"The server {name!r} is {how}.", server=name)
    limit = connection.spec.list_timeout if wait is None else wait
    try:
        async with asyncio.timeout(connection.patience(limit) if limit else None):
            await connection.ready()
    except RequestTimeoutError:
        raise
    except TimeoutError as error:
        raise ServerUnavailableError(f"The server {name!r} is still connecting.", server=name) from error
    if connection.catalogue is None:
        raise connection.standing.explanation()
    return connection.catalogue
