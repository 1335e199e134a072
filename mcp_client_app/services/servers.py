"""Stored servers: looking, adding, changing, removing. Every rule about who may is here or in the models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import IntegrityError, router, transaction

from mcp_client_app.configuration.secrets import SecretChanges
from mcp_client_app.exceptions import (
    ConfigurationError,
    DuplicateServerError,
    StaleRevisionError,
    UnknownServerError,
)
from mcp_client_app.models import ServerConfig
from mcp_client_app.models.servers import ServerConfigQuerySet
from mcp_client_app.runtime import row_source
from mcp_client_app.services.permissions import ADD, CHANGE, DELETE, REFERENCE, RUN_CODE, VIEW, may, require

__all__ = [
    "add_server",
    "disable_server",
    "enable_server",
    "get_server",
    "list_servers",
    "remove_server",
    "save_server",
    "update_server",
]

_SET_BY_US = frozenset(
    {"id", "pk", "name", "source", "revision", "created_at", "updated_at", "may_reference_environment"}
)


def list_servers(*, user: Any = None) -> list[ServerConfig]:
    """Return all servers by name; those of settings and file are made to rows first.

    Raises:
        PermissionDeniedError: The user may not see servers.
    """
    require(user, VIEW)
    row_source.current()
    return list(_rows().order_by("name"))


def get_server(name: str, *, user: Any = None) -> ServerConfig:
    """Return one server; names are compared without regard to case.

    Raises:
        UnknownServerError: There is none.
        PermissionDeniedError: The user may not see servers.
    """
    require(user, VIEW, server=name)
    row_source.current()
    return _find(name)


def add_server(name: str, *, user: Any = None, **fields: Any) -> ServerConfig:
    """Store a new server.

    Args:
        name: Its name.
        user: Who does it; None for trusted code.
        **fields: Fields of ``ServerConfig``; ``transport`` defaults to what the others imply.

    Raises:
        DuplicateServerError: The name is taken.
        PermissionDeniedError: The user may not, or not this kind of server.
        ValidationError: Django's, with messages by field.
        ConfigurationError: There is no such field.
    """
    require(user, ADD, server=name)
    if _rows().named(name).exists():
        raise DuplicateServerError(
            f"There is a server {name!r} already; choose another name, or change that one.",
            server=name,
            field="name",
        )
    row = ServerConfig(name=name)
    _assign(row, fields)
    if "transport" not in fields:
        row.transport = "stdio" if row.command else "in_process" if row.in_process else "streamable_http"
    try:
        with transaction.atomic(using=router.db_for_write(ServerConfig)):
            return save_server(row, user=user)
    except IntegrityError as error:
        raise DuplicateServerError(
            f"There is a server {name!r} already.", server=name, field="name"
        ) from error


def update_server(
    name: str, *, user: Any = None, expected_revision: int | None = None, **fields: Any
) -> ServerConfig:
    """Change fields of a stored server.

    Args:
        name: Which one.
        user: Who does it; None for trusted code.
        expected_revision: The revision that the change was made for; None overwrites any.
        **fields: Fields of ``ServerConfig``; what is not given stays. ``env`` and ``headers`` are
            given whole, and a value of None in them keeps the stored one; or as ``SecretChanges``.

    Raises:
        UnknownServerError: There is none.
        StaleRevisionError: ``expected_revision`` is not the stored one any more.
        PermissionDeniedError, ValidationError, ConfigurationError: As for ``add_server``.
    """
    require(user, CHANGE, server=name)
    with transaction.atomic(using=router.db_for_write(ServerConfig)):
        row = _find(name, lock=True)
        _require_revision(row, expected_revision)
        for field in ("env", "headers"):
            given = fields.get(field)
            if isinstance(given, SecretChanges):
                given = given.whole(getattr(row, field), ignore_case=field == "headers")
            if isinstance(given, Mapping):
                fields[field] = _with_stored(row, field, given)
        _assign(row, fields)
        return save_server(row, user=user)


def save_server(row: ServerConfig, *, user: Any = None) -> ServerConfig:
    """Validate and save a server, new or changed: the one way in for forms, serializers and the rest.

    Raises:
        PermissionDeniedError: The user may not; or it runs code, or did so before, and the user
            may not have code run.
        ConfigurationError: It comes from the settings or the file: change it there.
        ValidationError: Django's, with messages by field.
    """
    is_new = row._state.adding  # noqa: SLF001 (documented by Django)
    require(user, ADD if is_new else CHANGE, server=row.name)
    _require_editable(row)
    for version in (row, None if is_new else _rows().filter(pk=row.pk).first()):
        if version is not None:
            _require_right_to_run(version, user)
    row.judge_references(saver_may=may(user, REFERENCE))
    row.full_clean()
    row.save()
    return row


def remove_server(name: str, *, user: Any = None, expected_revision: int | None = None) -> None:
    """Delete a stored server; its connections end, its audit rows stay.

    Raises:
        UnknownServerError: There is none.
        StaleRevisionError: ``expected_revision`` is not the stored one any more.
        ConfigurationError: It comes from the settings or the file: remove it there.
    """
    require(user, DELETE, server=name)
    with transaction.atomic(using=router.db_for_write(ServerConfig)):
        row = _find(name, lock=True)
        _require_revision(row, expected_revision)
        _require_editable(row)
        row.delete()


def enable_server(name: str, *, user: Any = None) -> ServerConfig:
    """Allow the use of a server.

    Raises:
        ValidationError: It is incomplete; says what is missing.
    """
    require(user, CHANGE, server=name)
    row = _find(name)
    _require_right_to_run(row, user)
    if not row.enabled:
        row.enabled = True
        row.full_clean()
        row.enable()
    return row


def disable_server(name: str, *, user: Any = None) -> ServerConfig:
    """Forbid the use of a server; its connections end in all processes."""
    require(user, CHANGE, server=name)
    row = _find(name)
    if row.enabled:
        row.disable()
    return row


def _rows() -> ServerConfigQuerySet:
    """Rows of the write database: a replica may not know yet what was saved a moment ago."""
    return ServerConfig.objects.using(router.db_for_write(ServerConfig))


def _find(name: str, *, lock: bool = False) -> ServerConfig:
    rows = _rows().select_for_update() if lock else _rows()
    row = rows.named(name).first()
    if row is None:
        raise UnknownServerError(f"There is no server {name!r}.", server=name)
    return row


def _assign(row: ServerConfig, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        if name in _SET_BY_US or not _is_field(name):
            raise ConfigurationError(
                f"A server has no field {name!r} that can be set.", server=row.name, field=name
            )
        setattr(row, name, value)


def _with_stored(row: ServerConfig, field: str, given: Mapping[str, Any]) -> dict[str, Any]:
    stored = getattr(row, field)
    missing = [key for key, value in given.items() if value is None and key not in stored]
    if missing:
        raise ConfigurationError(
            f"There is no stored value to keep for {missing[0]!r}; give one.",
            server=row.name,
            field=f"{field}.{missing[0]}",
        )
    return {key: stored[key] if value is None else value for key, value in given.items()}


def _is_field(name: str) -> bool:
    try:
        ServerConfig._meta.get_field(name)  # noqa: SLF001 (documented by Django)
    except FieldDoesNotExist:
        return False
    return True


def _require_revision(row: ServerConfig, expected: int | None) -> None:
    if expected is not None and row.revision != expected:
        raise StaleRevisionError(server=row.name, expected=expected, revision=row.revision)


def _require_editable(row: ServerConfig) -> None:
    if row.is_read_only:
        raise ConfigurationError(
            f"The server {row.name!r} comes from the {row.get_source_display()}; change it there.",
            server=row.name,
        )


def _require_right_to_run(row: ServerConfig, user: Any) -> None:
    if row.runs_code:
        require(user, RUN_CODE, server=row.name)
