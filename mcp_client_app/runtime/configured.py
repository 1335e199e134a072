"""Servers that the settings and the configuration file name, and the rows that stand for them.

Each has a row, read-only for people, so that agents, states and permissions can point at
it. The settings come before stored rows, stored rows before the file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from django.core.exceptions import ImproperlyConfigured
from django.db import router

from mcp_client_app.conf import app_settings
from mcp_client_app.configuration.dialects import ImportedServer, parse, parse_text
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models.importing import ImportEntry, ImportRights, import_servers
from mcp_client_app.models.server_fields import ServerFields
from mcp_client_app.models.servers import ServerConfig, ServerConfigQuerySet

logger = logging.getLogger(__name__)

__all__ = ["SyncReport", "configured_signature", "sync_configured"]

Source = ServerFields.Source


@dataclass(frozen=True, kw_only=True)
class SyncReport:
    """What ``sync`` did."""

    created: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    errors: dict[str, str] = field(default_factory=dict)
    """By server, or by the name of the source that could not be read."""


def configured_signature() -> tuple[object, ...]:
    """Return a value that changes when settings or file do; cheap."""
    try:
        servers = repr(sorted(app_settings.SERVERS.items()))
    except ImproperlyConfigured as error:
        servers = str(error)
    try:
        path = app_settings.config_file()
        stat = path.stat() if path is not None else None
    except (ImproperlyConfigured, OSError) as error:
        return servers, str(error), None
    return servers, path, stat and (stat.st_ino, stat.st_mtime_ns, stat.st_size)


def sync_configured() -> SyncReport:
    """Make the rows agree with the settings and the file; a source that cannot be read changes nothing."""
    report = SyncReport()
    for source, read in ((Source.SETTINGS.value, _from_settings), (Source.FILE.value, _from_file)):
        report = _merged(report, _sync(source, read))
    for name, error in report.errors.items():
        logger.warning("What is configured as %r cannot be used: %s", name, error)
    return report


def _sync(source: str, read: Callable[[], list[ImportedServer]]) -> SyncReport:
    try:
        servers = read()
    except (ConfigurationError, ImproperlyConfigured) as error:
        return SyncReport(errors={source: str(error)})
    except OSError as error:
        return SyncReport(errors={source: f"The file cannot be read: {error.strerror}."})
    if source == Source.FILE.value:
        servers = _not_taken(servers)
    entries = import_servers(
        servers, rights=ImportRights(), source=source, take_over=source == Source.SETTINGS.value
    )
    return SyncReport(
        created=_names(entries, "create"),
        updated=_names(entries, "update"),
        removed=_remove_others(source, {server.name.casefold() for server in servers}),
        errors={entry.name: entry.error for entry in entries if entry.error is not None},
    )


def _not_taken(servers: list[ImportedServer]) -> list[ImportedServer]:
    """Leave out the entries of the file whose names the settings or stored rows have."""
    taken = {name.casefold() for name in _rows().exclude(source=Source.FILE).values_list("name", flat=True)}
    return [server for server in servers if server.name.casefold() not in taken]


def _remove_others(source: str, names: set[str]) -> tuple[str, ...]:
    """Delete the rows of a source that it does not name any more; returns their names."""
    gone = [row for row in _rows().from_source(source) if row.name.casefold() not in names]
    for row in gone:
        row.delete()
    return tuple(row.name for row in gone)


def _rows() -> ServerConfigQuerySet:
    return ServerConfig.objects.using(router.db_for_write(ServerConfig))


def _from_settings() -> list[ImportedServer]:
    servers = app_settings.SERVERS
    return parse(servers) if servers else []


def _from_file() -> list[ImportedServer]:
    path = app_settings.config_file()
    return parse_text(path.read_bytes()) if path is not None else []


def _names(entries: Iterable[ImportEntry], action: str) -> tuple[str, ...]:
    return tuple(entry.name for entry in entries if entry.action == action)


def _merged(first: SyncReport, second: SyncReport) -> SyncReport:
    return replace(
        first,
        created=first.created + second.created,
        updated=first.updated + second.updated,
        removed=first.removed + second.removed,
        errors={**first.errors, **second.errors},
    )
