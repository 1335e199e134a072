"""What people fill in: to decide about a call, or to answer what a server asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.contrib.admin.widgets import AdminTextareaWidget
from django.utils.translation import gettext_lazy as _

from mcp_client_app.admin.json_fields import JSONObjectField
from mcp_client_app.admin.schema_fields import fields_for, left_out
from mcp_client_app.datatypes import InputKind, InputRequest
from mcp_client_app.exceptions import InvalidInputError
from mcp_client_app.models import Approval
from mcp_client_app.services.answers import questions
from mcp_client_app.services.approval_decisions import MAX_REASON

__all__ = ["AnswerForms", "DecisionForm", "QuestionForm"]

ACCEPT: Final = "accept"
ACTIONS: Final = [
    (ACCEPT, _("Send the answer")),
    ("decline", _("Decline: say no")),
    ("cancel", _("Cancel: make no choice")),
]


class DecisionForm(forms.Form):
    """Approve a call, perhaps with other arguments, or deny it."""

    arguments = JSONObjectField(
        label=_("Arguments"),
        help_text=_("What is sent if you approve. Change it, and it is held to the tool's schema."),
    )
    reason = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=MAX_REASON,
        widget=AdminTextareaWidget(attrs={"rows": 2}),
        help_text=_("For the record; if you deny the call, the model reads it."),
    )

    def __init__(self, row: Approval, data: Any = None) -> None:
        # No arguments are shown as well: an empty field would look as if something was missing.
        super().__init__(data, initial={"arguments": row.arguments or "{}"}, label_suffix="")
        self.fields["arguments"].widget.attrs["rows"] = 10
        if row.schema is None:
            self.leave_arguments()

    def leave_arguments(self) -> None:
        """Offer no change of the arguments, or disregard it."""
        self.fields.pop("arguments", None)

    @property
    def chosen(self) -> dict[str, Any] | None:
        """What stands there now; None if it cannot be changed."""
        return self.cleaned_data.get("arguments")


class QuestionForm(forms.Form):
    """One question of a server: a field for each value, or its JSON where no fields can stand for it."""

    action = forms.ChoiceField(label=_("What to do"), choices=ACTIONS, initial=ACCEPT)

    def __init__(self, asked: InputRequest, data: Any, prefix: str) -> None:
        super().__init__(data, prefix=prefix, label_suffix="")
        self.asked = asked
        self.is_form = asked.kind is InputKind.ELICITATION
        self._names: dict[str, str] = {}
        if not self.is_form:
            # The protocol knows no other answer than a good one.
            del self.fields["action"]
        if asked.mode == "url":
            return
        fields = fields_for(asked.requested_schema) if self.is_form else None
        if fields is None:
            self.fields["json"] = JSONObjectField(label=_("Answer, as JSON"), initial=asked.defaults or None)
            return
        for number, (name, field) in enumerate(fields.items()):
            key = f"field{number}"
            self._names[key] = name
            self.fields[key] = field

    def clean(self) -> dict[str, Any]:
        if self.is_form and self.cleaned_data.get("action") != ACCEPT:
            # What is not sent need not fit.
            for name in [name for name in self.errors if name != "action"]:
                del self.errors[name]
        return self.cleaned_data

    @property
    def response(self) -> dict[str, Any]:
        """The answer, in the form that the services take."""
        if not self.is_form:
            return dict(self.cleaned_data["json"])
        action = self.cleaned_data["action"]
        if action != ACCEPT or self.asked.mode == "url":
            return {"action": action}
        if "json" in self.fields:
            return {"action": action, "content": self.cleaned_data["json"]}
        values = {name: self.cleaned_data.get(key) for key, name in self._names.items()}
        shown = self.asked.defaults
        content = {
            name: value for name, value in values.items() if not left_out(value, has_default=name in shown)
        }
        return {"action": action, "content": content}

    def add_problems(self, problems: tuple[str, ...]) -> None:
        """Show what is wrong with the answer beside the fields that it is about."""
        by_name = {name: key for key, name in self._names.items()}
        for problem in problems:
            place, separator, message = problem.partition(": ")
            key = by_name.get(place.partition("/")[0]) if separator else None
            self.add_error(key, message if key is not None else problem)


class AnswerForms:
    """The forms of all questions that a server asks in one call."""

    def __init__(self, row: Approval, data: Any = None) -> None:
        asked = questions(row.requests, server=row.server_name, tool=row.tool)
        self.forms = [QuestionForm(each, data, f"q{number}") for number, each in enumerate(asked)]

    def is_valid(self) -> bool:
        """Judge all of them, not only the first that is wrong."""
        return not [form for form in self.forms if not form.is_valid()]

    @property
    def responses(self) -> Mapping[str, Any]:
        """The answers by key."""
        return {form.asked.key: form.response for form in self.forms}

    def refuse(self, error: InvalidInputError) -> None:
        """Show why the answers were refused."""
        for form in self.forms:
            if form.asked.key == error.key:
                form.add_problems(error.errors or (str(error),))
