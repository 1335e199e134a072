"""Calls: what is asked for, what came of it, and what was written down."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mcp_client_app.api.serializers.numbers import SecondsField
from mcp_client_app.api.serializers.shared_fields import SharedFieldsSerializer
from mcp_client_app.datatypes import InputKind
from mcp_client_app.models import ToolCall
from mcp_client_app.models.receipts import MAX_KEY

__all__ = [
    "CompletionRequestSerializer",
    "CompletionSerializer",
    "PromptRequestSerializer",
    "PromptResultSerializer",
    "ResourceRequestSerializer",
    "ResourceResultSerializer",
    "ToolCallRecordSerializer",
    "ToolCallRequestSerializer",
    "ToolResultSerializer",
]

DAY = 86_400


def _timeout() -> serializers.FloatField:
    return SecondsField(
        required=False,
        allow_null=True,
        min_value=0.001,
        max_value=DAY,
        help_text="Seconds; the request's own limit holds in any case. Null = the server's.",
    )


class CorrelatedSerializer(serializers.Serializer[Any]):
    """What came of a call, with the id of its audit row. The context gives the ``correlation_id``."""

    correlation_id = serializers.SerializerMethodField(help_text="Finds the call in `calls/`.")

    def get_correlation_id(self, result: Any) -> str:
        return str(self.context.get("correlation_id", ""))

    def to_representation(self, result: Any) -> dict[str, Any]:
        """Take the values as they are: JSON.

        The fields would change nothing; copying them for each answer took a fifth of a request.
        """
        found: dict[str, Any] = {"correlation_id": self.get_correlation_id(result)}
        for name in self._declared_fields:
            if name != "correlation_id":
                value = getattr(result, name)
                found[name] = list(value) if isinstance(value, tuple) else value
        return found


def _server(**kwargs: Any) -> serializers.CharField:
    return serializers.CharField(max_length=40, help_text="Its name; case makes no difference.", **kwargs)


class InputSerializer(SharedFieldsSerializer):
    """What a server may ask for, and answers to what it has asked for."""

    accept_input = serializers.ListField(
        child=serializers.ChoiceField(choices=[kind.value for kind in InputKind]),
        required=False,
        help_text="What the server may ask for. It is asked of you: the call is then answered with "
        "`input_required` and what it needs.",
    )
    input_responses = serializers.DictField(
        child=serializers.DictField(),
        required=False,
        help_text="Answers to the `input_requests` of an earlier answer, by the same keys: the call goes on.",
    )
    request_state = serializers.CharField(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=1_000_000,
        trim_whitespace=False,
        help_text="From the same earlier answer, unchanged.",
    )


class ToolCallRequestSerializer(InputSerializer):
    """A call of a tool."""

    name = serializers.CharField(
        max_length=1000, help_text="`<server>__<tool>`, or the tool's own name if it is unique."
    )
    arguments = serializers.DictField(required=False, help_text="What the tool's input schema asks for.")
    server = _server(required=False, allow_null=True)
    timeout = _timeout()
    idempotency_key = serializers.CharField(
        required=False,
        allow_null=True,
        max_length=MAX_KEY,
        help_text="A repeat with the same key does not run the tool again; also as the header "
        "`Idempotency-Key`.",
    )


class ToolResultSerializer(CorrelatedSerializer):
    """What a tool returned. Blocks have the form of the protocol."""

    server = serializers.CharField()
    tool = serializers.CharField(help_text="As the server calls it.")
    is_error = serializers.BooleanField(help_text="The tool ran and reported a failure.")
    text = serializers.CharField(help_text="All text of the content.")
    content = serializers.ListField(child=serializers.DictField())
    structured = serializers.JSONField(allow_null=True)
    meta = serializers.DictField(allow_null=True)
    warnings = serializers.ListField(child=serializers.CharField())
    truncated = serializers.BooleanField(help_text="Text was cut at the largest size.")
    replayed = serializers.BooleanField(help_text="The call was sent twice, because the link was lost.")


class ResourceRequestSerializer(InputSerializer):
    """A resource to read."""

    server = _server()
    uri = serializers.CharField(max_length=8000)
    timeout = _timeout()


class ResourceResultSerializer(CorrelatedSerializer):
    """What reading a resource gave: text, or base64 as `blob`, for each item."""

    server = serializers.CharField()
    uri = serializers.CharField()
    text = serializers.CharField(help_text="All text of the contents.")
    contents = serializers.ListField(child=serializers.DictField())
    warnings = serializers.ListField(child=serializers.CharField())
    truncated = serializers.BooleanField(help_text="Text was cut, or a blob left out, at the largest size.")


class PromptRequestSerializer(InputSerializer):
    """A prompt to fill in."""

    server = _server()
    name = serializers.CharField(max_length=1000)
    arguments = serializers.DictField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False), required=False
    )
    timeout = _timeout()


class PromptResultSerializer(CorrelatedSerializer):
    """A prompt, filled in."""

    server = serializers.CharField()
    prompt = serializers.CharField()
    description = serializers.CharField(allow_null=True)
    messages = serializers.ListField(child=serializers.DictField())
    warnings = serializers.ListField(child=serializers.CharField())
    truncated = serializers.BooleanField(help_text="Text was cut at the largest size.")


class CompletionReferenceSerializer(serializers.Serializer[Any]):
    """The prompt or the resource template whose argument is completed."""

    type = serializers.ChoiceField(choices=["ref/prompt", "ref/resource"])
    name = serializers.CharField(required=False, max_length=1000, help_text="Of the prompt.")
    uri = serializers.CharField(required=False, max_length=8000, help_text="Of the resource or template.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require what the type needs."""
        wanted = "name" if attrs["type"] == "ref/prompt" else "uri"
        if wanted not in attrs:
            raise serializers.ValidationError({wanted: "This type needs it."})
        return {"type": attrs["type"], wanted: attrs[wanted]}


class CompletionRequestSerializer(SharedFieldsSerializer):
    """An argument that is being typed."""

    server = _server()
    ref = CompletionReferenceSerializer()
    argument = serializers.CharField(max_length=1000)
    value = serializers.CharField(required=False, allow_blank=True, default="", trim_whitespace=False)
    context = serializers.DictField(  # type: ignore[assignment]  # a field, not the serializer's context
        child=serializers.CharField(allow_blank=True, trim_whitespace=False),
        required=False,
        help_text="Arguments that are given already.",
    )
    timeout = _timeout()


class CompletionSerializer(CorrelatedSerializer):
    """Suggestions for an argument."""

    values = serializers.ListField(child=serializers.CharField())
    total = serializers.IntegerField(allow_null=True)
    has_more = serializers.BooleanField()


class ToolCallRecordSerializer(serializers.ModelSerializer[ToolCall]):
    """One call as it was written down; arguments and result only if the settings keep them."""

    server = serializers.CharField(source="server_name")
    kind = serializers.ChoiceField(choices=ToolCall.Kind.values)
    arguments = serializers.JSONField(allow_null=True)
    result = serializers.JSONField(allow_null=True)

    class Meta:
        model = ToolCall
        fields = (
            "id",
            "started_at",
            "duration_ms",
            "username",
            "agent",
            "server",
            "kind",
            "tool",
            "transport",
            "code",
            "is_error",
            "request_size",
            "result_size",
            "correlation_id",
            "arguments",
            "result",
        )
        read_only_fields = fields
