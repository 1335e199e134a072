"""Stored agents: how they are shown, and what may be changed of them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mcp_client_app.api.serializers.fixed_arguments import (
    ArgumentChangesField,
    StoredArgumentSerializer,
    shown_arguments,
)
from mcp_client_app.api.serializers.numbers import SecondsField
from mcp_client_app.configuration.secrets import visible_url, without_secrets_json
from mcp_client_app.datatypes import ApprovalPolicy
from mcp_client_app.models import AgentConfig, AgentServer
from mcp_client_app.services.agent_choices import SERVER_FIELDS
from mcp_client_app.services.permissions import CHANGE_AGENT, may

__all__ = [
    "AgentChangesSerializer",
    "AgentConfigSerializer",
    "NewAgentConfigSerializer",
    "UsableAgentSerializer",
]

SETTABLE = (
    "label",
    "description",
    "enabled",
    "model",
    "base_url",
    "api_key_variable",
    "instructions",
    "model_settings",
    "all_servers",
    "servers",
    "allowed_tools",
    "blocked_tools",
    "validation",
    "result_limit",
    "approval",
    "approval_lifetime",
    "max_rounds",
    "max_parallel_calls",
    "token_limit",
    "time_limit",
    "groups",
)
"""The fields that the API sets, in the order in which they are shown."""

POLICIES = [policy.value for policy in ApprovalPolicy]
VALIDATION = ["error", "warn", "off"]
MOST = 2**31 - 1
YEAR = 366 * 86_400


# Shown -------------------------------------------------------------------------------------


class AgentServerSerializer(serializers.ModelSerializer[AgentServer]):
    """What an agent may use of one server."""

    server = serializers.CharField(source="server.name", help_text="The server's name.")
    allowed_tools = serializers.ListField(child=serializers.CharField(), allow_null=True)
    blocked_tools = serializers.ListField(child=serializers.CharField())
    fixed_arguments = serializers.DictField(
        child=serializers.DictField(child=StoredArgumentSerializer()), help_text="Names only."
    )
    output_filters = serializers.DictField(
        child=serializers.ListField(child=serializers.JSONField()),
        help_text="Tool or pattern to a list of filters of its results.",
    )
    result_limits = serializers.DictField(child=serializers.IntegerField())
    approval = serializers.ChoiceField(choices=["", *POLICIES], help_text="Empty = as the agent says.")
    tool_approvals = serializers.DictField(child=serializers.ChoiceField(choices=POLICIES))

    class Meta:
        model = AgentServer
        fields = ("server", *SERVER_FIELDS)
        read_only_fields = fields

    def to_representation(self, instance: AgentServer) -> dict[str, Any]:
        """Give fixed arguments as names."""
        stored = {name: getattr(instance, name) for name in SERVER_FIELDS}
        return {
            "server": instance.server.name,
            **stored,
            "fixed_arguments": shown_arguments(instance.fixed_arguments),
        }


class AgentConfigSerializer(serializers.ModelSerializer[AgentConfig]):
    """A stored agent."""

    base_url = serializers.CharField(help_text="Without path and query for users who may not change agents.")
    model_settings = serializers.DictField(
        help_text="Strings below keys that sound secret, such as headers, are null; null keeps them."
    )
    servers = AgentServerSerializer(source="agent_servers", many=True)
    allowed_tools = serializers.ListField(child=serializers.CharField(), allow_null=True)
    blocked_tools = serializers.ListField(child=serializers.CharField())
    validation = serializers.ChoiceField(choices=VALIDATION)
    approval = serializers.ChoiceField(choices=POLICIES)
    groups = serializers.SlugRelatedField(  # type: ignore[var-annotated]  # of the stubs
        slug_field="name",
        many=True,
        read_only=True,
        help_text="Names; whose members may use the agent; none = everybody with the permission.",
    )

    class Meta:
        model = AgentConfig
        fields = ("name", *SETTABLE, "revision", "created_at", "updated_at")
        read_only_fields = fields

    def to_representation(self, instance: AgentConfig) -> dict[str, Any]:
        """Show what may be seen of secrets; give servers in the order of their names."""
        told: dict[str, Any] = super().to_representation(instance)
        if not may(getattr(self.context.get("request"), "user", None), CHANGE_AGENT):
            told["base_url"] = visible_url(instance.base_url)
        told["model_settings"] = without_secrets_json(dict(instance.model_settings))
        told["servers"].sort(key=lambda server: server["server"].casefold())
        told["groups"].sort()
        return told


class UsableAgentSerializer(serializers.ModelSerializer[AgentConfig]):
    """An agent, for those who may use it."""

    has_model = serializers.SerializerMethodField(
        help_text="Whether it can be run; else it only serves tools."
    )

    class Meta:
        model = AgentConfig
        fields = ("name", "label", "description", "has_model")
        read_only_fields = fields

    def get_has_model(self, instance: AgentConfig) -> bool:
        """Say whether there is a model; which one is no business of users."""
        return bool(instance.model)


# Changed -----------------------------------------------------------------------------------


def _texts(**kwargs: Any) -> serializers.ListField:
    child = serializers.CharField(trim_whitespace=False)
    return serializers.ListField(child=child, required=False, **kwargs)


def _count(minimum: int, text: str, **kwargs: Any) -> serializers.IntegerField:
    return serializers.IntegerField(
        required=False, min_value=minimum, max_value=MOST, help_text=text, **kwargs
    )


def _seconds(text: str) -> SecondsField:
    return SecondsField(required=False, allow_null=True, min_value=0, max_value=YEAR, help_text=text)


class AgentServerChangesSerializer(serializers.ModelSerializer[AgentServer]):
    """What is changed of the use of one server; everything that is not given stays."""

    server = serializers.CharField(max_length=40, help_text="The server's name.")
    allowed_tools = _texts(allow_null=True, help_text="Names or patterns; null = all, [] = none.")
    blocked_tools = _texts(help_text="Names or patterns; they win over allowed ones.")
    fixed_arguments = ArgumentChangesField()
    output_filters = serializers.DictField(
        child=serializers.JSONField(),
        required=False,
        help_text="Tool or pattern to a list of filters of its results.",
    )
    result_limit = _count(100, "Characters; null = the agent's limit.", allow_null=True)
    result_limits = serializers.DictField(
        child=serializers.IntegerField(min_value=100, max_value=MOST), required=False
    )
    approval = serializers.ChoiceField(choices=["", *POLICIES], required=False)
    tool_approvals = serializers.DictField(child=serializers.ChoiceField(choices=POLICIES), required=False)

    class Meta:
        model = AgentServer
        fields = ("server", *SERVER_FIELDS)


class AgentChangesSerializer(serializers.ModelSerializer[AgentConfig]):
    """What is changed of a stored agent; everything that is not given stays.

    ``servers`` names all servers of the agent: one that is missing is taken out.
    """

    name = serializers.CharField(
        required=False, max_length=100, help_text="A name never changes: leave it out or repeat it."
    )
    revision = serializers.IntegerField(
        required=False,
        min_value=0,
        help_text="The revision that you have seen; if there is a newer one, nothing is changed.",
    )
    base_url = serializers.CharField(required=False, allow_blank=True, max_length=2048)
    model_settings = serializers.DictField(required=False, help_text='An object, as in {"temperature": 0}.')
    servers = AgentServerChangesSerializer(many=True, required=False)
    allowed_tools = _texts(allow_null=True, help_text="Names or patterns; null = all, [] = none.")
    blocked_tools = _texts(help_text="Names or patterns; they win over allowed ones.")
    validation = serializers.ChoiceField(choices=VALIDATION, required=False)
    approval = serializers.ChoiceField(choices=POLICIES, required=False)
    result_limit = _count(100, "Characters of a tool's result that the model reads.")
    approval_lifetime = _seconds("Seconds; null = the default.")
    max_rounds = _count(1, "How often the model may ask for tools in one run.")
    max_parallel_calls = _count(0, "Within one round; 0 = no limit.")
    token_limit = _count(1, "Tokens of one run; null = no limit.", allow_null=True)
    time_limit = _seconds("Seconds of one run; null = the default, 0 = no limit.")
    groups = _texts(help_text="Names of groups whose members may use the agent; none = no restriction.")

    class Meta:
        model = AgentConfig
        fields = ("name", *SETTABLE, "revision")

    def to_representation(self, instance: AgentConfig) -> dict[str, Any]:
        """Fill in the form of the browsable API, in the form in which it can be sent back."""
        shown = AgentConfigSerializer(context=self.context).to_representation(instance)
        return {name: value for name, value in shown.items() if name in self.fields}


class NewAgentConfigSerializer(AgentChangesSerializer):
    """A new agent."""

    name = serializers.CharField(max_length=100, help_text="Letters, digits, '-' and '_'; it never changes.")
    revision = None  # type: ignore[assignment]  # REST framework's way to leave a field out

    class Meta:
        model = AgentConfig
        fields = ("name", *SETTABLE)
