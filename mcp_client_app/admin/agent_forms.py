"""The forms of an agent and of its servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.db.models import Model
from django.forms.models import construct_instance
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from mcp_client_app.admin.argument_fields import ArgumentsField
from mcp_client_app.admin.fields import LinesField
from mcp_client_app.admin.json_fields import JSONObjectField, MaskedObjectField
from mcp_client_app.admin.locking import VersionedForm
from mcp_client_app.models import AgentConfig, AgentServer
from mcp_client_app.services.agent_choices import SERVER_FIELDS
from mcp_client_app.services.permissions import REFERENCE, may

if TYPE_CHECKING:
    AgentServerModelForm = forms.ModelForm[AgentServer]
else:
    AgentServerModelForm = forms.ModelForm

__all__ = ["AgentConfigForm", "AgentServerForm"]


def _texts(model: type[Model], name: str) -> dict[str, Any]:
    """Return label and help text of a model field, for a form field that replaces the usual one."""
    field: Any = model._meta.get_field(name)  # noqa: SLF001 (documented by Django)
    return {"label": capfirst(field.verbose_name), "help_text": field.help_text}


def _allowed() -> LinesField:
    return LinesField(
        null=True,
        label=_texts(AgentConfig, "allowed_tools")["label"],
        help_text=_("Names or patterns such as read_*, one a line; empty = all, [] = none."),
    )


def _blocked() -> LinesField:
    return LinesField(
        label=_texts(AgentConfig, "blocked_tools")["label"],
        help_text=_("Names or patterns, one a line; they win over allowed ones."),
    )


class AgentConfigForm(VersionedForm):
    """Edits one agent for ``user``, which the admin fills in."""

    user: ClassVar[Any] = None
    """Who edits; None for trusted code."""

    changed_by = _("%(who)s has changed this agent %(age)s ago, while you were editing it.")
    was_changed = _("This agent was changed %(age)s ago, while you were editing it.")
    secret_fields = ("model_settings",)

    allowed_tools = _allowed()
    blocked_tools = _blocked()
    model_settings = MaskedObjectField(**_texts(AgentConfig, "model_settings"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if isinstance(field := self.fields.get("model_settings"), MaskedObjectField):
            field.stored = dict(self.instance.model_settings)

    def more_of(self, row: AgentConfig) -> dict[str, Any]:
        """Return what the agent may use of each server, by what this part of the form is called."""
        columns = ("server_id", *SERVER_FIELDS)
        return {"servers": list(row.agent_servers.order_by("server_id").values_list(*columns))}

    def label_of(self, name: str) -> Any:
        """Return what people call a part of the form."""
        return _("MCP servers") if name == "servers" else super().label_of(name)

    def _post_clean(self) -> None:
        # Before the model judges the row: whether who saves may refer to the environment.
        construct_instance(self, self.instance, self._meta.fields, self._meta.exclude)
        self.instance.judge_references(saver_may=may(self.user, REFERENCE))
        super()._post_clean()  # type: ignore[misc]


class AgentServerForm(AgentServerModelForm):
    """Edits what an agent may use of one server."""

    allowed_tools = _allowed()
    blocked_tools = _blocked()
    fixed_arguments = ArgumentsField(**_texts(AgentServer, "fixed_arguments"))
    output_filters = JSONObjectField(**_texts(AgentServer, "output_filters"))
    result_limits = JSONObjectField(**_texts(AgentServer, "result_limits"))
    tool_approvals = JSONObjectField(**_texts(AgentServer, "tool_approvals"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if isinstance(field := self.fields.get("fixed_arguments"), ArgumentsField):
            field.stored = dict(self.instance.fixed_arguments)
        if self.instance.pk and "server" in self.fields:
            # What is fixed may be secret: nobody sends it to another server without knowing it.
            self.fields["server"].disabled = True
