"""The columns of a stored agent, and what makes their values sound together."""

from __future__ import annotations

import fnmatch
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from mcp_client_app import json_codec, validators
from mcp_client_app.conf import app_settings
from mcp_client_app.configuration.dialects import MAX_LABEL
from mcp_client_app.datatypes import ApprovalPolicy, ToolFilter
from mcp_client_app.models.named import NamedModel

__all__ = [
    "POLICIES",
    "UNSTORABLE",
    "AgentFields",
    "agent_errors",
    "as_filter",
    "is_readable_variable",
    "is_storable",
]

UNSTORABLE = _("It holds characters that not every database stores, such as NUL.")

POLICIES = [
    (ApprovalPolicy.NEVER.value, _("never")),
    (ApprovalPolicy.WRITES.value, _("for calls that may change something")),
    (ApprovalPolicy.ALWAYS.value, _("always")),
    (ApprovalPolicy.DENY.value, _("refuse such calls")),
]


class AgentFields(NamedModel):
    """All columns of ``AgentConfig``, without its relations."""

    VALIDATION: ClassVar = [
        ("error", _("refuse the call")),
        ("warn", _("make the call, and say so")),
        ("off", _("do not look")),
    ]

    name = models.CharField(
        _("name"),
        max_length=100,
        unique=True,
        validators=[validators.validate_agent_name],
        help_text=_("Letters, digits, '-' and '_'; part of its addresses."),
        error_messages={"unique": _("An agent of this name exists already.")},
    )
    label = models.CharField(
        _("label"), max_length=MAX_LABEL, blank=True, help_text=_("The name to show; any text.")
    )
    description = models.TextField(_("description"), blank=True)
    enabled = models.BooleanField(_("enabled"), default=True, help_text=_("Whether the agent may be used."))

    model = models.CharField(
        _("model"),
        max_length=200,
        blank=True,
        validators=[validators.validate_model_name],
        help_text=_("Provider and model, as in 'openai:gpt-5'; empty = the agent only serves its tools."),
    )
    base_url = models.CharField(
        _("base URL"),
        max_length=2048,
        blank=True,
        validators=[validators.validate_plain_url],
        help_text=_("Of a server that speaks as the provider does, such as vLLM or Ollama."),
    )
    api_key_variable = models.CharField(
        _("variable of the API key"),
        max_length=200,
        blank=True,
        validators=[validators.validate_variable_name],
        help_text=_("Name of the environment variable that holds the key; empty = the provider's own one."),
    )
    instructions = models.TextField(_("instructions"), blank=True)
    model_settings = models.JSONField(
        _("model settings"), default=dict, blank=True, help_text=_('An object, as in {"temperature": 0}.')
    )

    all_servers = models.BooleanField(
        _("all servers"), default=False, help_text=_("Use every enabled server, also those added later.")
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
    validation = models.CharField(
        _("arguments that do not fit"), max_length=10, choices=VALIDATION, default="error"
    )
    result_limit = models.PositiveIntegerField(
        _("longest result"),
        default=100_000,
        validators=[MinValueValidator(100)],
        help_text=_("Characters of a tool's result that the model reads; the rest is cut, and marked."),
    )

    approval = models.CharField(
        _("approval"),
        max_length=10,
        choices=POLICIES,
        default=ApprovalPolicy.NEVER.value,
        help_text=_("When a person has to approve a call."),
    )
    approval_lifetime = models.FloatField(
        _("lifetime of an approval"),
        null=True,
        blank=True,
        validators=[validators.validate_seconds],
        help_text=_("Seconds; empty = the default."),
    )

    max_rounds = models.PositiveIntegerField(
        _("rounds"),
        default=8,
        validators=[MinValueValidator(1)],
        help_text=_("How often the model may ask for tools in one run."),
    )
    max_parallel_calls = models.PositiveIntegerField(
        _("calls at once"), default=8, help_text=_("Within one round; 0 = no limit.")
    )
    token_limit = models.PositiveIntegerField(
        _("token limit"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Tokens of one run; empty = no limit."),
    )
    time_limit = models.FloatField(
        _("time limit"),
        null=True,
        blank=True,
        validators=[validators.validate_seconds],
        help_text=_(
            "Seconds of one run, without the time it waits for people; empty = the default, 0 = no limit."
        ),
    )

    may_reference_environment = models.BooleanField(
        _("may use any variable"),
        default=False,
        editable=False,
        help_text=_("Saved by somebody who may refer to the environment."),
    )

    class Meta:
        abstract = True


def as_filter(allowed: list[str] | None, blocked: list[str]) -> ToolFilter:
    """Return what two columns of patterns say."""
    return ToolFilter(None if allowed is None else tuple(allowed), tuple(blocked))


def is_storable(value: Any) -> bool:
    """Say whether every database takes this JSON value."""
    return bool(json_codec.scrub(value) == value)


def is_readable_variable(name: str, *, granted: bool) -> bool:
    """Say whether an agent may read this environment variable; the denied ones never."""
    if _matches(app_settings.ENV_DENY, name):
        return False
    return granted or _matches(app_settings.ENV_ALLOW, name)


def agent_errors(agent: AgentFields) -> dict[str, list[ValidationError]]:
    """Return what is wrong with an agent, by field. The fields' own validators have run."""
    errors: dict[str, list[ValidationError]] = {}
    if agent.allowed_tools is not None and not isinstance(agent.allowed_tools, list):
        _add(errors, "allowed_tools", _("Give a list or null."), "list")
    if not isinstance(agent.blocked_tools, list):
        _add(errors, "blocked_tools", _("Give a list; it may be empty."), "list")
    if not isinstance(agent.model_settings, dict):
        _add(errors, "model_settings", _("Give an object; it may be empty."), "object")
    for field in ("allowed_tools", "blocked_tools", "model_settings"):
        if not is_storable(getattr(agent, field)):
            _add(errors, field, UNSTORABLE, "characters")
    variable = agent.api_key_variable
    if variable and not is_readable_variable(variable, granted=agent.may_reference_environment):
        _add(
            errors,
            "api_key_variable",
            _(
                "Reading this variable needs the permission to refer to the environment, "
                "or its name in MCP_CLIENT_ENV_ALLOW."
            ),
            "reference",
        )
    for field in ("base_url", "api_key_variable"):
        if getattr(agent, field) and not agent.model:
            _add(errors, field, _("Without a model a value here has no use; empty it."), "irrelevant")
    return errors


def _matches(globs: list[str], name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def _add(
    errors: dict[str, list[ValidationError]], field: str, message: Any, code: str, **params: Any
) -> None:
    errors.setdefault(field, []).append(ValidationError(message, code=code, params=params))
