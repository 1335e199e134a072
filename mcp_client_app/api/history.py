"""``calls/``: what was called, by whom, and what came of it."""

from __future__ import annotations

from typing import ClassVar, Final

from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app.api.serializers.calls import ToolCallRecordSerializer
from mcp_client_app.api.serializers.queries import CallQuerySerializer
from mcp_client_app.api.viewsets import MCPViewSet
from mcp_client_app.models import ToolCall
from mcp_client_app.services.permissions import require

__all__ = ["HistoryViewSet"]

VIEW_CALLS: Final = "mcp_client_app.view_toolcall"
LOOKUPS: Final = {"server": "server_name__iexact", "since": "started_at__gte"}


class HistoryViewSet(MCPViewSet):
    """The audit rows, newest first."""

    required: ClassVar = {"list": (VIEW_CALLS,)}

    def list(self, request: Request) -> Response:
        """List the calls that were written down, newest first."""
        # There is no service in between that would ask.
        require(request.user, VIEW_CALLS)
        query = self.query(CallQuerySerializer)
        rows = ToolCall.objects.filter(**{LOOKUPS.get(name, name): value for name, value in query.items()})
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(ToolCallRecordSerializer(page or [], many=True).data)
