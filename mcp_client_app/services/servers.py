"""Stored servers: looking, adding, changing, removing. Every rule about who may is here or in the models."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import IntegrityError, transaction

from mcp_client_app.exceptions import (
    ConfigurationError,
    DuplicateServerError,
    StaleRevisionError,
    UnknownServerError,
)
from mcp_client_app.models import ServerConfig
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
    return list(ServerConfig.objects.order_by("name"))


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
    if ServerConfig.objects.named(name).exists():
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
        return save_server(row, user=user)
    except IntegrityError as error:
        raise DuplicateServerError(
            f"There is a server {name!r} already.", server=name, field="name"
        ) from error


def update_server(
    name: str, *, user: Any = None, expected_revision: int | None = None, **fields: Any
) -> ServerConfig:
    """Change fields of a stored server; in ``env`` and ``headers``, a None keeps the stored value.

    Raises:
        UnknownServerError: There is none.
        StaleRevisionError: ``expected_revision`` is not the stored one any more.
        PermissionDeniedError, ValidationError, ConfigurationError: As for ``add_server``.
    """
    require(user, CHANGE, server=name)
    with transaction.atomic():
        row = _find(name, lock=True)
        if expected_revision is not None and row.revision != expected_revision:
            raise StaleRevisionError(server=row.name, expected=expected_revision, revision=row.revision)
        _require_right_to_run(row, user)
        for secret in ("env", "headers"):
            if isinstance(fields.get(secret), dict):
                stored = getattr(row, secret)
                fields[secret] = {
                    key: stored.get(key, "") if value is None else value
                    for key, value in fields[secret].items()
                }
        _assign(row, fields)
        return save_server(row, user=user)


def save_server(row: ServerConfig, *, user: Any = None) -> ServerConfig:
    """Validate and save a server, new or changed: the one way in for forms, serializers and the rest.

    Raises:
        PermissionDeniedError: It runs code, and the user may not have code run.
        ConfigurationError: It comes from the settings or the file: change it there.
        ValidationError: Django's, with messages by field.
    """
    _require_editable(row)
    _require_right_to_run(row, user)
    row.judge_references(saver_may=may(user, REFERENCE))
    row.full_clean()
    row.save()
    return row


def remove_server(name: str, *, user: Any = None) -> None:
    """Delete a stored server; its connections end, its audit rows stay.

    Raises:
        UnknownServerError: There is none.
        ConfigurationError: It comes from the settings or the file: remove it there.
    """
    require(user, DELETE, server=name)
    row = _find(name)
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


def _find(name: str, *, lock: bool = False) -> ServerConfig:
    rows = ServerConfig.objects.select_for_update() if lock else ServerConfig.objects.all()
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


def _is_field(name: str) -> bool:
    try:
        ServerConfig._meta.get_field(name)
    except FieldDoesNotExist:
        return False
    return True


def _require_editable(row: ServerConfig) -> None:
    if row.is_read_only:
        raise ConfigurationError(
            f"The server {row.name!r} comes from the {row.get_source_display()}; change it there.",
            server=row.name,
        )


def _require_right_to_run(row: ServerConfig, user: Any) -> None:
    if row.runs_code:
        require(user, RUN_CODE, server=row.name)
