"""The editor of fixed arguments, key by key: a stored value never shows, and stays unless told otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _

from mcp_client_app.admin.json_fields import decoded
from mcp_client_app.admin.widgets import EMPTY_ROWS, KEEP, REMOVE, values_of

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile
    from django.forms.renderers import BaseRenderer
    from django.utils.datastructures import MultiValueDict
    from django.utils.safestring import SafeString

__all__ = ["ArgumentRow", "ArgumentsField", "ArgumentsWidget"]

TEXT: Final = "text"
JSON: Final = "json"
PARTS: Final = ("tool", "name", "action", "value", "again")

Arguments = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class ArgumentRow:
    """One row of the editor as submitted."""

    tool: str = ""
    name: str = ""
    action: str = TEXT
    value: str = field(default="", repr=False)
    again: bool = False
    """A value was typed before, and was not sent back: emptiness means nothing."""

    @property
    def is_blank(self) -> bool:
        """Whether nobody has typed anything into a row for a new argument."""
        return not (self.tool or self.name or self.value)


class ArgumentsWidget(forms.Widget):
    """A row for each tool and argument: keep, replace or remove its value."""

    template_name = "admin/mcp_client_app/widgets/fixed_arguments.html"
    use_fieldset = True

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(attrs)
        self.stored: Mapping[str, Mapping[str, Any]] = {}

    def id_for_label(self, id_: str | None) -> str:
        return ""

    def value_from_datadict(
        self, data: Mapping[str, Any], files: MultiValueDict[str, UploadedFile[Any]], name: str
    ) -> list[ArgumentRow]:
        columns = (values_of(data, f"{name}-{part}") for part in PARTS)
        return [
            ArgumentRow(
                *self._names(tool, argument), action if action in _KNOWN else KEEP, value, bool(again)
            )
            for tool, argument, action, value, again in zip(*columns, strict=False)
        ]

    def _names(self, tool: str, argument: str) -> tuple[str, str]:
        """Return both names as they are stored, else without outer white space."""
        return (tool, argument) if argument in self.stored.get(tool, {}) else (tool.strip(), argument.strip())

    def value_omitted_from_data(
        self, data: Mapping[str, Any], files: MultiValueDict[str, UploadedFile[Any]], name: str
    ) -> bool:
        return f"{name}-tool" not in data

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
        seen = {(row.tool, row.name) for row in submitted}
        stored = [(tool, argument) for tool, arguments in self.stored.items() for argument in arguments]
        rows = [self._row(ArgumentRow(*place, KEEP)) for place in stored if place not in seen]
        rows += [self._row(row) for row in submitted]
        context["widget"] |= {"rows": rows, "empty_rows": range(EMPTY_ROWS), "kinds": _KINDS}
        return context

    def _row(self, row: ArgumentRow) -> dict[str, Any]:
        is_stored = row.name in self.stored.get(row.tool, {})
        action = TEXT if row.action == KEEP and row.value else row.action
        return {
            "tool": row.tool,
            "name": row.name,
            "is_stored": is_stored,
            "action": action,
            "again": row.again or bool(row.value),
            "choices": _CHOICES if is_stored else _KINDS,
        }


_KINDS: Final = [(TEXT, _("text")), (JSON, _("JSON"))]
_CHOICES: Final = [
    (KEEP, _("keep")),
    (TEXT, _("replace by text")),
    (JSON, _("replace by JSON")),
    (REMOVE, _("remove")),
]
_KNOWN: Final = frozenset({KEEP, TEXT, JSON, REMOVE})


class ArgumentsField(forms.Field):
    """Tools, names of arguments, and their values.

    ``stored`` has to be given what is stored before the field is cleaned or rendered.
    """

    widget: Any = ArgumentsWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)

    @property
    def stored(self) -> Mapping[str, Mapping[str, Any]]:
        """What is stored."""
        stored: Mapping[str, Mapping[str, Any]] = self.widget.stored
        return stored

    @stored.setter
    def stored(self, values: Mapping[str, Mapping[str, Any]]) -> None:
        self.widget.stored = values

    def clean(self, value: Sequence[ArgumentRow] | None) -> Arguments:
        rows = [row for row in value or () if not row.is_blank]
        result: Arguments = {tool: dict(arguments) for tool, arguments in self.stored.items()}
        seen: set[tuple[str, str]] = set()
        for row in rows:
            if not row.tool or not row.name:
                raise ValidationError(
                    _("An argument needs the name of its tool and its own name."), code="argument_name"
                )
            if (row.tool, row.name) in seen:
                raise _error(row, _("%(tool)s, %(name)s: given twice."), "argument_twice")
            seen.add((row.tool, row.name))
            if row.action == REMOVE:
                result.get(row.tool, {}).pop(row.name, None)
            else:
                result.setdefault(row.tool, {})[row.name] = self._value_of(row)
        return {tool: arguments for tool, arguments in result.items() if arguments}

    def has_changed(self, initial: Any, data: Sequence[ArgumentRow] | None) -> bool:
        return any(not row.is_blank and (row.action != KEEP or row.value) for row in data or ())

    def _value_of(self, row: ArgumentRow) -> Any:
        if row.action == KEEP and not row.value:
            stored = self.stored.get(row.tool, {})
            if row.name not in stored:
                raise _error(
                    row, _("%(tool)s, %(name)s: nothing is stored any more; type it."), "argument_gone"
                )
            return stored[row.name]
        if row.again and not row.value:
            # What was typed before is not sent back to the browser. Nothing here must not pass for "".
            raise _error(
                row, _("%(tool)s, %(name)s: type the value again; values are never shown."), "argument_again"
            )
        return _decoded(row) if row.action == JSON else row.value


def _decoded(row: ArgumentRow) -> Any:
    try:
        return decoded(row.value)
    except ValidationError as error:
        reason = " ".join(error.messages)
        raise _error(row, _("%(tool)s, %(name)s: %(reason)s"), "argument_json", reason=reason) from None


def _error(row: ArgumentRow, message: Any, code: str, **params: str) -> ValidationError:
    return ValidationError(message, code=code, params={"tool": row.tool, "name": row.name, **params})
