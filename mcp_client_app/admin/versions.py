"""The version of a row that a form was opened with: who saves an outdated one is told what has changed.

It goes out in a hidden field and comes back with the form: the revision, and a keyed digest
of each field, so that the fields that somebody else has changed can be named. Digests tell
nothing about values to whoever lacks the site's secret key.
"""

from __future__ import annotations

import json
from typing import Any

from django.utils.crypto import salted_hmac

from mcp_client_app.models.revisions import RevisedModel

__all__ = ["changed_since", "revision_in", "version_of"]

_SALT = "mcp_client_app.admin.versions"


def version_of(row: RevisedModel, **more: Any) -> str:
    """Return the version of a stored row, as text for a form; ``more`` belongs to it besides its fields."""
    digests = [f"{name}={_digest(row, name, value)}" for name, value in _values(row, more)]
    return " ".join([str(row.revision), *digests])


def revision_in(version: str) -> int | None:
    """Return the revision that a version holds; None if it is no version."""
    revision = version.partition(" ")[0]
    return int(revision) if revision.isascii() and revision.isdigit() else None


def changed_since(version: str, row: RevisedModel, **more: Any) -> list[str]:
    """Return the names of the fields, and of ``more``, whose values differ from those of the version."""
    before = dict(part.partition("=")[::2] for part in version.split(" ")[1:])
    return [name for name, value in _values(row, more) if before.get(name, "") != _digest(row, name, value)]


def _values(row: RevisedModel, more: dict[str, Any]) -> list[tuple[str, Any]]:
    fields = row._meta.concrete_fields  # noqa: SLF001 (documented by Django)
    names = [field.attname for field in fields if field.editable]
    own = [(name, getattr(row, name)) for name in names if name not in ("id", "updated_at")]
    return [*own, *more.items()]


def _digest(row: RevisedModel, name: str, value: Any) -> str:
    text = json.dumps([row.pk, name, value], sort_keys=True, default=str)
    return salted_hmac(_SALT, text, algorithm="sha256").hexdigest()[:12]
