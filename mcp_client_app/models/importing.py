"""Takes over servers from a configuration file, the settings, or a pasted text, one entry at a time.

One bad entry never sinks the others; nothing is deleted. Who may do this is for the
services to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from mcp_client_app.configuration.dialects import ImportedServer
from mcp_client_app.models.server_fields import ServerFields
from mcp_client_app.models.servers import ServerConfig

__all__ = ["ImportEntry", "ImportRights", "import_servers", "messages"]

_SECRET: Final = frozenset({"env", "headers", "url", "extra"})
"""Fields whose values a diff does not show."""
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
    enable: bool | None = None,
    dry_run: bool = False,
) -> list[ImportEntry]:
    """Create or update a row for each entry.

    Args:
        servers: The entries as read.
        rights: What the importer may do.
        source: Where they come from; a row of another source is not touched.
        enable: Force new and changed servers on or off; None leaves that to the entry.
        dry_run: Say what would happen, and change nothing.
    """
    return [_import(server, rights, source, enable, dry_run) for server in servers]


def _import(
    server: ImportedServer, rights: ImportRights, source: str, enable: bool | None, dry_run: bool
) -> ImportEntry:
    def entry(action: str, **details: Any) -> ImportEntry:
        details.setdefault("notices", tuple(server.notices))
        return ImportEntry(name=server.name, label=server.label, action=action, **details)

    if server.error is not None:
        return entry("error", error=server.error)
    row = ServerConfig.objects.named(server.name).first()
    before = _values(row) if row is not None else None
    if row is None:
        row = ServerConfig(name=server.name, source=source)
    elif row.source != source:
        return entry("error", error=f"The name {row.name!r} belongs to a server from the {row.source}.")
    elif row.runs_code and not rights.run_code:
        return entry("error", error="Changing a server that runs code needs the permission to run code.")
    notices = list(server.notices)
    unfilled = row.apply_import(server)
    notices += [
        f"{place} has to be filled in by hand; until then the server is disabled." for place in unfilled
    ]
    if enable is not None and not unfilled:
        row.enabled = enable
    if row.runs_code and not rights.run_code and row.enabled:
        if before is not None:
            return entry("error", error="A server that runs code needs the permission to run code.")
        row.enabled = False
        notices.append("It runs code on this machine: somebody with that permission has to enable it.")
    row.judge_references(saver_may=rights.reference_environment)
    if before is not None and not (changes := _changes(before, _values(row))):
        return entry("unchanged", notices=tuple(notices))
    action = "create" if before is None else "update"
    try:
        row.full_clean()
        if not dry_run:
            with transaction.atomic():
                row.save()
    except ValidationError as error:
        return entry("error", notices=tuple(notices), error=" ".join(messages(error)))
    except IntegrityError:
        return entry("error", notices=tuple(notices), error="Somebody else has just taken this name.")
    return entry(action, notices=tuple(notices), changes=() if before is None else changes)


def messages(error: ValidationError) -> list[str]:
    """Return the messages of a validation error as ``field: message``."""
    if not hasattr(error, "error_dict"):
        return list(error.messages)
    return [f"{field}: {message}" for field, found in error.message_dict.items() for message in found]


def _values(row: ServerConfig) -> dict[str, Any]:
    names = [field.attname for field in row._meta.concrete_fields]
    return {name: getattr(row, name) for name in names if name not in _NOT_COMPARED}


def _changes(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    found = []
    for name, value in after.items():
        if before[name] != value:
            found.append(f"{name} changes" if name in _SECRET else f"{name}: {before[name]!r} → {value!r}")
    return tuple(found)
