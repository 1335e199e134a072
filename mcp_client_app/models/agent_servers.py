"""``AgentServer``: what an agent may use of one server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models, transaction
from django.utils.translation import gettext_lazy as _

from mcp_client_app import validators
from mcp_client_app.conf import app_settings
from mcp_client_app.configuration.output_filters import parse_output_filters
from mcp_client_app.datatypes import AgentServerSpec, ApprovalPolicy
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models.agent_fields import POLICIES, UNSTORABLE, as_filter, is_storable
from mcp_client_app.models.agents import AgentConfig
from mcp_client_app.models.fields import SecretMapField
from mcp_client_app.models.servers import ServerConfig

__all__ = ["AgentServer", "AgentServerQuerySet", "raise_revisions"]

Errors = dict[str, list[ValidationError]]

_JSON: Final = (
    "allowed_tools",
    "blocked_tools",
    "fixed_arguments",
    "output_filters",
    "result_limits",
    "tool_approvals",
)


class AgentServerQuerySet(models.QuerySet["AgentServer"]):
    """Bulk changes raise the agents' revisions; ``receivers`` do so for single ones, and for deletions."""

    def update(self, **kwargs: Any) -> int:
        self._for_write = True
        # Before and after: a change may hand a server to another agent, or be what the rows are found by.
        changed = set(self.order_by().values_list("pk", flat=True)) if kwargs else set()
        with transaction.atomic(using=self.db):
            self._raise_revisions(changed)
            updated = super().update(**kwargs)
            if {"agent", "agent_id"} & set(kwargs):
                self._raise_revisions(changed)
        return updated

    update.alters_data = True  # type: ignore[attr-defined]

    def bulk_create(self, objs: Iterable[AgentServer], *args: Any, **kwargs: Any) -> list[AgentServer]:
        self._for_write = True
        objs = list(objs)
        with transaction.atomic(using=self.db):
            created = super().bulk_create(objs, *args, **kwargs)
            raise_revisions(self.db, {row.agent_id for row in objs})
        return created

    bulk_create.alters_data = True  # type: ignore[attr-defined]

    def get_by_natural_key(self, agent: str, server: str) -> AgentServer:
        """Return what an agent may use of a server, both by name."""
        return self.get(agent__name=agent, server__name=server)

    def _raise_revisions(self, rows: set[int]) -> None:
        agents = AgentServer.objects.using(self.db).filter(pk__in=rows).values_list("agent_id", flat=True)
        raise_revisions(self.db, set(agents))


def raise_revisions(database: str | None, agents: Iterable[int]) -> None:
    """Note that agents have changed, after a change of what they may use."""
    AgentConfig.objects.using(database).filter(pk__in=set(agents)).update(revision=models.F("revision") + 1)


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

    objects = AgentServerQuerySet.as_manager()

    class Meta:
        verbose_name = _("MCP server of an agent")
        verbose_name_plural = _("MCP servers of agents")
        ordering = ("agent", "server")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("agent", "server"), name="mcp_client_agent_server"),
        ]

    def __str__(self) -> str:
        return f"{self.agent}: {self.server}"

    def natural_key(self) -> tuple[str, str]:
        return (self.agent.name, self.server.name)

    natural_key.dependencies = (  # type: ignore[attr-defined]
        "mcp_client_app.agentconfig",
        "mcp_client_app.serverconfig",
    )

    def clean(self) -> None:
        """Judge the columns that hold JSON.

        Raises:
            ValidationError: with the messages by field.
        """
        super().clean()
        if errors := _errors_of(self):
            raise ValidationError(errors)

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
    for field in _JSON:
        if not is_storable(getattr(row, field)):
            _add(errors, field, UNSTORABLE, "characters")
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
