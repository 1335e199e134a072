"""Time limits of calls on behalf of a request that has a limit of its own."""

from __future__ import annotations

from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.naming import split_public_name
from mcp_client_app.runtime import row_source

__all__ = ["call_limit", "longest_call"]


def call_limit(
    at_most: float | None, *, timeout: float | None = None, server: str | None = None, tool: str = ""
) -> float | None:
    """Return the ``timeout`` for a call that must be over within ``at_most`` seconds.

    The server's own limit still holds where it is shorter and the caller asked for no other.
    A bare tool name does not say whose limit that is: then the longest of all counts.

    Args:
        at_most: Seconds; None leaves everything to ``timeout`` and the server.
        timeout: Seconds that the caller asked for; None = the server's limit, 0 = none.
        server: The server, if it is named.
        tool: The tool's name, which may name the server.
    """
    if at_most is None:
        return timeout
    wanted = timeout if timeout is not None else _own_limit(server, tool)
    return min(wanted or at_most, at_most)


def longest_call(*, timeout: float | None = None, server: str | None = None, tool: str = "") -> float | None:
    """Return the seconds within which a call is over, whoever makes it; None if it has no limit."""
    return (timeout if timeout is not None else _own_limit(server, tool)) or None


def _own_limit(server: str | None, tool: str) -> float:
    snapshot = row_source.current()
    parts = split_public_name(tool)
    named = server or (parts[0] if parts is not None else None)
    try:
        entries = [snapshot.entry(named)] if named else list(snapshot.entries.values())
    except MCPClientError:
        return 0.0  # the call will say what is wrong with the name
    limits = [entry.spec.call_timeout for entry in entries if entry.spec is not None]
    return 0.0 if 0.0 in limits else max(limits, default=0.0)
