"""``import/`` and ``export/``: servers from and to an ``mcp.json``."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app import services
from mcp_client_app.api.serializers.queries import ExportQuerySerializer
from mcp_client_app.api.serializers.transfer import ImportReportSerializer, ImportRequestSerializer
from mcp_client_app.api.viewsets import MCPViewSet
from mcp_client_app.services.permissions import ADD, VIEW

__all__ = ["TransferViewSet"]


class TransferViewSet(MCPViewSet):
    """Servers in and out. An import needs the permissions to add and to change servers."""

    required: ClassVar = {"import_servers": (ADD,), "export_servers": (VIEW,)}
    serializers: ClassVar = {"import_servers": ImportRequestSerializer}

    def import_servers(self, request: Request) -> Response:
        """Import servers from any dialect; update by name, delete nothing."""
        body = self.body()
        report = services.import_servers(body.pop("config"), user=request.user, **body)
        return Response(ImportReportSerializer(report).data)

    def export_servers(self, request: Request) -> Response:
        """Return servers as an ``mcp.json``; literal secrets are null."""
        query = self.query(ExportQuerySerializer)
        names = [name.strip() for name in query["name"].split(",")] if "name" in query else None
        return Response(services.export_servers(names, user=request.user))
