"""The manager's view of the rows: a snapshot, renewed when a row has changed.

One query for all servers tells, at most every ``MCP_CLIENT_REVISION_INTERVAL`` seconds per
process, and at once after a save in this process. It runs in the caller's thread, on the
write database: never on the event loop.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async
from django.db import Error as DatabaseError
from django.db import router

from mcp_client_app.client.sources import ServerEntry, Snapshot
from mcp_client_app.conf import app_settings
from mcp_client_app.configuration.dialects import parse, parse_text
from mcp_client_app.datatypes import ServerSpec, Transport
from mcp_client_app.exceptions import ConfigurationError, DuplicateServerError, MCPClientError
from mcp_client_app.models.importing import ImportRights, import_servers
from mcp_client_app.models.servers import ServerConfig, ServerConfigQuerySet
from mcp_client_app.naming import MAX_SERVER_NAME, is_server_name
from mcp_client_app.runtime.configured import configured_signature, sync_configured

logger = logging.getLogger(__name__)

__all__ = ["RowSource"]

PATIENCE = 5.0
"""Seconds that a thread waits for another one's look before it goes by what is known."""


class _Version(NamedTuple):
    """What differs between two states of a row, also of one deleted and made anew, or rolled back."""

    pk: int
    revision: int
    updated_at: datetime
    source: str


class RowSource:
    """Supplies the manager with servers from the database."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew: in a forked child, where a thread that is gone may hold the lock, and in tests."""
        self._lock = threading.Lock()
        self._looker: int | None = None
        """The thread that looks."""
        self._snapshot: Snapshot | None = None
        self._versions: dict[str, _Version] = {}
        """Of the rows in the snapshot."""
        self._looked_at = 0.0
        self._wish: object = object()
        """Another one for each wish to look at the next use."""
        self._granted: object = None
        """The wish that the last look has answered."""
        self._signature: tuple[object, ...] | None = None
        """Of settings and file when the rows were last made to agree with them."""
        self._configured: frozenset[str] = frozenset()
        """Servers whose rows stand for entries of settings and file."""

    # What the manager asks -------------------------------------------------------------

    def current(self, *, fresh: bool = False) -> Snapshot:
        """Return the servers as they are, at most a little outdated unless ``fresh``.

        Raises:
            ConfigurationError: The tables cannot be read, and nothing is known yet.
        """
        known = self._snapshot
        if known is not None and not fresh and not self._is_due():
            return known
        if self._looker == threading.get_ident():
            # Looking has made rows, whose receivers want them to be followed: they will be.
            return known or Snapshot(version=0)
        # Whoever looks may have to wait for a transaction, perhaps for one of this very thread.
        if not self._lock.acquire(timeout=-1 if known is None else PATIENCE):
            return known or Snapshot(version=0)
        try:
            self._looker = threading.get_ident()
            if self._snapshot is not None and not fresh and not self._is_due():
                return self._snapshot  # another thread has just looked
            return self._renewed(fresh)
        finally:
            self._looker = None
            self._lock.release()

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
        if not is_server_name(name):
            raise ConfigurationError(
                f"{name!r} cannot name a server: a letter, then letters, digits, '-' and '_', "
                f"at most {MAX_SERVER_NAME} characters.",
                field="name",
            )
        if not isinstance(config, Mapping):
            raise ConfigurationError(f"The configuration of {name!r} must be a mapping.", server=name)
        if _rows().named(name).exists():
            raise DuplicateServerError(f"There is a server {name!r} already.", server=name, field="name")
        for entry in import_servers(parse({"mcpServers": {name: dict(config)}}), rights=ImportRights()):
            if entry.error is not None:
                raise ConfigurationError(f"The server {name!r}: {entry.error}", server=name)
        self.invalidate()

    def remove(self, name: str) -> bool:
        """Delete a stored server; returns whether there was one.

        Raises:
            ConfigurationError: It comes from the settings or the file; remove it there.
        """
        row = _rows().named(name).first()
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
        """Store the servers of a file, new and changed ones; returns the names of those that may be used.

        Raises:
            ConfigurationError: The file cannot be read, or holds no servers.
        """
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
        return list(_rows().enabled().filter(name__in=names).values_list("name", flat=True))

    # What others tell ------------------------------------------------------------------

    def invalidate(self) -> None:
        """Look at the next use: something was saved in this process, or may have been in another one."""
        self._wish = object()

    # Looking ---------------------------------------------------------------------------

    def _renewed(self, fresh: bool) -> Snapshot:
        # Read first: a wish that comes while we look is for the next look.
        wish, now = self._wish, time.monotonic()
        try:
            self._snapshot = self._look(rebuild=fresh)
        except DatabaseError as error:
            if self._snapshot is None:
                raise ConfigurationError(
                    f"The servers cannot be read from the database ({type(error).__name__}); "
                    "has 'manage.py migrate' been run?"
                ) from error
            logger.warning("The servers could not be read anew: %s", type(error).__name__)
        self._granted, self._looked_at = wish, now
        return self._snapshot

    def _is_due(self) -> bool:
        if self._granted is not self._wish:
            return True
        return time.monotonic() - self._looked_at >= app_settings.REVISION_INTERVAL

    def _look(self, *, rebuild: bool) -> Snapshot:
        signature = configured_signature()
        versions = _versions() if signature == self._signature else None
        # Rows that stand for entries may be missing: who made them may have been rolled back.
        if versions is None or not self._configured <= versions.keys():
            sync_configured()
            versions = _versions()
            self._configured = frozenset(
                name for name, version in versions.items() if version.source != ServerConfig.Source.DATABASE
            )
            self._signature = signature
        if self._snapshot is None or rebuild or versions != self._versions:
            return self._build(rebuild=rebuild)
        return self._snapshot

    def _build(self, *, rebuild: bool) -> Snapshot:
        """Resolve the rows; one that has not changed keeps its spec, and so its connection."""
        known = self._snapshot.entries if self._snapshot is not None and not rebuild else {}
        entries: dict[str, ServerEntry] = {}
        versions: dict[str, _Version] = {}
        for row in _rows().order_by("name"):
            version = versions[row.name] = _Version(row.pk, row.revision, row.updated_at, row.source)
            is_same = row.name in known and self._versions.get(row.name) == version
            entries[row.name] = known[row.name] if is_same else _entry(row)
        self._versions = versions
        return Snapshot(entries)


def _rows() -> ServerConfigQuerySet:
    return ServerConfig.objects.using(router.db_for_write(ServerConfig))


def _versions() -> dict[str, _Version]:
    rows = _rows().order_by().values_list("name", "pk", "revision", "updated_at", "source")
    return {
        name: _Version(pk, revision, updated_at, source) for name, pk, revision, updated_at, source in rows
    }


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
        transport=_transport(row),
        spec=spec,
        error=error,
        enabled=row.enabled,
        stopped=row.stopped,
        revision=row.revision,
        warnings=warnings,
    )


def _transport(row: ServerConfig) -> Transport:
    try:
        return Transport(row.transport)
    except ValueError:
        return Transport.STDIO  # the row is unsound, which its error says
