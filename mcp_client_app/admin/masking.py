"""What may be shown of a server to somebody who may only look."""

from __future__ import annotations

from mcp_client_app.configuration.secrets import visible_url
from mcp_client_app.datatypes import Transport
from mcp_client_app.models import ServerConfig

__all__ = ["SECRET_FIELDS", "target"]

SECRET_FIELDS = frozenset({"env", "headers", "url", "extra", "args"})
"""Fields in which secrets may stand: neither shown to all, nor to be searched or filtered by."""


def target(row: ServerConfig) -> str:
    """Return what a server is: its command, its key, or where it is."""
    if row.transport == Transport.STDIO:
        return row.command
    if row.transport == Transport.IN_PROCESS:
        return row.in_process
    return visible_url(row.url)
