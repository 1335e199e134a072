"""Parameters in URLs."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mcp_client_app.datatypes import Transport
from mcp_client_app.models import ToolCall

__all__ = [
    "MOST_PATIENT",
    "AgentQuerySerializer",
    "CallQuerySerializer",
    "ExportQuerySerializer",
    "OfferQuerySerializer",
    "ServerOfferQuerySerializer",
    "ServerQuerySerializer",
]

MOST_PATIENT = 10


class ServerQuerySerializer(serializers.Serializer[Any]):
    """Which servers to list."""

    search = serializers.CharField(
        required=False, allow_blank=True, help_text="Part of name, label or description."
    )
    transport = serializers.ChoiceField(choices=[transport.value for transport in Transport], required=False)
    enabled = serializers.BooleanField(required=False, allow_null=True, default=None)


class AgentQuerySerializer(serializers.Serializer[Any]):
    """Which agents to list."""

    search = serializers.CharField(
        required=False, allow_blank=True, help_text="Part of name, label or description."
    )
    enabled = serializers.BooleanField(required=False, allow_null=True, default=None)
    server = serializers.CharField(required=False, help_text="Only agents that name this server.")


class ServerOfferQuerySerializer(serializers.Serializer[Any]):
    """Which offers of a server to list, and how long to wait for it."""

    search = serializers.CharField(
        required=False, allow_blank=True, default="", help_text="Part of name, title or description."
    )
    wait = serializers.FloatField(
        required=False,
        default=0,
        min_value=0,
        max_value=MOST_PATIENT,
        help_text="Seconds to wait for servers that have to be connected first; 0 connects nothing.",
    )


class OfferQuerySerializer(ServerOfferQuerySerializer):
    """Which offers to list, and how long to wait for servers."""

    server = serializers.CharField(required=False, help_text="Only this server's.")


class CallQuerySerializer(serializers.Serializer[Any]):
    """Which calls to list."""

    server = serializers.CharField(required=False)
    tool = serializers.CharField(required=False)
    kind = serializers.ChoiceField(choices=ToolCall.Kind.values, required=False)
    code = serializers.CharField(required=False, help_text="'ok', 'tool_failed', or the code of an error.")
    username = serializers.CharField(required=False)
    agent = serializers.CharField(required=False)
    correlation_id = serializers.CharField(required=False)
    since = serializers.DateTimeField(required=False, help_text="Only calls that started then or later.")


class ExportQuerySerializer(serializers.Serializer[Any]):
    """Which servers to export."""

    name = serializers.CharField(
        required=False, help_text="Names, separated by commas; without it, all stored ones."
    )
