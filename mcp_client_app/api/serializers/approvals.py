"""Calls that wait for a person, and questions of servers: what is shown, what is decided."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mcp_client_app.models import Approval
from mcp_client_app.services.approval_decisions import MAX_REASON

__all__ = [
    "AnswerSerializer",
    "ApprovalQuerySerializer",
    "ApprovalSerializer",
    "ApproveSerializer",
    "DenySerializer",
]


class ApprovalQuerySerializer(serializers.Serializer[Any]):
    """Which approvals to list."""

    status = serializers.ChoiceField(choices=Approval.Status.values, required=False)
    kind = serializers.ChoiceField(choices=Approval.Kind.values, required=False)
    agent = serializers.CharField(required=False)
    server = serializers.CharField(required=False)
    run = serializers.UUIDField(required=False, help_text="Only those of this run.")


class ApprovalSerializer(serializers.ModelSerializer[Approval]):
    """A call that waits for a person, or a question of a server.

    Shown to those who may decide alone; neither fixed arguments, nor answers, nor a server's state.
    """

    kind = serializers.ChoiceField(
        choices=Approval.Kind.values,
        help_text="`approval`: approve or deny the call; `input`: answer what the server asks.",
    )
    status = serializers.ChoiceField(choices=Approval.Status.values, source="standing")
    agent = serializers.CharField(source="agent_name", help_text="As it was at the time.")
    run = serializers.UUIDField(source="run_id", allow_null=True, help_text="Null for a single call.")
    server = serializers.CharField(source="server_name")
    arguments = serializers.DictField(help_text="As the model gave them, without fixed ones.")
    schema = serializers.DictField(
        allow_null=True,
        help_text="What changed arguments have to fit; null if there is none: nothing may be changed.",
    )
    input_requests = serializers.DictField(
        source="requests",
        child=serializers.DictField(),
        help_text="Key to what the server asks for, in the form of the protocol.",
    )
    edited_arguments = serializers.DictField(
        allow_null=True, help_text="What is sent in their place; null = as the model gave them."
    )
    decided_by = serializers.CharField(source="decided_by_name", help_text="User name.")
    expires_at = serializers.DateTimeField(
        help_text="Until then it can be decided; once it is approved or answered, until then it can be used."
    )

    class Meta:
        model = Approval
        fields = (
            "id",
            "kind",
            "status",
            "agent",
            "run",
            "call_id",
            "username",
            "server",
            "tool",
            "arguments",
            "schema",
            "input_requests",
            "edited_arguments",
            "reason",
            "decided_by",
            "decided_at",
            "used_at",
            "created_at",
            "expires_at",
        )
        read_only_fields = fields


class DenySerializer(serializers.Serializer[Any]):
    """Why a call is denied."""

    reason = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=MAX_REASON,
        help_text="The model reads it if the call is denied.",
    )


class ApproveSerializer(DenySerializer):
    """What a call is approved with."""

    arguments = serializers.DictField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Others than the given ones, all of them; null = as they are.",
    )


class AnswerSerializer(serializers.Serializer[Any]):
    """Answers to all that a server asks."""

    responses = serializers.DictField(
        child=serializers.DictField(),
        help_text="Key of a question to its answer: `action` (`accept`, `decline`, `cancel`) and `content`.",
    )
