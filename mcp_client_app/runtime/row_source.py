"""The manager's view of the rows: a snapshot, renewed when a revision has changed.

One query for all servers tells, at most every ``MCP_CLIENT_REVISION_INTERVAL`` seconds per
process, and at once after a save in this process. It runs in the caller's thread, on the
write database: never on the event loop.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.db import DatabaseError, router

from mcp_client_app.client.sources import ServerEntry, Snapshot
from mcp_client_app.conf import app_settings
from mcp_client_app.configuration.dialects import parse, parse_text
from mcp_client_app.datatypes import ServerSpec, Transport
from mcp_client_app.exceptions import ConfigurationError, DuplicateServerError, MCPClientError
from mcp_client_app.models.importing import ImportEntry, ImportRights, import_servers
from mcp_client_app.models.servers import ServerConfig, ServerConfigQuerySet
from mcp_client_app.runtime.configured import configured_signature, sync_configured

logger = logging.getLogger(__name__)

__all__ = ["RowSource"]


class RowSource:
    """Supplies the manager with servers from the database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._revisions: dict[str, int] = {}
        self._looked_at = 0.0
        self._configured: tuple[object, ...] | None = None

    # What the manager asks -------------------------------------------------------------

    def current(self, *, fresh: bool = False) -> Snapshot:
        """Return the servers as they are, at most a little outdated unless ``fresh``.

        Raises:
            ConfigurationError: The tables cannot be read, and nothing is known yet.
        """
        snapshot = self._snapshot
        if snapshot is not None and not fresh and not self._is_due():
            return snapshot
        with self._lock:
            if self._snapshot is not None and not fresh and not self._is_due():
                return self._snapshot  # another thread has just looked
            try:
                return self._look(rebuild=fresh)
            except DatabaseError as error:
                if self._snapshot is None:
                    raise ConfigurationError(
                        "The servers cannot be read from the database; has 'manage.py migrate' been run?"
                    ) from error
                logger.warning("The servers could not be read anew: %s", type(error).__name__)
                self._looked_at = time.monotonic()
                return self._snapshot

    async def acurrent(self, *, fresh: bool = False) -> Snapshot:
        """Async twin of ``current``; leaves the caller's thread only when it has to look."""
        snapshot = self._snapshot
        if snapshot is not None and not fresh and not self._is_due():
            return snapshot
        return await sync_to_async(self.current)(fresh=fresh)

    def add(self, name: str, config: Mapping[str, Any]) -> None:
        """Store a new server; trusted code, so it may run code and refer to any variable.

        Raises:
            DuplicateServerError: The name is taken.
            ConfigurationError: The configuration cannot work; says which field and why.
        """
        if not isinstance(config, Mapping):
            raise ConfigurationError(f"The configuration of {name!r} must be a mapping.", server=name)
        if ServerConfig.objects.named(name).exists():
            raise DuplicateServerError(f"There is a server {name!r} already.", server=name)
        entries = import_servers(parse({"mcpServers": {name: dict(config)}}), rights=ImportRights())
        self._raise_errors(entries)
        self.invalidate()

    def remove(self, name: str) -> bool:
        """Delete a stored server; returns whether there was one.

        Raises:
            ConfigurationError: It comes from the settings or the file; remove it there.
        """
        row = ServerConfig.objects.named(name).first()
        if row is None:
            return False
        if row.is_read_only:
            raise ConfigurationError(
                f"The server {row.name!r} comes from the {row.get_source_display()}; remove it there.",
                server=row.name,
            )
        row.delete()
        self.invalidate()
        return True

    def load(self, path: str | Path) -> list[str]:
        """Store the servers of a file, new ones and changed ones; returns the names of those that can be used."""
        try:
            servers = parse_text(Path(path).expanduser().read_bytes())
        except OSError as error:
            raise ConfigurationError(f"The file {str(path)!r} cannot be read: {error.strerror}.") from error
        entries = import_servers(servers, rights=ImportRights())
        for entry in entries:
            if entry.error is not None:
                logger.warning("The server %r was not loaded: %s", entry.label, entry.error)
        self.invalidate()
        names = [entry.name for entry in entries if entry.error is None]
        return list(ServerConfig.objects.enabled().filter(name__in=names).values_list("name", flat=True))

    # What others tell ------------------------------------------------------------------

    def invalidate(self) -> None:
        """Look at the next use: something was saved in this process."""
        self._looked_at = 0.0

    def forget(self) -> None:
        """Start anew: in a forked child, where the lock may be held by a thread that is gone, and in tests."""
        self._lock = threading.Lock()
        self._snapshot, self._revisions, self._configured = None, {}, None
        self._looked_at = 0.0

    # Looking ---------------------------------------------------------------------------

    def _is_due(self) -> bool:
        return time.monotonic() - self._looked_at >= app_settings.REVISION_INTERVAL or not self._looked_at

    def _look(self, *, rebuild: bool) -> Snapshot:
        signature = configured_signature()
        if signature != self._configured:
            sync_configured()
            self._configured = signature
        looked_at = time.monotonic()
        revisions = _rows().revisions()
        if self._snapshot is None or rebuild or revisions != self._revisions:
            self._snapshot = self._build(rebuild)
            self._revisions = {name: entry.revision for name, entry in self._snapshot.entries.items()}
        self._looked_at = looked_at
        return self._snapshot

    def _build(self, rebuild: bool) -> Snapshot:
        """Resolve the rows; one whose revision is known keeps its spec, so that its connection stays."""
        known = self._snapshot.entries if self._snapshot is not None else {}
        entries: dict[str, ServerEntry] = {}
        for row in _rows().order_by("name"):
            before = known.get(row.name)
            unchanged = before is not None and before.revision == row.revision and not rebuild
            entries[row.name] = before if unchanged and before is not None else _entry(row)
        return Snapshot(entries)

    @staticmethod
    def _raise_errors(entries: list[ImportEntry]) -> None:
        for entry in entries:
            if entry.error is not None:
                raise ConfigurationError(f"The server {entry.label!r}: {entry.error}", server=entry.name)


def _rows() -> ServerConfigQuerySet:
    return ServerConfig.objects.using(router.db_for_write(ServerConfig))


def _entry(row: ServerConfig) -> ServerEntry:
    spec: ServerSpec | None = None
    error: MCPClientError | None = None
    warnings: tuple[str, ...] = ()
    try:
        resolved = row.resolve()
        spec, warnings = resolved.spec, resolved.warnings
    except MCPClientError as reason:
        error = reason
    return ServerEntry(
        name=row.name,
        transport=Transport(row.transport),
        spec=spec,
        error=error,
        enabled=row.enabled,
        stopped=row.stopped,
        revision=row.revision,
        warnings=warnings,
    )
