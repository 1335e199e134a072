"""Widgets: an editor for lines, and one for names and secrets that never shows a stored secret.

Without JavaScript the secrets' editor offers empty rows; with it, a button adds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _

from mcp_client_app.configuration.secrets import without_secrets

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile
    from django.forms.renderers import BaseRenderer
    from django.utils.datastructures import MultiValueDict
    from django.utils.safestring import SafeString

__all__ = [
    "EMPTY_ROWS",
    "KEEP",
    "REMOVE",
    "RETYPE",
    "SET",
    "LinesWidget",
    "SecretMapWidget",
    "SecretRow",
    "values_of",
]

KEEP: Final = "keep"
SET: Final = "set"
"""A new name, or another value for an old one."""
RETYPE: Final = "retype"
"""As ``SET``, after an attempt that failed: the value typed then is gone, and emptiness means nothing."""
REMOVE: Final = "remove"

EMPTY_ROWS: Final = 3


@dataclass(frozen=True)
class SecretRow:
    """One row of the editor as submitted."""

    name: str = ""
    action: str = SET
    value: str = field(default="", repr=False)

    @property
    def is_blank(self) -> bool:
        """Whether nobody has typed anything into a row for a new name."""
        return not self.name and not self.value


class LinesWidget(forms.Textarea):
    """A text area for one item a line."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(
            {
                "rows": 4,
                "cols": 60,
                "class": "vLargeTextField mcp-lines",
                "spellcheck": "false",
                **(attrs or {}),
            }
        )


class SecretMapWidget(forms.Widget):
    """A row for each name: keep, replace or remove its value; references are shown, secrets are not."""

    template_name = "admin/mcp_client_app/widgets/secret_map.html"
    use_fieldset = True

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(attrs)
        self.stored: Mapping[str, str] = {}

    def id_for_label(self, id_: str | None) -> str:
        return ""

    def value_from_datadict(
        self, data: Mapping[str, Any], files: MultiValueDict[str, UploadedFile[Any]], name: str
    ) -> list[SecretRow]:
        names, actions, values = (values_of(data, f"{name}-{part}") for part in ("name", "action", "value"))
        known = (KEEP, SET, RETYPE, REMOVE)
        return [
            SecretRow(each.strip(), action if action in known else KEEP, value)
            for each, action, value in zip(names, actions, values, strict=False)
        ]

    def value_omitted_from_data(
        self, data: Mapping[str, Any], files: MultiValueDict[str, UploadedFile[Any]], name: str
    ) -> bool:
        return f"{name}-name" not in data

    def render(
        self,
        name: str,
        value: Any,
        attrs: dict[str, Any] | None = None,
        renderer: BaseRenderer | None = None,
    ) -> SafeString:
        # Through the project's own template engine: form renderers need not know this app.
        return render_to_string(self.template_name, self.get_context(name, value, attrs))

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, None, attrs)
        submitted = [row for row in value if not row.is_blank] if isinstance(value, Sequence) else []
        seen = {row.name for row in submitted if row.name in self.stored}
        rows = [self._row(SecretRow(each, KEEP)) for each in self.stored if each not in seen]
        rows += [self._row(row) for row in submitted]
        context["widget"] |= {"rows": rows, "empty_rows": range(EMPTY_ROWS)}
        return context

    def _row(self, row: SecretRow) -> dict[str, Any]:
        is_stored = row.name in self.stored
        action = RETYPE if row.value or row.action in (SET, RETYPE) else row.action
        replace = RETYPE if action == RETYPE else SET
        return {
            "name": row.name,
            "is_stored": is_stored,
            "action": action,
            "shown": without_secrets({row.name: self.stored[row.name]})[row.name] if is_stored else None,
            "choices": [(KEEP, _("keep")), (replace, _("replace")), (REMOVE, _("remove"))],
        }


def values_of(data: Mapping[str, Any], name: str) -> list[str]:
    """Return all values of a name, from what a browser sends or from a plain dictionary."""
    if hasattr(data, "getlist"):
        found: list[str] = data.getlist(name)
        return found
    value = data.get(name, [])
    return value if isinstance(value, list) else [value]
