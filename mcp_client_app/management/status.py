"""The verb ``status``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence

from mcp_client_app import services
from mcp_client_app.datatypes import ServerStatus
from mcp_client_app.management import documents
from mcp_client_app.management.console import Console
from mcp_client_app.management.tables import Column
from mcp_client_app.management.verbs import Verbs
from mcp_client_app.models import ServerConfig, ServerState
from mcp_client_app.moments import local

__all__ = ["add_verbs"]


def add_verbs(verbs: Verbs) -> None:
    """Add this module's verb."""
    verb = verbs.add("status", show_status, help="show how servers stand, here and in the running processes")
    verb.add_argument("names", metavar="SERVER", nargs="*", help="these only, with details")


def show_status(options: argparse.Namespace, console: Console) -> None:
    """Show the states of this process and of the others; connects nothing."""
    servers = [services.get_server(name) for name in options.names] or services.list_servers()
    names = [server.name for server in servers]
    here = {status.name: status for status in services.server_statuses() if status.name in names}
    elsewhere: dict[str, list[ServerState]] = {name: [] for name in names}
    for state in services.worker_states():
        if state.server.name in elsewhere:
            elsewhere[state.server.name].append(state)
    if console.as_json:
        console.document(
            {
                "servers": [
                    documents.server_document(server)
                    | {
                        "here": documents.status_document(here[server.name]) if server.name in here else None,
                        "processes": [documents.state_document(state) for state in elsewhere[server.name]],
                    }
                    for server in servers
                ]
            }
        )
        return
    _show_states(console, servers, here, elsewhere)
    if options.names:
        for name in names:
            _show_details(console, here.get(name))


def _show_states(
    console: Console,
    servers: Sequence[ServerConfig],
    here: Mapping[str, ServerStatus],
    elsewhere: Mapping[str, Sequence[ServerState]],
) -> None:
    console.table(
        [
            Column("SERVER"),
            Column("STATE", paint=console.paint),
            Column("PROCESS"),
            Column("SINCE"),
            Column("TOOLS"),
            Column("REASON", can_shrink=True),
        ],
        [
            row
            for server in servers
            for row in _state_rows(server, here.get(server.name), elsewhere[server.name])
        ],
        empty="There are no servers yet.",
    )


def _state_rows(
    server: ServerConfig, here: ServerStatus | None, elsewhere: Sequence[ServerState]
) -> Iterator[tuple[object, ...]]:
    for state in elsewhere:
        since = local(state.since).strftime("%Y-%m-%d %H:%M:%S")
        reason = f"{state.code}: {state.reason}" if state.code else state.reason
        yield server.name, state.state, str(state.worker), since, state.tools, reason
    if elsewhere:
        return
    if not server.enabled:
        yield server.name, "disabled", "", "", "", ""
    elif here is not None:
        yield server.name, str(here.state), "", "", "", here.reason or "no process has connected it"


def _show_details(console: Console, status: ServerStatus | None) -> None:
    if status is None:
        return
    for warning in status.warnings:
        console.line(f"{status.name}: warning: {warning}")
    for line in status.stderr_tail:
        console.line(f"{status.name}: stderr: {line}")
    if status.instructions:
        console.heading(f"{status.name}: instructions")
        console.line(status.instructions)
