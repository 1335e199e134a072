"""The version of a server that a form was opened with: who saves an outdated one is told what has changed.

It goes out in a hidden field and comes back with the form: the revision, and a keyed digest
of each field, so that the fields that somebody else has changed can be named. Digests tell
nothing about values to whoever lacks the site's secret key.
"""

from __future__ import annotations

import json
from typing import Any

from django.db import models
from django.utils.crypto import salted_hmac

from mcp_client_app.models import ServerConfig

__all__ = ["changed_since", "revision_in", "version_of"]

_SALT = "mcp_client_app.admin.versions"


def version_of(row: ServerConfig) -> str:
    """Return the version of a stored server, as text for a form."""
    digests = [f"{field.attname}={_digest(row, field)}" for field in _fields(row)]
    return " ".join([str(row.revision), *digests])


def revision_in(version: str) -> int | None:
    """Return the revision that a version holds; None if it is no version."""
    revision = version.partition(" ")[0]
    return int(revision) if revision.isascii() and revision.isdigit() else None


def changed_since(version: str, row: ServerConfig) -> list[str]:
    """Return the names of the fields whose values differ from those of the version."""
    before = dict(part.partition("=")[::2] for part in version.split(" ")[1:])
    return [field.attname for field in _fields(row) if before.get(field.attname, "") != _digest(row, field)]


def _fields(row: ServerConfig) -> list[models.Field[Any, Any]]:
    fields = row._meta.concrete_fields  # noqa: SLF001 (documented by Django)
    return [field for field in fields if field.editable and field.attname not in ("id", "updated_at")]


def _digest(row: ServerConfig, field: models.Field[Any, Any]) -> str:
    value = json.dumps([row.pk, field.attname, getattr(row, field.attname)], sort_keys=True, default=str)
    return salted_hmac(_SALT, value, algorithm="sha256").hexdigest()[:12]
