"""``health/``: numbers for a monitor. It connects nothing and tells no names."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import AllowAny, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app import __version__, services
from mcp_client_app.api.viewsets import MCPViewSet
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.exceptions import MCPClientError

__all__ = ["HealthSerializer", "HealthViewSet"]

_TROUBLE = (ConnectionState.BACKING_OFF, ConnectionState.FAILED, ConnectionState.NEEDS_AUTH)


class HealthSerializer(serializers.Serializer[Any]):
    """How this process fares."""

    status = serializers.ChoiceField(
        choices=["ok", "degraded", "unavailable"],
        help_text="'degraded': an enabled server cannot be used. 'unavailable': none can.",
    )
    version = serializers.CharField()
    enabled = serializers.IntegerField(help_text="Servers that may be used.")
    disabled = serializers.IntegerField(help_text="Servers that may not.")
    states = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many enabled servers are in which state, here."
    )


class HealthViewSet(MCPViewSet):
    """For whoever is signed in, or for all if the settings say so."""

    def get_authenticators(self) -> list[BaseAuthentication]:
        return [] if app_settings.API_PUBLIC_HEALTH else super().get_authenticators()

    def get_permissions(self) -> list[BasePermission]:
        return [AllowAny()] if app_settings.API_PUBLIC_HEALTH else super().get_permissions()

    def show(self, request: Request) -> Response:
        """Say how this process fares; 503 if no server can be used at all."""
        try:
            statuses = services.server_statuses()
        except MCPClientError:
            # The tables cannot be read, or nothing can work in a process of this kind.
            return Response(_report("unavailable", 0, 0, {}), status=503)
        enabled = [status for status in statuses if status.enabled]
        states = Counter(status.state for status in enabled)
        status = "degraded" if any(states[state] for state in _TROUBLE) else "ok"
        counts = {state.value: count for state, count in states.items()}
        return Response(_report(status, len(enabled), len(statuses) - len(enabled), counts))


def _report(status: str, enabled: int, disabled: int, states: dict[str, int]) -> dict[str, Any]:
    return {
        "status": status,
        "version": __version__,
        "enabled": enabled,
        "disabled": disabled,
        "states": states,
    }
