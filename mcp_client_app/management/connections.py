"""The verbs ``connect`` and ``disconnect``, and connecting for other verbs."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from mcp_client_app import services
from mcp_client_app.datatypes import ServerStatus
from mcp_client_app.management import documents
from mcp_client_app.management.console import Console
from mcp_client_app.management.failures import failure, outcome, usage_error
from mcp_client_app.management.tables import Column
from mcp_client_app.management.verbs import Verbs
from mcp_client_app.models import ServerConfig

__all__ = ["add_verbs", "connect_with_progress"]


def add_verbs(verbs: Verbs) -> None:
    """Add this module's verbs."""
    for name, run, text in (
        ("connect", connect, "try servers from here, and lift the stop that every process obeys"),
        ("disconnect", disconnect, "stop the use of servers in every process, until they are connected"),
    ):
        verb = verbs.add(name, run, help=text)
        verb.add_argument("names", metavar="NAME", nargs="*")
        verb.add_argument("--all", action="store_true", help="all enabled servers")


def connect_with_progress(console: Console, names: Sequence[str]) -> dict[str, ServerStatus]:
    """Connect servers in parallel and say what came of each."""
    if not names:
        return {}
    with console.progress(len(names)) as progress:
        progress.waiting(f"connecting {len(names)} servers ...")
        return services.connect_all(
            names, on_progress=lambda name, status: progress.step(f"{name}: {status.state}")
        )


def connect(options: argparse.Namespace, console: Console) -> None:
    """Connect servers in this process, and allow them again in all."""
    servers = _chosen(options)
    for server in servers:
        if not server.enabled:
            raise usage_error(
                f"NAME: {server.name!r} is disabled. Enable it: mcp_client enable {server.name}."
            )
    statuses = connect_with_progress(console, [server.name for server in servers])
    _show_statuses(console, statuses.values())
    failed = [name for name, status in statuses.items() if not status.is_ready]
    if failed:
        raise failure(f"Could not be connected: {', '.join(failed)}.", outcome(len(failed), len(statuses)))


def disconnect(options: argparse.Namespace, console: Console) -> None:
    """Stop servers in all processes."""
    statuses = [services.disconnect(server.name) for server in _chosen(options)]
    if console.as_json:
        _show_statuses(console, statuses)
        return
    for status in statuses:
        console.line(f"Stopped {status.name}.")


def _chosen(options: argparse.Namespace) -> list[ServerConfig]:
    if bool(options.names) == options.all:
        raise usage_error("NAME: give the names of servers, or --all.")
    if options.all:
        return [server for server in services.list_servers() if server.enabled]
    return [services.get_server(name) for name in dict.fromkeys(options.names)]


def _show_statuses(console: Console, statuses: Iterable[ServerStatus]) -> None:
    if console.as_json:
        console.document({"servers": [documents.status_document(status) for status in statuses]})
        return
    console.table(
        [
            Column("SERVER"),
            Column("STATE", paint=console.paint),
            Column("TOOLS"),
            Column("TOLD BY THE SERVER, OR WHY", can_shrink=True),
        ],
        [(status.name, status.state, status.tools, _outcome(status)) for status in statuses],
        empty="There are no enabled servers.",
    )


def _outcome(status: ServerStatus) -> str:
    if not status.is_ready:
        return status.reason or str(status.state)
    who = " ".join(filter(None, (status.server_name, status.server_version))) or "no name"
    return f"{who}, protocol {status.protocol_version}"
