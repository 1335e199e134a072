"""Servers in from configuration files and out again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_client_app.configuration.dialects import ImportedServer, parse, parse_text
from mcp_client_app.configuration.export import export
from mcp_client_app.configuration.secrets import visible_url
from mcp_client_app.models import ImportEntry
from mcp_client_app.models.importing import ImportRights
from mcp_client_app.models.importing import import_servers as import_rows
from mcp_client_app.runtime import row_source
from mcp_client_app.runtime.configured import SyncReport, sync_configured
from mcp_client_app.services.permissions import ADD, CHANGE, REFERENCE, RUN_CODE, may, require
from mcp_client_app.services.servers import get_server, list_servers

__all__ = ["ImportReport", "export_servers", "import_servers", "sync_servers"]


@dataclass(frozen=True)
class ImportReport:
    """What became of each entry."""

    entries: tuple[ImportEntry, ...] = ()
    dry_run: bool = False

    def _names(self, action: str) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.entries if entry.action == action)

    @property
    def created(self) -> tuple[str, ...]:
        """Names of new servers."""
        return self._names("create")

    @property
    def updated(self) -> tuple[str, ...]:
        """Names of changed servers."""
        return self._names("update")

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of entries that could not be imported."""
        return self._names("error")


def import_servers(
    data: str | bytes | Mapping[str, Any],
    *,
    user: Any = None,
    dry_run: bool = False,
    enable: bool | None = None,
    only: Iterable[str] | None = None,
) -> ImportReport:
    """Import servers from any ``mcp.json`` dialect; update by name, delete nothing.

    Args:
        data: The text of a file, or its decoded content.
        user: Who imports; None for trusted code. Servers that run code arrive disabled
            unless the user may have code run.
        dry_run: Say what would happen, and change nothing.
        enable: Force imported servers on or off; None leaves that to the entries.
        only: Names (as in the file, or ours) to import; None imports all. One that the
            configuration does not have is reported as a failed entry.

    Raises:
        ConfigurationError: No JSON, or no servers in it. A bad entry is reported, not raised.
        PermissionDeniedError: The user may not add and change servers.
    """
    require(user, ADD)
    require(user, CHANGE)
    servers = parse_text(data) if isinstance(data, str | bytes) else parse(data)
    missing: list[ImportEntry] = []
    if only is not None:
        servers, missing = _chosen(servers, only)
    rights = ImportRights(run_code=may(user, RUN_CODE), reference_environment=may(user, REFERENCE))
    entries = import_rows(servers, rights=rights, enable=enable, dry_run=dry_run)
    return ImportReport((*entries, *missing), dry_run)


def _chosen(
    servers: Iterable[ImportedServer], only: Iterable[str]
) -> tuple[list[ImportedServer], list[ImportEntry]]:
    wanted = {name.casefold(): name for name in only}
    found = [(server, {server.name.casefold(), server.label.casefold()} & set(wanted)) for server in servers]
    missing = set(wanted).difference(*(names for _, names in found))
    failed = [
        ImportEntry(name=name, label=name, action="error", error="The configuration has no such server.")
        for key, name in wanted.items()
        if key in missing
    ]
    return [server for server, names in found if names], failed


def export_servers(names: Iterable[str] | None = None, *, user: Any = None) -> dict[str, Any]:
    """Return servers as an ``mcp.json`` document; literal secrets are null, unknown keys come back.

    Args:
        names: Which ones, of any source; None exports all that are stored in the database.
        user: Who exports; None for trusted code. For users who may not change servers, URLs
            come without path and query, where secrets may be.

    Raises:
        PermissionDeniedError: The user may not see servers.
        UnknownServerError: One of the names is none.
    """
    rows = [get_server(name, user=user) for name in names] if names is not None else list_servers(user=user)
    if names is None:
        rows = [row for row in rows if not row.is_read_only]
    values = [row.export_values() for row in rows]
    if not may(user, CHANGE):
        values = [{**entry, "url": visible_url(entry["url"])} for entry in values]
    return export(values)


def sync_servers() -> SyncReport:
    """Make the rows of settings and file agree with these; for trusted code."""
    report = sync_configured()
    row_source.invalidate()
    return report
