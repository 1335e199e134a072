"""Connecting several servers at once, by AgentX's bodies."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from mcp_client_app.api.serializers.errors import ServerErrorSerializer
from mcp_client_app.api.serializers.states import ServerStatusSerializer

__all__ = ["ConnectionReportSerializer", "ConnectionRequestSerializer"]


class ConnectionRequestSerializer(serializers.Serializer[Any]):
    """Which servers: exactly one of the three."""

    server = serializers.CharField(required=False, max_length=40)
    servers = serializers.ListField(
        child=serializers.CharField(max_length=40), required=False, max_length=1000
    )
    all = serializers.BooleanField(required=False, help_text="True: every enabled server.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Reduce it to ``names``; None stands for all."""
        chosen: list[str] = [name for name in ("server", "servers") if name in attrs]
        if attrs.get("all"):
            chosen.append("all")
        if len(chosen) != 1:
            raise serializers.ValidationError("Give one of 'server', 'servers' and 'all'.")
        names = {"server": [attrs.get("server")], "servers": attrs.get("servers"), "all": None}[chosen[0]]
        return {"names": names}


class ConnectionReportSerializer(serializers.Serializer[Any]):
    """How the servers stand now, and why some do not as was wished."""

    results = ServerStatusSerializer(many=True)
    errors = serializers.DictField(child=ServerErrorSerializer())  # type: ignore[assignment]  # a field
