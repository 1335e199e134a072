"""The form of a server: fields by transport, write-only secrets, and nobody's change overwritten unseen."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django import forms
from django.forms.models import construct_instance
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from mcp_client_app.admin.fields import LinesField, SecretMapField
from mcp_client_app.admin.locking import VersionedForm
from mcp_client_app.admin.masking import SECRET_FIELDS
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import Transport
from mcp_client_app.models import ServerConfig
from mcp_client_app.models.validation import STRICT_NAMES
from mcp_client_app.services.permissions import REFERENCE, RUN_CODE, may

__all__ = ["FIELDS_BY_KIND", "KINDS", "ServerConfigForm"]

FIELDS_BY_KIND: Final = {
    "process": ("command", "args", "env", "cwd", "inherit_environment", "inherited_names"),
    "http": ("url", "headers", "terminate_on_close"),
    "in_process": ("in_process",),
}
"""What only some transports have a use for."""
KINDS: Final[dict[str, str]] = {
    Transport.STDIO: "process",
    Transport.STREAMABLE_HTTP: "http",
    Transport.SSE: "http",
    Transport.IN_PROCESS: "in_process",
}

_EMPTY: Final[dict[str, Any]] = {
    "command": "",
    "args": [],
    "env": {},
    "cwd": "",
    "inherited_names": [],
    "url": "",
    "headers": {},
    "in_process": "",
}
_RUN_CODE: Final = (Transport.STDIO.value, Transport.IN_PROCESS.value)


def _texts(name: str) -> dict[str, Any]:
    """Return label and help text of a model field, for a form field that replaces the usual one."""
    field: Any = ServerConfig._meta.get_field(name)  # noqa: SLF001 (documented by Django)
    return {"label": capfirst(field.verbose_name), "help_text": field.help_text}


class ServerConfigForm(VersionedForm):
    """Edits one server for ``user``, which the admin fills in."""

    user: ClassVar[Any] = None
    """Who edits; None for trusted code."""

    changed_by = _("%(who)s has changed this server %(age)s ago, while you were editing it.")
    was_changed = _("This server was changed %(age)s ago, while you were editing it.")
    secret_fields = SECRET_FIELDS

    args = LinesField(
        label=_texts("args")["label"],
        help_text=_("One a line; or a JSON list, for arguments that are empty or hold line breaks."),
    )
    env = SecretMapField(**_texts("env"))
    headers = SecretMapField(**_texts("headers"))
    inherited_names = LinesField(
        label=_texts("inherited_names")["label"],
        help_text=_("Names of variables of this process to pass on, one a line."),
    )
    allowed_tools = LinesField(
        null=True,
        label=_texts("allowed_tools")["label"],
        help_text=_("Names or patterns such as read_*, one a line; empty = all, [] = none."),
    )
    blocked_tools = LinesField(
        label=_texts("blocked_tools")["label"],
        help_text=_("Names or patterns, one a line; they win over allowed ones."),
    )
    strict = forms.MultipleChoiceField(
        required=False,
        choices=[(name, name) for name in STRICT_NAMES],
        widget=forms.CheckboxSelectMultiple,
        **_texts("strict"),
    )
    in_process = forms.ChoiceField(required=False, **_texts("in_process"))
    link = forms.ChoiceField(
        required=False,
        choices=[("", _("default")), ("own", "own"), ("stock", "stock")],
        label=_texts("link")["label"],
        help_text=_("What the connection talks through: this app's own transports, or the SDK's client."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        row = self.instance
        for name in ("env", "headers"):
            if isinstance(field := self.fields.get(name), SecretMapField):
                field.stored = dict(getattr(row, name))
        if isinstance(field := self.fields.get("in_process"), forms.ChoiceField):
            keys = dict.fromkeys([*app_settings.IN_PROCESS_SERVERS, *filter(None, [row.in_process])])
            field.choices = [("", "---------"), *((key, key) for key in keys)]
        self._offer_transports()

    def _offer_transports(self) -> None:
        """Leave out what needs a permission that the user lacks; the services refuse it in any case."""
        field = self.fields.get("transport")
        if not isinstance(field, forms.ChoiceField) or may(self.user, RUN_CODE):
            return
        field.choices = [choice for choice in ServerConfig.TRANSPORTS if choice[0] not in _RUN_CODE]
        if not self.instance.pk:
            self.initial["transport"] = Transport.STREAMABLE_HTTP.value
        field.help_text = _("Servers that run code on this machine need a permission that you do not have.")

    def _post_clean(self) -> None:
        # Before the model judges the row: what is left over from another transport, and
        # whether who saves may refer to the environment.
        self._empty_irrelevant_fields()
        construct_instance(self, self.instance, self._meta.fields, self._meta.exclude)
        self.instance.judge_references(saver_may=may(self.user, REFERENCE))
        super()._post_clean()  # type: ignore[misc]

    def _empty_irrelevant_fields(self) -> None:
        """Drop what the chosen transport has no use for, unless it was typed just now: that is an error."""
        kind = KINDS.get(str(self.cleaned_data.get("transport", "")))
        for name in (name for other, names in FIELDS_BY_KIND.items() if other != kind for name in names):
            if kind is None or name not in self.cleaned_data:
                continue
            if name not in _EMPTY:
                # A check box that is not sent looks as if it had been cleared.
                del self.cleaned_data[name]
            elif name not in self.changed_data or not self.cleaned_data[name]:
                self.cleaned_data[name] = _EMPTY[name]
                setattr(self.instance, name, _EMPTY[name])
