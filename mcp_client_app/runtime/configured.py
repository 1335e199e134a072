"""Servers that the settings and the configuration file name, and the rows that stand for them.

Each has a row, read-only for people, so that agents, states and permissions can point at
it. The settings come before stored rows, stored rows before the file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from django.core.exceptions import ImproperlyConfigured

from mcp_client_app.conf import app_settings
from mcp_client_app.configuration.dialects import ImportedServer, parse, parse_text
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models.importing import ImportEntry, ImportRights, import_servers
from mcp_client_app.models.server_fields import ServerFields
from mcp_client_app.models.servers import ServerConfig

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
    path = app_settings.config_file()
    try:
        stat = path.stat() if path is not None else None
    except OSError:
        stat = None
    return repr(sorted(app_settings.SERVERS.items())), path, stat and (stat.st_mtime_ns, stat.st_size)


def sync_configured() -> SyncReport:
    """Make the rows agree with the settings and the file; a source that cannot be read changes nothing."""
    report = SyncReport()
    for source, read in ((Source.SETTINGS.value, _from_settings), (Source.FILE.value, _from_file)):
        report = _merged(report, _sync(source, read))
    for name, error in report.errors.items():
        logger.warning("The configured server %r cannot be used: %s", name, error)
    return report


def _sync(source: str, read: Callable[[], list[ImportedServer]]) -> SyncReport:
    try:
        servers = read()
    except (ConfigurationError, ImproperlyConfigured, OSError) as error:
        return SyncReport(errors={source: str(error)})
    servers = _in_precedence(source, servers)
    entries = import_servers(servers, rights=ImportRights(), source=source)
    gone = ServerConfig.objects.from_source(source).exclude(name__in=[server.name for server in servers])
    removed = tuple(gone.values_list("name", flat=True))
    for row in gone:
        row.delete()
    return SyncReport(
        created=_names(entries, "create"),
        updated=_names(entries, "update"),
        removed=removed,
        errors={entry.name: entry.error for entry in entries if entry.error is not None},
    )


def _in_precedence(source: str, servers: list[ImportedServer]) -> list[ImportedServer]:
    """Settings take a name over from anybody, the file from nobody."""
    kept = []
    for server in servers:
        owner = ServerConfig.objects.named(server.name).exclude(source=source).first()
        if owner is not None and source == Source.FILE.value:
            continue
        if owner is not None:
            logger.warning(
                "The server %r of the settings replaces the one from the %s.", owner.name, owner.source
            )
            owner.source = source
            owner.save(update_fields=["source"])
        kept.append(server)
    return kept


def _from_settings() -> list[ImportedServer]:
    servers = app_settings.SERVERS
    return parse({"mcpServers": servers}) if servers else []


def _from_file() -> list[ImportedServer]:
    path = app_settings.config_file()
    if path is None:
        return []
    return parse_text(path.read_bytes())


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
