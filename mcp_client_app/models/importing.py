"""Takes over servers from a configuration file, the settings, or a pasted text, one entry at a time.

One bad entry never sinks the others; nothing is deleted. Who may do this is for the
services to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, router, transaction

from mcp_client_app.configuration.dialects import ImportedServer
from mcp_client_app.models.server_fields import ServerFields
from mcp_client_app.models.servers import ServerConfig

__all__ = ["ImportEntry", "ImportRights", "import_servers", "messages"]

_SECRET: Final = frozenset({"env", "headers", "url", "extra"})
"""Fields whose values a diff does not show."""
_KEPT: Final = frozenset({"id", "revision", "created_at", "updated_at", "enabled", "stopped"})
"""What an entry of the settings or the file leaves to operators and to the row itself, unless it says so."""
_NOT_COMPARED: Final = frozenset({"id", "revision", "created_at", "updated_at", "may_reference_environment"})


@dataclass(frozen=True, kw_only=True)
class ImportRights:
    """What the importer may do."""

    run_code: bool = True
    """Without it, new servers that run code arrive disabled, and existing ones are left alone."""
    reference_environment: bool = True


@dataclass(frozen=True, kw_only=True)
class ImportEntry:
    """What became, or would become, of one entry."""

    name: str
    label: str
    action: str
    """``create``, ``update``, ``unchanged`` or ``error``."""
    changes: tuple[str, ...] = ()
    """Fields that change, in words; values of secret fields are not shown."""
    notices: tuple[str, ...] = ()
    error: str | None = None


def import_servers(
    servers: Iterable[ImportedServer],
    *,
    rights: ImportRights,
    source: str = ServerFields.Source.DATABASE.value,
    take_over: bool = False,
    enable: bool | None = None,
    dry_run: bool = False,
) -> list[ImportEntry]:
    """Create or update a row for each entry.

    Args:
        servers: The entries as read.
        rights: What the importer may do.
        source: Where they come from. A row of the settings or the file becomes what its entry
            says; a stored one keeps what its entry does not say.
        take_over: Make rows of other sources this one's; else they are not touched.
        enable: Force new and changed servers on or off; None leaves that to the entry.
        dry_run: Say what would happen, and change nothing.
    """
    importer = _Importer(rights=rights, source=source, take_over=take_over, enable=enable, dry_run=dry_run)
    return [importer.run(server) for server in servers]


class _RefusedError(Exception):
    """Why an entry is not imported, as a sentence for people."""


@dataclass(frozen=True, kw_only=True)
class _Importer:
    """What all entries of one import have in common."""

    rights: ImportRights
    source: str
    take_over: bool
    enable: bool | None
    dry_run: bool

    def run(self, server: ImportedServer) -> ImportEntry:
        """Import one entry."""
        try:
            try:
                return self._import(server)
            except IntegrityError:
                # Another process has just stored this name: now there is a row to update.
                return self._import(server)
        except IntegrityError:
            return _failed(server, "Somebody else has just taken this name.")
        except ValidationError as error:
            return _failed(server, " ".join(messages(error)))
        except _RefusedError as refusal:
            return _failed(server, str(refusal))

    def _import(self, server: ImportedServer) -> ImportEntry:
        if server.error is not None:
            raise _RefusedError(server.error)
        stored = ServerConfig.objects.named(server.name).first()
        before = _values(stored) if stored is not None else None
        row = ServerConfig(name=server.name) if stored is None else self._claimed(stored, server)
        row.source = self.source
        notices = (*server.notices, *self._apply(server, row, is_new=stored is None))
        row.judge_references(saver_may=self.rights.reference_environment)
        changes = () if before is None else _changes(before, _values(row))
        action = "create" if before is None else "update" if changes else "unchanged"
        if action != "unchanged":
            self._save(row)
        return ImportEntry(name=row.name, label=server.label, action=action, changes=changes, notices=notices)

    def _claimed(self, row: ServerConfig, server: ImportedServer) -> ServerConfig:
        """Return a stored row that this import may change."""
        if row.source != self.source and not self.take_over:
            raise _RefusedError(f"The name {row.name!r} belongs to a server from the {row.source}.")
        if row.runs_code and not self.rights.run_code:
            raise _RefusedError("Changing a server that runs code needs the permission to run code.")
        if self.source != ServerFields.Source.DATABASE.value:
            # What an entry no longer says must not live on in the row: least of all a header
            # that was meant for another address.
            for field in _fields(row):
                if field.name not in _KEPT:
                    setattr(row, field.attname, field.get_default())
            row.name = server.name
        return row

    def _apply(self, server: ImportedServer, row: ServerConfig, *, is_new: bool) -> list[str]:
        """Take over what the entry says; returns notices."""
        unfilled = row.apply_import(server)
        notices = [
            f"{place} has to be filled in by hand; until then the server is disabled." for place in unfilled
        ]
        if self.enable is not None and not unfilled:
            row.enabled = self.enable
        if row.runs_code and row.enabled and not self.rights.run_code:
            if not is_new:
                raise _RefusedError("A server that runs code needs the permission to run code.")
            row.enabled = False
            notices.append("It runs code on this machine: somebody with that permission has to enable it.")
        return notices

    def _save(self, row: ServerConfig) -> None:
        row.full_clean()
        if not self.dry_run:
            with transaction.atomic(using=router.db_for_write(ServerConfig)):
                row.save()


def _failed(server: ImportedServer, error: str) -> ImportEntry:
    return ImportEntry(
        name=server.name, label=server.label, action="error", notices=tuple(server.notices), error=error
    )


def messages(error: ValidationError) -> list[str]:
    """Return the messages of a validation error as ``field: message``."""
    if not hasattr(error, "error_dict"):
        return list(error.messages)
    return [f"{field}: {message}" for field, found in error.message_dict.items() for message in found]


def _fields(row: ServerConfig) -> list[models.Field[Any, Any]]:
    return list(row._meta.concrete_fields)  # noqa: SLF001 (documented by Django)


def _values(row: ServerConfig) -> dict[str, Any]:
    names = [field.attname for field in _fields(row)]
    return {name: getattr(row, name) for name in names if name not in _NOT_COMPARED}


def _changes(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"{name} changes" if name in _SECRET else f"{name}: {before[name]!r} → {value!r}"
        for name, value in after.items()
        if before[name] != value
    )
