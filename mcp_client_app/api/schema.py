"""The OpenAPI document, by drf-spectacular; imported only where that is installed.

What the code says itself (bodies, their fields, docstrings) is taken from there. Said here:
names of operations, parameters, errors, examples. Agents are described in ``schema_agents``.
"""

from __future__ import annotations

from typing import Any

from django.urls import include, path
from drf_spectacular.renderers import OpenApiJsonRenderer2, OpenApiYamlRenderer, OpenApiYamlRenderer2
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from mcp_client_app.api import schema_examples as examples
from mcp_client_app.api.calls import RequestViewSet, ToolCallViewSet
from mcp_client_app.api.connections import ConnectionViewSet, ServerConnectionViewSet
from mcp_client_app.api.health import HealthSerializer, HealthViewSet
from mcp_client_app.api.history import HistoryViewSet
from mcp_client_app.api.offers import KINDS, OfferViewSet, ServerOfferViewSet
from mcp_client_app.api.schema_agents import describe_agents
from mcp_client_app.api.schema_approvals import describe_approvals
from mcp_client_app.api.schema_parts import (
    CORRELATION,
    IF_MATCH,
    KEY,
    SERVER_NAME,
    UPSTREAM,
    MCPAutoSchema,
    operation,
)
from mcp_client_app.api.schema_runs import describe_runs
from mcp_client_app.api.serializers import calls, connecting, queries, servers, states, transfer
from mcp_client_app.api.servers import ServerViewSet
from mcp_client_app.api.transfer import TransferViewSet
from mcp_client_app.api.viewsets import ConfiguredEndpoint, MCPViewSet

__all__ = ["schema_view"]


def _describe() -> None:
    MCPViewSet.schema = MCPAutoSchema()
    config, status = servers.ServerConfigSerializer, states.ServerStatusSerializer
    operation(
        ServerViewSet,
        "list",
        "servers_list",
        config(many=True),
        errors=(400, 404),
        parameters=[queries.ServerQuerySerializer],
    )
    operation(
        ServerViewSet, "create", "servers_create", {201: config}, errors=(409,), shown=examples.NEW_SERVER
    )
    operation(ServerViewSet, "retrieve", "servers_get", config, errors=(404,), parameters=[SERVER_NAME])
    changing: dict[str, Any] = {"errors": (404, 409, 412), "parameters": [SERVER_NAME, IF_MATCH]}
    operation(ServerViewSet, "update", "servers_replace", config, **changing)
    operation(ServerViewSet, "partial_update", "servers_update", config, shown=examples.CHANGES, **changing)
    operation(ServerViewSet, "destroy", "servers_delete", {204: None}, **changing)

    one: dict[str, Any] = {"errors": UPSTREAM, "parameters": [SERVER_NAME]}
    operation(ServerConnectionViewSet, "connect", "server_connect", {200: status, 202: status}, **one)
    operation(ServerConnectionViewSet, "disconnect", "server_disconnect", status, **one)
    operation(ServerConnectionViewSet, "refresh", "server_refresh", status, **one)
    operation(ServerConnectionViewSet, "test", "server_test", states.TestReportSerializer, **one)
    operation(ServerConnectionViewSet, "logs", "server_logs", states.ServerLogsSerializer, **one)

    report = connecting.ConnectionReportSerializer
    for action in ("connect", "disconnect"):
        operation(
            ConnectionViewSet,
            action,
            action,
            {200: report, 202: report},
            errors=(404, 409),
            shown=examples.CONNECT,
        )

    for kind, offer in KINDS.items():
        operation(
            OfferViewSet,
            kind,
            f"{kind}_list",
            offer.serializer(many=True),
            errors=(400, 404, 503),
            parameters=[queries.OfferQuerySerializer],
        )
        operation(
            ServerOfferViewSet,
            kind,
            f"server_{kind}_list",
            offer.serializer(many=True),
            errors=(400, 404, 503),
            parameters=[SERVER_NAME, queries.ServerOfferQuerySerializer],
        )

    operation(
        ToolCallViewSet,
        "call",
        "tools_call",
        {
            (200, "application/json"): calls.ToolResultSerializer,
            (200, "text/event-stream"): OpenApiTypes.STR,
        },
        errors=(*UPSTREAM, 422),
        parameters=[KEY, CORRELATION],
        shown=examples.TOOL_CALL,
    )
    requests: dict[str, tuple[str, type[BaseSerializer[Any]]]] = {
        "read_resource": ("resources_read", calls.ResourceResultSerializer),
        "get_prompt": ("prompts_get", calls.PromptResultSerializer),
        "complete": ("complete", calls.CompletionSerializer),
    }
    for action, (name, result) in requests.items():
        operation(RequestViewSet, action, name, result, errors=UPSTREAM, parameters=[CORRELATION])

    operation(
        HistoryViewSet,
        "list",
        "calls_list",
        calls.ToolCallRecordSerializer(many=True),
        errors=(400, 404),
        parameters=[queries.CallQuerySerializer],
    )
    operation(
        TransferViewSet,
        "import_servers",
        "import",
        transfer.ImportReportSerializer,
        errors=(409,),
        shown=examples.IMPORT,
    )
    operation(
        TransferViewSet,
        "export_servers",
        "export",
        transfer.ExportSerializer,
        errors=(400, 404),
        parameters=[queries.ExportQuerySerializer],
    )
    health = {200: HealthSerializer, 503: HealthSerializer}
    operation(HealthViewSet, "show", "health", health)
    describe_agents()
    describe_runs()
    describe_approvals()


class SchemaView(ConfiguredEndpoint, SpectacularAPIView):
    """The OpenAPI document of this API alone, with the addresses where it is mounted."""

    renderer_classes = [  # noqa: RUF012 (as in the base)
        OpenApiJsonRenderer2,
        OpenApiYamlRenderer,
        OpenApiYamlRenderer2,
    ]
    schema = None

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return the document."""
        mount = request.path.rstrip("/").removesuffix("schema").lstrip("/")
        self.patterns = [path(mount, include("mcp_client_app.api.urls"))]
        answer: Any = super().get  # without types of its own
        response: Response = answer(request, *args, **kwargs)
        return response


_describe()
schema_view = SchemaView.as_view()
