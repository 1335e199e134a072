"""Form fields for the flat schemas that servers ask people with; what else a schema says is checked later.

The fields only offer what fits and turn text into values. Whether all is well the schema decides,
when the answer is given: so nothing here is required, and what is left empty is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.contrib.admin.widgets import AdminTextInputWidget
from django.utils.translation import gettext_lazy as _

__all__ = ["fields_for", "left_out"]

_INPUT_TYPES: Final = {"email": "email", "uri": "url", "date": "date"}
"""Formats for which browsers have an input; others are texts."""


def fields_for(schema: Mapping[str, Any] | None) -> dict[str, forms.Field] | None:
    """Return a field for each property; None if there is one that no field can stand for."""
    properties = (schema or {}).get("properties")
    if not isinstance(properties, Mapping):
        return None
    required = (schema or {}).get("required")
    needed = required if isinstance(required, list) else []
    found = {}
    for name, said in properties.items():
        field = _field(said) if isinstance(said, Mapping) else None
        if field is None:
            return None
        title = str(said.get("title") or name)
        field.label = f"{title} *" if name in needed else title
        field.help_text = str(said.get("description") or "")
        field.required = False
        field.initial = _as_chosen(said.get("default"))
        found[name] = field
    return found


def left_out(value: Any, *, has_default: bool) -> bool:
    """Say whether nobody has typed or chosen anything; where a default was shown, emptiness is a choice."""
    return value is None or (value in ("", []) and not has_default)


def _field(said: Mapping[str, Any]) -> forms.Field | None:
    choices = _choices(said)
    if choices is not None:
        return forms.TypedChoiceField(choices=[("", "---------"), *choices], empty_value=None)
    match said.get("type"):
        case "string":
            kind = _INPUT_TYPES.get(str(said.get("format")), "text")
            return forms.CharField(widget=AdminTextInputWidget(attrs={"type": kind}), strip=False)
        case "integer":
            return forms.IntegerField()
        case "number":
            return forms.FloatField()
        case "boolean":
            return _yes_or_no(said)
        case "array":
            several = _choices(said.get("items") if isinstance(said.get("items"), Mapping) else {})
            return None if several is None else forms.MultipleChoiceField(choices=several)
    return None


def _yes_or_no(said: Mapping[str, Any]) -> forms.Field:
    # No check box: not to answer is a third possibility.
    return forms.TypedChoiceField(
        choices=[("", "---------"), ("true", _("yes")), ("false", _("no"))],
        coerce=lambda value: value == "true",
        empty_value=None,
    )


def _as_chosen(default: Any) -> Any:
    return str(default).lower() if isinstance(default, bool) else default


def _choices(said: Any) -> list[tuple[str, str]] | None:
    """Return values and their titles; None if it is no choice among texts."""
    values = said.get("enum")
    if isinstance(values, list) and all(isinstance(value, str) for value in values):
        names = said.get("enumNames")
        titles = names if isinstance(names, list) and len(names) == len(values) else values
        return [(value, str(title)) for value, title in zip(values, titles, strict=True)]
    for key in ("oneOf", "anyOf"):
        options = said.get(key)
        if isinstance(options, list) and options and all(_is_option(each) for each in options):
            return [(each["const"], str(each.get("title") or each["const"])) for each in options]
    return None


def _is_option(option: Any) -> bool:
    return isinstance(option, Mapping) and isinstance(option.get("const"), str)
