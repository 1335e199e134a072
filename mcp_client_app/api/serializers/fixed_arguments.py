"""Fixed arguments of an agent's server: values come in and never go out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.fields import empty

from mcp_client_app.configuration.argument_changes import ArgumentChanges, Change

__all__ = ["ArgumentChangesField", "StoredArgumentSerializer", "shown_arguments"]


class StoredArgumentSerializer(serializers.Serializer[Any]):
    """That a value is stored."""

    set = serializers.BooleanField()


def shown_arguments(values: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, dict[str, bool]]]:
    """Return what may be shown: tools, and names of arguments."""
    return {tool: {name: {"set": True} for name in arguments} for tool, arguments in values.items()}


class ArgumentChangesField(serializers.JSONField):
    """Reads an edit of fixed arguments: tool to argument to value.

    A text, number, boolean or list sets a value and null removes it; ``{"value": ...}`` sets any
    value, ``{"set": true}`` (as it is answered) keeps the stored one. What is not mentioned stays,
    except with PUT, which names all. Null in the place of a tool's arguments removes them all.
    """

    default_error_messages: ClassVar = {
        "mapping": "Give an object of tools, each with an object of arguments or null.",
        "value": (
            '{tool!r}: give the object {name!r} as {{"value": ...}}, '
            'or as {{"set": true}} to keep what is stored.'
        ),
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(write_only=True, required=False, **kwargs)

    def get_value(self, dictionary: Mapping[Any, Any]) -> Any:
        value = super().get_value(dictionary)
        # The empty box of a form says nothing about values that the form did not show.
        return empty if isinstance(value, str) and not value.strip() else value

    def to_internal_value(self, data: Any) -> ArgumentChanges:  # type: ignore[override]  # the stubs know JSON only
        given = super().to_internal_value(data)
        if not isinstance(given, Mapping):
            self.fail("mapping")
        values: dict[str, dict[str, Any]] = {}
        removed = set()
        for tool, arguments in given.items():
            if arguments is None:
                removed.add(tool)
            elif isinstance(arguments, Mapping):
                values[tool] = {name: self._change(tool, name, value) for name, value in arguments.items()}
            else:
                self.fail("mapping")
        request = self.context.get("request")
        is_put = request is not None and request.method == "PUT"
        return ArgumentChanges(values, frozenset(removed), replace=is_put)

    def _change(self, tool: str, name: str, value: Any) -> Any:
        if value is None:
            return Change.REMOVE
        if not isinstance(value, Mapping):
            return value
        if set(value) == {"value"}:
            return value["value"]
        if value == {"set": True}:
            return Change.KEEP
        return self.fail("value", tool=tool, name=name)
