"""Form fields for JSON objects, typed as people write them: comments and trailing commas do no harm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from mcp_client_app import json_codec
from mcp_client_app.admin.presentation import pretty
from mcp_client_app.admin.widgets import LinesWidget
from mcp_client_app.configuration import json_text
from mcp_client_app.configuration.secrets import keep_masked_values, without_secrets_json
from mcp_client_app.exceptions import ConfigurationError

__all__ = ["JSONObjectField", "MaskedObjectField", "decoded"]


def decoded(text: str) -> Any:
    """Return what a JSON text says.

    Raises:
        ValidationError: with line and column; it quotes nothing but a key that is given twice.
    """
    twice: set[str] = set()
    try:
        found = json_text.loads(text, duplicates=twice)
    except ConfigurationError as error:
        raise ValidationError(str(error), code="json") from None
    if twice:
        raise ValidationError(_("%(name)r is given twice."), code="json_twice", params={"name": min(twice)})
    if json_codec.is_too_deep(found):
        raise ValidationError(_("This JSON is nested too deeply."), code="json")
    return found


class JSONObjectField(forms.Field):
    """A JSON object; nothing typed is an empty one. What is wrong is told with line and column."""

    widget = LinesWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return value
        return pretty(value) if value else ""

    def to_python(self, value: Any) -> dict[str, Any]:
        text = value or ""
        if not text.strip():
            return {}
        # Not stripped: the place that an error names is that in the editor.
        found = decoded(text)
        if not isinstance(found, dict):
            raise ValidationError(_("This JSON is no object; write it as in {...}."), code="json")
        return found

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return self.to_python(data) != self.to_python(self.prepare_value(initial))
        except ValidationError:
            return True


class MaskedObjectField(JSONObjectField):
    """Shows null for each string below a key that sounds secret; null keeps it.

    ``stored`` has to be given what is stored before the field is cleaned.
    """

    stored: Mapping[str, Any] = {}

    def prepare_value(self, value: Any) -> Any:
        return super().prepare_value(value if isinstance(value, str) else without_secrets_json(value))

    def clean(self, value: Any) -> Any:
        return keep_masked_values(super().clean(value), self.stored)
