"""The field type for secrets: a JSON object whose values never show.

Stored as plain JSON. Whoever wants encryption at rest replaces ``get_prep_value`` and
``from_db_value``; nothing else knows the stored form. Migrations refer to the field: never
move or rename it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.query_utils import DeferredAttribute

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

__all__ = ["SecretMap", "SecretMapField"]


class SecretMap(dict[str, Any]):
    """A dictionary that shows its keys and hides its values: in logs, tracebacks, templates, f-strings."""

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name!r}: …" for name in self) + "}"

    __str__ = __repr__


class _SecretMapAttribute(DeferredAttribute):
    """Wraps what is assigned, so that a row never carries a plain dictionary."""

    def __set__(self, instance: models.Model, value: Any) -> None:
        instance.__dict__[self.field.attname] = _wrap(value)


class SecretMapField(models.JSONField):
    """Maps names to secrets; empty by default.

    It has no form field: a form would echo the values. Write-only input is the business of
    whoever builds the form.
    """

    descriptor_class = _SecretMapAttribute

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("default", dict)
        kwargs.setdefault("blank", True)
        super().__init__(*args, **kwargs)

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        return _wrap(super().from_db_value(value, expression, connection))

    def to_python(self, value: Any) -> Any:
        return _wrap(super().to_python(value))

    def formfield(self, *args: Any, **kwargs: Any) -> None:
        return None


def _wrap(value: Any) -> Any:
    return SecretMap(value) if isinstance(value, Mapping) and not isinstance(value, SecretMap) else value
