"""``AgentServer``: what an agent may use of one server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from mcp_client_app import validators
from mcp_client_app.conf import app_settings
from mcp_client_app.configuration.output_filters import parse_output_filters
from mcp_client_app.datatypes import AgentServerSpec, ApprovalPolicy
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models.agent_fields import POLICIES, as_filter
from mcp_client_app.models.agents import AgentConfig
from mcp_client_app.models.fields import SecretMapField
from mcp_client_app.models.servers import ServerConfig

if TYPE_CHECKING:
    from django.db.models.base import ModelBase

__all__ = ["AgentServer"]

Errors = dict[str, list[ValidationError]]


class AgentServer(models.Model):
    """One server of an agent. Each change raises the agent's revision."""

    agent = models.ForeignKey(
        AgentConfig, on_delete=models.CASCADE, related_name="agent_servers", verbose_name=_("agent")
    )
    server = models.ForeignKey(
        ServerConfig, on_delete=models.CASCADE, related_name="agent_servers", verbose_name=_("MCP server")
    )
    allowed_tools = models.JSONField(
        _("allowed tools"),
        null=True,
        blank=True,
        default=None,
        validators=[validators.validate_tool_patterns],
        help_text=_("Names or patterns; null = all, [] = none."),
    )
    blocked_tools = models.JSONField(
        _("blocked tools"),
        default=list,
        blank=True,
        validators=[validators.validate_tool_patterns],
        help_text=_("Names or patterns; they win over allowed ones."),
    )
    fixed_arguments = SecretMapField(
        _("fixed arguments"),
        help_text=_("Tool to an object of arguments that every call has and no model sees."),
    )
    output_filters = models.JSONField(
        _("output filters"),
        default=dict,
        blank=True,
        help_text=_("Tool or pattern to a list of filters of its results."),
    )
    result_limit = models.PositiveIntegerField(
        _("longest result"),
        null=True,
        blank=True,
        validators=[MinValueValidator(100)],
        help_text=_("Characters; empty = the agent's limit."),
    )
    result_limits = models.JSONField(
        _("longest results by tool"),
        default=dict,
        blank=True,
        help_text=_("Tool or pattern to a number of characters."),
    )
    approval = models.CharField(
        _("approval"),
        max_length=10,
        choices=POLICIES,
        blank=True,
        help_text=_("When a person has to approve a call; empty = as the agent says."),
    )
    tool_approvals = models.JSONField(
        _("approval by tool"),
        default=dict,
        blank=True,
        help_text=_("Tool or pattern to 'never', 'writes', 'always' or 'deny'."),
    )

    class Meta:
        verbose_name = _("MCP server of an agent")
        verbose_name_plural = _("MCP servers of agents")
        ordering = ("agent", "server")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("agent", "server"), name="mcp_client_agent_server"),
        ]

    def __str__(self) -> str:
        return f"{self.agent}: {self.server}"

    def save(
        self,
        force_insert: bool | tuple[ModelBase, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        """Save, and raise the agent's revision."""
        super().save(
            force_insert=force_insert, force_update=force_update, using=using, update_fields=update_fields
        )
        self._raise_revision()

    save.alters_data = True  # type: ignore[attr-defined]

    def delete(self, using: str | None = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        """Delete, and raise the agent's revision."""
        deleted = super().delete(using, keep_parents)
        self._raise_revision()
        return deleted

    delete.alters_data = True  # type: ignore[attr-defined]

    def clean(self) -> None:
        """Judge the columns that hold JSON.

        Raises:
            ValidationError: with the messages by field.
        """
        super().clean()
        if errors := _errors_of(self):
            raise ValidationError(errors)

    def _raise_revision(self) -> None:
        agents = AgentConfig.objects.using(self._state.db)
        agents.filter(pk=self.agent_id).update(revision=models.F("revision") + 1)

    def to_spec(self) -> AgentServerSpec:
        """Return what ``services`` works with."""
        return AgentServerSpec(
            name=self.server.name,
            filter=as_filter(self.allowed_tools, self.blocked_tools),
            fixed_arguments=dict(self.fixed_arguments),
            output_filters=dict(self.output_filters),
            result_limit=self.result_limit,
            result_limits=dict(self.result_limits),
            approval=ApprovalPolicy(self.approval) if self.approval else None,
            tool_approvals={tool: ApprovalPolicy(policy) for tool, policy in self.tool_approvals.items()},
        )


def _errors_of(row: AgentServer) -> Errors:
    """Return what is wrong with what is said of one server, by field."""
    errors: Errors = {}
    if row.allowed_tools is not None and not isinstance(row.allowed_tools, list):
        _add(errors, "allowed_tools", _("Give a list or null."), "list")
    if not isinstance(row.blocked_tools, list):
        _add(errors, "blocked_tools", _("Give a list; it may be empty."), "list")
    _check_map(errors, row, "fixed_arguments", lambda value: isinstance(value, Mapping), _("an object"))
    _check_output_filters(errors, row)
    _check_map(errors, row, "result_limits", _is_limit, _("a number of characters, 100 or more"))
    _check_map(
        errors,
        row,
        "tool_approvals",
        lambda value: value in {policy.value for policy in ApprovalPolicy},
        _("'never', 'writes', 'always' or 'deny'"),
    )
    return errors


def _check_map(
    errors: Errors, row: AgentServer, field: str, is_sound: Callable[[Any], bool], kind: Any
) -> None:
    value = getattr(row, field)
    if not isinstance(value, Mapping):
        _add(errors, field, _("Give an object that maps tools to values; it may be empty."), "object")
        return
    for tool, given in value.items():
        if not tool.strip() or not _is_sound(is_sound, given):
            _add(errors, field, _("The value of %(tool)r has to be %(kind)s."), "value", tool=tool, kind=kind)


def _check_output_filters(errors: Errors, row: AgentServer) -> None:
    try:
        parse_output_filters(row.output_filters, known=app_settings.OUTPUT_FILTERS)
    except ConfigurationError as error:
        _add(errors, "output_filters", "%(reason)s", "value", reason=str(error))


def _is_sound(is_sound: Callable[[Any], bool], value: Any) -> bool:
    try:
        return is_sound(value)
    except TypeError:  # what cannot be hashed is in no set
        return False


def _is_limit(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 100


def _add(errors: Errors, field: str, message: Any, code: str, **params: Any) -> None:
    errors.setdefault(field, []).append(ValidationError(message, code=code, params=params))
