"""``env`` and ``headers``: values come in and never go out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.fields import empty

from mcp_client_app.configuration.expansion import consists_of_references, placeholders
from mcp_client_app.configuration.secrets import SecretChanges

__all__ = ["SecretChangesField", "StoredSecretSerializer", "shown_secrets"]


class StoredSecretSerializer(serializers.Serializer[Any]):
    """That a value is stored; the value itself only if it consists of references to variables."""

    set = serializers.BooleanField(help_text="False: a placeholder waits to be filled in.")
    reference = serializers.CharField(allow_null=True, help_text="For example '${TOKEN}'.")


def shown_secrets(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what may be shown of ``env`` or ``headers``."""
    return {
        name: {
            "set": not placeholders(str(text)),
            "reference": text if consists_of_references(str(text), bare_words=True) else None,
        }
        for name, text in values.items()
    }


class SecretChangesField(serializers.JSONField):
    """Reads an edit of ``env`` or ``headers``.

    A string sets a value and null removes the key. An object (as it is answered) keeps what is
    stored. A key that is not mentioned stays, except with PUT, which names all keys.
    """

    default_error_messages: ClassVar = {
        "mapping": "Give an object of names.",
        "value": "The value of {name!r} must be a string, null, or an object that keeps the stored value.",
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(write_only=True, required=False, **kwargs)

    def get_value(self, dictionary: Mapping[Any, Any]) -> Any:
        value = super().get_value(dictionary)
        # The empty box of a form says nothing about values that the form did not show.
        return empty if isinstance(value, str) and not value.strip() else value

    def to_internal_value(self, data: Any) -> SecretChanges:  # type: ignore[override]  # the stubs know JSON only
        given = super().to_internal_value(data)
        if not isinstance(given, Mapping):
            self.fail("mapping")
        values: dict[str, str | None] = {}
        removed = set()
        for name, value in given.items():
            if value is None:
                removed.add(name)
            elif isinstance(value, str):
                values[name] = value
            elif isinstance(value, Mapping):
                values[name] = None
            else:
                self.fail("value", name=name)
        request = self.context.get("request")
        is_put = request is not None and request.method == "PUT"
        return SecretChanges(values, frozenset(removed), replace=is_put)
