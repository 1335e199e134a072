"""Tools of an agent and calls of them: the lists, what is asked for, what came of it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mcp_client_app.api.serializers.calls import ToolCallRequestSerializer
from mcp_client_app.api.serializers.queries import MOST_PATIENT

__all__ = [
    "FORMS",
    "AgentCallQuerySerializer",
    "AgentCallRequestSerializer",
    "AgentToolListSerializer",
    "AgentToolQuerySerializer",
    "AgentToolResultSerializer",
]

FORMS = ("mcp", "openai", "anthropic")


class FormField(serializers.ChoiceField):
    """A form of tools and results. The formats of the browsable API are none, and no mistake."""

    def to_internal_value(self, data: Any) -> Any:
        return FORMS[0] if data in ("json", "api") else super().to_internal_value(data)


class AgentCallQuerySerializer(serializers.Serializer[Any]):
    """In whose form to answer."""

    format = FormField(choices=FORMS, default=FORMS[0], help_text="Whose form tools and results have.")


class AgentToolQuerySerializer(AgentCallQuerySerializer):
    """In whose form to list tools, and how long to wait for servers."""

    wait = serializers.FloatField(
        required=False,
        default=0,
        min_value=0,
        max_value=MOST_PATIENT,
        help_text="Seconds to wait for servers that have to be connected first; 0 connects nothing.",
    )


class UnavailableServerSerializer(serializers.Serializer[Any]):
    """A server of the agent whose tools are missing."""

    server = serializers.CharField()
    detail = serializers.CharField(help_text="Why.")


class AgentToolListSerializer(serializers.Serializer[Any]):
    """The tools that an agent gives its model."""

    agent = serializers.CharField()
    format = serializers.ChoiceField(choices=FORMS)
    tools = serializers.ListField(
        child=serializers.DictField(),
        help_text="As the provider wants them. Leave the parameter out if there are none: an empty list "
        "is refused.",
    )
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="Which tools are left out or changed, and why."
    )
    unavailable = UnavailableServerSerializer(many=True)


class ArgumentsField(serializers.JSONField):
    """Arguments as a model gives them: an object, or its JSON text."""

    def to_internal_value(self, data: Any) -> Any:
        """Accept an object or a text; what is in it, the toolset judges."""
        if not isinstance(data, str | dict):
            raise serializers.ValidationError("Give an object, or the JSON text of one.")
        return data


class AgentCallRequestSerializer(ToolCallRequestSerializer):
    """A call of one of the agent's tools, as a model asks for it."""

    name = serializers.CharField(max_length=1000, help_text="As in the agent's list of tools.")
    arguments = ArgumentsField(  # type: ignore[assignment]  # accepts more
        required=False,
        allow_null=True,
        help_text="An object, or its JSON text as some providers give it; without the fixed ones.",
    )
    server = None  # type: ignore[assignment]  # REST framework's way to leave a field out
    call_id = serializers.CharField(
        required=False, allow_blank=True, max_length=200, help_text="As the provider named the call."
    )
    approval = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="Of this very call, from an earlier answer `approval_required`, once it is approved.",
    )
    for_model = serializers.BooleanField(
        default=False,
        help_text="Answer failures as results with the text that a model reads; approvals and input are "
        "still asked for.",
    )


class AgentToolResultSerializer(serializers.Serializer[Any]):
    """What came of a call, for a model."""

    correlation_id = serializers.CharField(help_text="Finds the call in `calls/`.")
    agent = serializers.CharField()
    name = serializers.CharField(help_text="What the model calls the tool.")
    server = serializers.CharField(allow_null=True)
    tool = serializers.CharField(allow_null=True, help_text="As the server calls it.")
    call_id = serializers.CharField()
    is_error = serializers.BooleanField(help_text="The tool failed, or with `for_model` the call did.")
    code = serializers.CharField(allow_null=True, help_text="With `for_model`: of the failure.")
    text = serializers.CharField(help_text="What the model reads; never empty.")
    content = serializers.JSONField(
        help_text="The result in the form that was asked for: blocks of the protocol, the content of a "
        "message with the role `tool` (openai), or of a `tool_result` (anthropic)."
    )
    structured = serializers.JSONField(allow_null=True)
    warnings = serializers.ListField(child=serializers.CharField())
    truncated = serializers.BooleanField(help_text="Something was cut.")
