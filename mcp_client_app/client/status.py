"""Builds the status of a server from its entry and its connection."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from mcp_client_app.client.catalogue import Catalogue
from mcp_client_app.client.connection import Connection
from mcp_client_app.client.link import Handshake
from mcp_client_app.client.sources import ServerEntry
from mcp_client_app.datatypes import SHARED, ConnectionState, ServerStatus

__all__ = ["status_of"]


def status_of(
    entry: ServerEntry, connection: Connection | None, principal: str = SHARED, *, dropped: int = 0
) -> ServerStatus:
    """Return what this process knows about a server; safe to call from any thread."""
    if connection is None:
        return _without_connection(entry, principal)
    standing, diagnostics = connection.standing, connection.diagnostics
    loss = connection.loss
    error = loss or standing.error
    link = connection.link
    handshake = link.handshake if link is not None and link.handshake is not None else None
    catalogue = connection.catalogue or Catalogue()
    said = handshake or Handshake(protocol_version="")
    repairs = tuple(link.repairs) if link is not None else ()
    return ServerStatus(
        name=entry.name,
        transport=entry.transport,
        target=connection.spec.target,
        enabled=entry.enabled,
        state=connection.state,
        reason=standing.reason if loss is None else str(loss),
        code=error.code if error is not None else "",
        since=standing.since,
        retry_at=_retry_at(connection),
        failures=standing.failures,
        revision=connection.spec.revision,
        principal=connection.principal,
        protocol_version=said.protocol_version or None,
        server_name=said.server_name,
        server_version=said.server_version,
        instructions=said.instructions,
        capabilities=said.capabilities,
        link=link.kind if link is not None else "",
        tools=len(catalogue.tools),
        resources=len(catalogue.resources),
        resource_templates=len(catalogue.resource_templates),
        prompts=len(catalogue.prompts),
        warnings=(*entry.warnings, *repairs, *catalogue.warnings),
        pid=diagnostics.pid if link is not None or standing.state is ConnectionState.CONNECTING else None,
        exit_code=diagnostics.exit_code,
        stderr_tail=diagnostics.stderr_tail,
        noise_count=diagnostics.noise_count,
        noise_last=diagnostics.noise_last,
        dropped_events=diagnostics.dropped + dropped,
        calls=connection.calls,
        calls_in_flight=connection.in_flight,
        connects=connection.connects,
    )


def _without_connection(entry: ServerEntry, principal: str) -> ServerStatus:
    state, reason, code = ConnectionState.IDLE, "", ""
    if entry.stopped:
        state, reason = ConnectionState.STOPPED, "disconnected by an operator"
    elif entry.error is not None:
        state, reason, code = ConnectionState.FAILED, str(entry.error), entry.error.code
    return ServerStatus(
        name=entry.name,
        transport=entry.transport,
        target=entry.spec.target if entry.spec is not None else "",
        enabled=entry.enabled,
        state=state,
        reason=reason,
        code=code,
        revision=entry.revision,
        principal=principal,
        warnings=entry.warnings,
    )


def _retry_at(connection: Connection) -> datetime | None:
    if connection.standing.state not in (ConnectionState.BACKING_OFF, ConnectionState.NEEDS_AUTH):
        return None
    # The loop's clock is the monotonic one.
    return datetime.now(UTC) + timedelta(seconds=connection.standing.wait(time.monotonic()))
