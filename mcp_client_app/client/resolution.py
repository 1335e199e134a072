"""Finds the tool that a name means, and refuses names that no tool can have."""

from __future__ import annotations

from collections.abc import Iterable

from mcp_client_app.client.connection import Connection
from mcp_client_app.client.pool import ConnectionPool
from mcp_client_app.datatypes import SHARED, ServerSpec, ToolInfo
from mcp_client_app.exceptions import (
    AmbiguousToolError,
    BadToolNameError,
    ToolBlockedError,
    UnknownServerError,
    UnknownToolError,
)
from mcp_client_app.naming import has_control_characters, split_public_name

__all__ = ["check_allowed", "check_name", "check_not_blocked", "find_in", "owner_of", "search"]

LONGEST_NAME = 512


def check_name(name: object) -> str:
    """Return ``name`` if a tool can have it.

    Raises:
        BadToolNameError: Empty, too long, not text, or with control characters.
    """
    if not isinstance(name, str) or not name.strip():
        raise BadToolNameError("A tool name must be a non-empty text.")
    if len(name) > LONGEST_NAME:
        raise BadToolNameError(
            f"A tool name has at most {LONGEST_NAME} characters; this one has {len(name)}."
        )
    if has_control_characters(name):
        raise BadToolNameError(f"The tool name {name!r} holds control characters.")
    return name


def owner_of(pool: ConnectionPool, name: str) -> str | None:
    """Return the server that a public name ``<server>__<tool>`` names, if there is such a server."""
    parts = split_public_name(name)
    if parts is None:
        return None
    try:
        return pool.snapshot.entry(parts[0]).name
    except UnknownServerError:
        return None


def check_not_blocked(spec: ServerSpec, *names: str) -> None:
    """Hold the names by which a tool was asked for to the blocked list, before anybody is asked.

    The allowed list has to wait for the tool itself: a public name may be a shortened one.

    Raises:
        ToolBlockedError: Nothing has been sent.
    """
    if spec.filter.blocks(*names):
        raise _blocked(spec, names[-1])


def check_allowed(spec: ServerSpec, tool: ToolInfo) -> None:
    """Hold a tool to the server-level filter.

    Raises:
        ToolBlockedError: Nothing has been sent.
    """
    if not spec.filter.allows(tool.name, tool.public_name):
        raise _blocked(spec, tool.name)


def _blocked(spec: ServerSpec, name: str) -> ToolBlockedError:
    name = name.strip()
    return ToolBlockedError(
        f"The tool {name!r} of {spec.name!r} is blocked by the server's filter.", server=spec.name, tool=name
    )


def find_in(connection: Connection, name: str) -> ToolInfo | None:
    """Find a tool by own or public name in the last known catalogue of one server."""
    catalogue = connection.catalogue
    return catalogue.tool(name) if catalogue is not None else None


def search(pool: ConnectionPool, name: str, unavailable: Iterable[str], principal: str = SHARED) -> ToolInfo:
    """Find a bare name among all known catalogues.

    Raises:
        AmbiguousToolError: Several servers offer it.
        UnknownToolError: None does; names the servers that could not be asked.
        ToolBlockedError: Only servers whose filter forbids it offer it.
    """
    found: list[tuple[Connection, ToolInfo]] = []
    blocked: list[tuple[Connection, ToolInfo]] = []
    for connection in pool.all():
        if connection.principal == principal and (tool := find_in(connection, name)) is not None:
            (found if connection.spec.allows(tool.name) else blocked).append((connection, tool))
    if len(found) > 1:
        candidates = sorted(tool.public_name for _, tool in found)
        raise AmbiguousToolError(
            f"Several servers offer a tool {name!r}; use one of: {', '.join(candidates)}.",
            tool=name,
            candidates=candidates,
        )
    if found:
        return found[0][1]
    if blocked:
        check_allowed(blocked[0][0].spec, blocked[0][1])
    missing = sorted(unavailable)
    hint = f" These servers could not be asked: {', '.join(missing)}." if missing else ""
    raise UnknownToolError(f"There is no tool {name!r}.{hint}", tool=name, unavailable=missing)
