"""``connect/``, ``disconnect/`` and the same for one server: connecting, testing, logs.

A request that waits for a server is answered in time: connecting goes on after 202, and the
status says ``connecting`` until it is decided.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app import services
from mcp_client_app.api.errors import described
from mcp_client_app.api.serializers.connecting import (
    ConnectionReportSerializer,
    ConnectionRequestSerializer,
)
from mcp_client_app.api.serializers.states import (
    ServerLogsSerializer,
    ServerStatusSerializer,
    TestReportSerializer,
)
from mcp_client_app.api.viewsets import MCPViewSet
from mcp_client_app.datatypes import ConnectionState, ServerStatus
from mcp_client_app.exceptions import MCPClientError, UnknownServerError
from mcp_client_app.services.permissions import CONNECT, VIEW

__all__ = ["ConnectionViewSet", "ServerConnectionViewSet"]


class ServerConnectionViewSet(MCPViewSet):
    """The connection of one server."""

    required: ClassVar = {
        "connect": (CONNECT,),
        "disconnect": (CONNECT,),
        "refresh": (CONNECT,),
        "test": (CONNECT,),
        "logs": (VIEW,),
    }

    def connect(self, request: Request, name: str) -> Response:
        """Connect the server here, and allow it again everywhere; 202 if it still connects at the end."""
        status = services.connect(name, user=request.user, wait=self.time_left())
        return _answer(status, code=200 if _is_decided(status) else 202)

    def disconnect(self, request: Request, name: str) -> Response:
        """Disconnect the server in all processes, until somebody connects it."""
        return _answer(services.disconnect(name, user=request.user))

    def refresh(self, request: Request, name: str) -> Response:
        """Read the lists of the server anew."""
        return _answer(services.refresh(name, user=request.user, wait=self.time_left()))

    def test(self, request: Request, name: str) -> Response:
        """Try the server out on a connection of its own; what fails is a step of the report."""
        report = services.test_server(name, user=request.user, wait=self.time_left())
        return Response(TestReportSerializer(report).data)

    def logs(self, request: Request, name: str) -> Response:
        """Return what the server said lately, over the protocol and on its standard error."""
        said = {
            "server": services.get_server(name, user=request.user).name,
            "logs": services.server_logs(name, user=request.user),
            "stderr": services.server_stderr(name, user=request.user),
        }
        return Response(ServerLogsSerializer(said).data)


class ConnectionViewSet(MCPViewSet):
    """The connections of several servers at once."""

    required: ClassVar = {"connect": (CONNECT,), "disconnect": (CONNECT,)}
    serializers: ClassVar = {
        "connect": ConnectionRequestSerializer,
        "disconnect": ConnectionRequestSerializer,
    }

    def connect(self, request: Request) -> Response:
        """Connect servers in parallel; 202 if some still connect when the request has to be answered."""
        names = self.body()["names"]
        found = services.connect_all(names, user=request.user, wait=self.time_left()).values()
        statuses = [status for status in found if status.enabled or names is not None]
        errors = {status.name: why for status in statuses if (why := _failure(status)) is not None}
        return _report(statuses, errors)

    def disconnect(self, request: Request) -> Response:
        """Disconnect servers in all processes, until somebody connects them."""
        names = self.body()["names"]
        if names is None:
            names = [status.name for status in services.server_statuses() if status.enabled]
        statuses: list[ServerStatus] = []
        errors: dict[str, Any] = {}
        for name in names:
            try:
                statuses.append(services.disconnect(name, user=request.user))
            except MCPClientError as error:
                errors[name] = described(error)
        return _report(statuses, errors)


def _is_decided(status: ServerStatus) -> bool:
    return status.state is not ConnectionState.CONNECTING


def _failure(status: ServerStatus) -> dict[str, Any] | None:
    if not status.enabled:
        return described(UnknownServerError(f"The server {status.name!r} is disabled."))
    return {"code": status.code, "detail": status.reason} if status.code else None


def _answer(status: ServerStatus, code: int = 200) -> Response:
    return Response(ServerStatusSerializer(status).data, status=code)


def _report(statuses: Iterable[ServerStatus], errors: dict[str, Any]) -> Response:
    statuses = list(statuses)
    report = {"results": statuses, "errors": errors}
    decided = all(_is_decided(status) for status in statuses)
    return Response(ConnectionReportSerializer(report).data, status=200 if decided else 202)
