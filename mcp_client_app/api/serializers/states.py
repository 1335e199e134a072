"""How servers stand: in this process, and in the other ones of the site."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mcp_client_app.datatypes import ConnectionState, ServerStatus, Transport
from mcp_client_app.models import ServerState

__all__ = [
    "ServerLogsSerializer",
    "ServerStatusSerializer",
    "TestReportSerializer",
    "WorkerStateSerializer",
]

STATES = [state.value for state in ConnectionState]
TRANSPORTS = [transport.value for transport in Transport]


class ServerStatusSerializer(serializers.Serializer[ServerStatus]):
    """What this process knows about one server."""

    name = serializers.CharField()
    transport = serializers.ChoiceField(choices=TRANSPORTS)
    target = serializers.CharField(help_text="The command, or scheme and host.")
    enabled = serializers.BooleanField(help_text="What the operator wants.")
    state = serializers.ChoiceField(choices=STATES, help_text="What was observed.")
    reason = serializers.CharField(help_text="Why it is in this state.")
    code = serializers.CharField(help_text="The code of the error behind the state, or empty.")
    since = serializers.DateTimeField(allow_null=True)
    retry_at = serializers.DateTimeField(allow_null=True, help_text="When the next use tries again.")
    failures = serializers.IntegerField(help_text="Failed attempts in a row.")
    revision = serializers.IntegerField(help_text="The revision that is connected.")
    protocol_version = serializers.CharField(allow_null=True)
    server_name = serializers.CharField(allow_null=True)
    server_version = serializers.CharField(allow_null=True)
    instructions = serializers.CharField(allow_null=True)
    capabilities = serializers.DictField()
    link = serializers.CharField()
    tools = serializers.IntegerField()
    resources = serializers.IntegerField()
    resource_templates = serializers.IntegerField()
    prompts = serializers.IntegerField()
    warnings = serializers.ListField(child=serializers.CharField())
    pid = serializers.IntegerField(allow_null=True)
    exit_code = serializers.IntegerField(allow_null=True)
    stderr_tail = serializers.ListField(child=serializers.CharField())
    noise_count = serializers.IntegerField()
    noise_last = serializers.CharField()
    dropped_events = serializers.IntegerField()
    calls = serializers.IntegerField()
    calls_in_flight = serializers.IntegerField()
    connects = serializers.IntegerField()


class WorkerStateSerializer(serializers.Serializer[ServerState]):
    """What one live process of the site has written down about one connection."""

    host = serializers.CharField(source="worker.host")
    pid = serializers.IntegerField(source="worker.pid")
    seen_at = serializers.DateTimeField(source="worker.seen_at")
    principal = serializers.CharField()
    state = serializers.ChoiceField(choices=STATES)
    reason = serializers.CharField()
    code = serializers.CharField()
    since = serializers.DateTimeField()
    retry_at = serializers.DateTimeField(allow_null=True)
    failures = serializers.IntegerField()
    revision = serializers.IntegerField()
    protocol_version = serializers.CharField()
    tools = serializers.IntegerField()
    resources = serializers.IntegerField()
    resource_templates = serializers.IntegerField()
    prompts = serializers.IntegerField()


class TestStepSerializer(serializers.Serializer[Any]):
    """One step of a test."""

    __test__ = False
    name = serializers.CharField(help_text="'connect', 'list', 'ping' or 'close'.")
    ok = serializers.BooleanField()
    seconds = serializers.FloatField()
    detail = serializers.CharField()


class TestReportSerializer(serializers.Serializer[Any]):
    """What a test of a server found; the steps end with the first that fails."""

    __test__ = False
    server = serializers.CharField()
    ok = serializers.BooleanField()
    steps = TestStepSerializer(many=True)
    status = ServerStatusSerializer(allow_null=True)


class LogMessageSerializer(serializers.Serializer[Any]):
    """One message that a server sent to its log."""

    level = serializers.CharField()
    logger = serializers.CharField(allow_null=True)
    data = serializers.JSONField()  # type: ignore[assignment]  # a field, not the serializer's data
    received_at = serializers.DateTimeField()


class ServerLogsSerializer(serializers.Serializer[Any]):
    """What a server said lately, in this process."""

    server = serializers.CharField()
    logs = LogMessageSerializer(many=True, help_text="Over the protocol.")
    stderr = serializers.ListField(child=serializers.CharField(), help_text="On its standard error.")
