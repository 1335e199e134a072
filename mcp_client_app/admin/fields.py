"""Form fields for lists and secrets: what an operator types, and what is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from mcp_client_app import json_codec
from mcp_client_app.admin.widgets import (
    KEEP,
    REMOVE,
    RETYPE,
    LinesWidget,
    SecretMapWidget,
    SecretRow,
)
from mcp_client_app.configuration import json_text
from mcp_client_app.exceptions import ConfigurationError

__all__ = ["LinesField", "SecretMapField", "VersionField"]


class LinesField(forms.Field):
    """A list of strings: one a line, or a JSON list where lines cannot say it.

    Args:
        null: Whether emptiness means None (and ``[]`` the empty list) rather than the empty list.
    """

    widget = LinesWidget

    def __init__(self, *, null: bool = False, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)
        self.null = null

    def prepare_value(self, value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        if not value:
            return "[]" if self.null else ""
        if all(_is_line(item) for item in value) and not value[0].startswith("["):
            return "\n".join(value)
        return json_codec.dumps(value).decode()

    def to_python(self, value: Any) -> list[str] | None:
        text = (value or "").strip()
        if not text:
            return None if self.null else []
        if not text.startswith("["):
            return [line.strip() for line in text.split("\n") if line.strip()]
        # Not stripped: the place that an error names is that in the editor.
        return self._from_json(value)

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return self.to_python(data) != self.to_python(self.prepare_value(initial))
        except ValidationError:
            return True

    @staticmethod
    def _from_json(text: str) -> list[str]:
        try:
            items = json_text.loads(text)
        except ConfigurationError as error:
            raise ValidationError(str(error), code="json") from None
        if not isinstance(items, list):
            raise ValidationError(_("This JSON is no list."), code="json")
        for number, item in enumerate(items, 1):
            if not isinstance(item, str):
                raise ValidationError(
                    _("Item %(number)d of the list is no string; put it in quotation marks."),
                    code="json",
                    params={"number": number},
                )
        return items


def _is_line(item: str) -> bool:
    return bool(item) and item == item.strip() and len(item.splitlines()) == 1


class SecretMapField(forms.Field):
    """Names and secrets, edited key by key; a stored value is never shown, and kept unless told otherwise.

    ``stored`` has to be given what is stored before the field is cleaned or rendered.
    """

    widget: Any = SecretMapWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)

    @property
    def stored(self) -> Mapping[str, str]:
        """What is stored."""
        stored: Mapping[str, str] = self.widget.stored
        return stored

    @stored.setter
    def stored(self, values: Mapping[str, str]) -> None:
        self.widget.stored = values

    def clean(self, value: Sequence[SecretRow] | None) -> dict[str, str]:
        rows = [row for row in value or () if not row.is_blank]
        result = {name: text for name, text in self.stored.items() if name not in {row.name for row in rows}}
        for row in rows:
            if row.action == REMOVE:
                continue
            if row.name in result:
                raise ValidationError(
                    _("%(name)r is given twice."), code="secret_twice", params={"name": row.name}
                )
            result[row.name] = self._value_of(row)
        # As stored, so that an order that nobody has changed is no change.
        return {**{name: result[name] for name in self.stored if name in result}, **result}

    def has_changed(self, initial: Any, data: Sequence[SecretRow] | None) -> bool:
        return any(not row.is_blank and (row.action != KEEP or row.value) for row in data or ())

    def _value_of(self, row: SecretRow) -> str:
        if not row.name:
            raise ValidationError(_("A value has no name."), code="secret_name")
        if row.action == KEEP and not row.value:
            if row.name not in self.stored:
                raise ValidationError(
                    _("There is no stored value of %(name)r any more; type one."),
                    code="secret_gone",
                    params={"name": row.name},
                )
            return self.stored[row.name]
        if row.action == RETYPE and not row.value:
            # What was typed before is not sent back to the browser. Nothing here must not pass for "".
            raise ValidationError(
                _("Type the value of %(name)r again: secrets are not shown, not even new ones."),
                code="secret_again",
                params={"name": row.name},
            )
        return row.value


class VersionField(forms.CharField):
    """The version that the form was opened with; not for people, and never a change."""

    widget = forms.HiddenInput

    def has_changed(self, initial: Any, data: Any) -> bool:
        return False
