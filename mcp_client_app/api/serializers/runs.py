"""Runs of agents: what is asked of one, how it stands, what has happened in it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentEvent, AgentRun, Approval
from mcp_client_app.models.receipts import MAX_KEY
from mcp_client_app.services.runs import conversation

__all__ = [
    "AgentRunQuerySerializer",
    "AgentRunSerializer",
    "AgentRunSummarySerializer",
    "EventQuerySerializer",
    "RunEventListSerializer",
    "RunEventSerializer",
    "RunInputSerializer",
    "RunQuerySerializer",
    "RunRequestSerializer",
    "StreamableRunRequestSerializer",
]

STATUSES = [status.value for status in RunStatus]
MOST_EVENTS = 1000
SUMMARY: tuple[str, ...] = (
    "id",
    "agent",
    "username",
    "prompt",
    "status",
    "code",
    "detail",
    "text",
    "tool_rounds",
    "usage",
    "seconds_used",
    "event_count",
    "correlation_id",
    "cancel_requested",
    "created_at",
    "started_at",
    "finished_at",
)


class RunStatusField(serializers.ChoiceField):
    """Where a run stands."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=STATUSES, **kwargs)


class RunRequestSerializer(serializers.Serializer[Any]):
    """What an agent shall do."""

    prompt = serializers.CharField(
        max_length=1_000_000, trim_whitespace=False, help_text="What the user says to the agent."
    )
    history = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        allow_null=True,
        help_text="The `messages` of an earlier run, unchanged: the conversation goes on from there.",
    )
    deps = serializers.JSONField(
        required=False, allow_null=True, help_text="Any value that the agent's code may want."
    )
    idempotency_key = serializers.CharField(
        required=False,
        allow_null=True,
        max_length=MAX_KEY,
        help_text="A repeat with the same key gets the same run; also as the header `Idempotency-Key`.",
    )


class StreamableRunRequestSerializer(RunRequestSerializer):
    """What an agent shall do while the client waits."""

    cancel_on_disconnect = serializers.BooleanField(
        default=False,
        help_text="With `Accept: text/event-stream`: cancel the run if the client goes away. Otherwise it "
        "goes on in the background.",
    )


class OpenApprovalSerializer(serializers.ModelSerializer[Approval]):
    """What a run waits for; `approvals/{id}/` tells more to whoever may decide."""

    id = serializers.UUIDField()
    kind = serializers.CharField(help_text="`approval`: of a call; `input`: a server's question.")
    server = serializers.CharField(source="server_name")

    class Meta:
        model = Approval
        fields = ("id", "kind", "call_id", "server", "tool", "created_at", "expires_at")
        read_only_fields = fields


class OpenApprovalsField(serializers.ListField):
    """What a run waits for; the context gives it as ``approvals``."""

    child = OpenApprovalSerializer()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(source="*", read_only=True, **kwargs)

    def to_representation(self, data: Any) -> list[Any]:
        return super().to_representation(list(self.context.get("approvals", ())))


class AgentRunSummarySerializer(serializers.ModelSerializer[AgentRun]):
    """A run as it stands, without its conversation."""

    id = serializers.UUIDField()
    agent = serializers.CharField(source="agent_name", help_text="Its name at the time.")
    status = RunStatusField()
    text = serializers.CharField(help_text="The answer; with another status than 'completed' a part of one.")
    usage = serializers.DictField(help_text="Requests and tokens, as the provider counts them.")
    cancel_requested = serializers.SerializerMethodField(help_text="Somebody wants it to end.")

    class Meta:
        model = AgentRun
        fields = SUMMARY
        read_only_fields = fields

    def get_cancel_requested(self, run: AgentRun) -> bool:
        return run.cancel_requested_at is not None


class MessagesField(serializers.ListField):
    """A conversation as people see it."""

    child = serializers.DictField()

    def to_representation(self, data: Any) -> list[Any]:
        return conversation(data)


class AgentRunSerializer(AgentRunSummarySerializer):
    """A run as it stands. The context gives the open ``approvals``."""

    approvals = OpenApprovalsField(help_text="What it waits for.")
    messages = MessagesField(
        help_text="The conversation, without the agent's instructions; give it as `history` to go on with it."
    )

    class Meta(AgentRunSummarySerializer.Meta):
        fields = (*SUMMARY, "approvals", "messages")
        read_only_fields = fields


class AgentRunQuerySerializer(serializers.Serializer[Any]):
    """Which runs of an agent to list."""

    status = RunStatusField(required=False)


class RunQuerySerializer(AgentRunQuerySerializer):
    """Which runs to list."""

    agent = serializers.CharField(required=False, help_text="Only this agent's.")


class EventQuerySerializer(serializers.Serializer[Any]):
    """From where on to tell what has happened."""

    after = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=2**63 - 1,
        help_text="The number of the last event that you have; the header `Last-Event-ID` wins.",
    )
    limit = serializers.IntegerField(
        required=False,
        default=100,
        min_value=1,
        max_value=MOST_EVENTS,
        help_text="Events in a list at most; a stream has no limit.",
    )


class RunEventSerializer(serializers.ModelSerializer[AgentEvent]):
    """Something that happened in a run."""

    number = serializers.IntegerField(help_text="Within the run, from 1, without gaps.")
    data = serializers.JSONField()  # type: ignore[assignment]  # a field, not the serializer's data

    class Meta:
        model = AgentEvent
        fields = ("number", "kind", "data", "created_at")
        read_only_fields = fields


class RunEventListSerializer(serializers.Serializer[Any]):
    """Events in order. Ask again with `after` set to `last` to get what came later."""

    status = RunStatusField(help_text="Of the run, when the list was begun.")
    last = serializers.IntegerField(help_text="The number of the last event in the list, or `after`.")
    more = serializers.BooleanField(help_text="There are more of them already.")
    results = RunEventSerializer(many=True)


class RunInputSerializer(serializers.Serializer[Any]):
    """Answers to what a server has asked in the course of a run."""

    approval = serializers.UUIDField(
        required=False, allow_null=True, help_text="Which question; needed only if several are open."
    )
    responses = serializers.DictField(
        child=serializers.DictField(),
        help_text="Key of a question to its answer: `action` (`accept`, `decline`, `cancel`) and `content`.",
    )
