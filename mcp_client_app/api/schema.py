"""The OpenAPI document, by drf-spectacular; imported only where that is installed.

What the code says itself (bodies, their fields, docstrings) is taken from there. Said here:
names of operations, parameters, errors, examples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.urls import include, path
from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.renderers import OpenApiJsonRenderer2, OpenApiYamlRenderer, OpenApiYamlRenderer2
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
)
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
from mcp_client_app.api.orders import CORRELATION_HEADER, KEY_HEADER
from mcp_client_app.api.serializers import calls, connecting, queries, servers, states, transfer
from mcp_client_app.api.serializers.errors import ErrorSerializer
from mcp_client_app.api.servers import ServerViewSet
from mcp_client_app.api.transfer import TransferViewSet
from mcp_client_app.api.viewsets import ConfiguredEndpoint, MCPViewSet

__all__ = ["schema_view"]

ERRORS: Final[Mapping[int, str]] = {
    400: "The request is not valid.",
    401: "Nobody is signed in.",
    403: "The permission is missing, or a filter forbids the tool.",
    404: "There is no such server, tool, resource or prompt.",
    405: "This method is not for this address.",
    406: "The answer has no such form.",
    409: "It cannot work as things stand.",
    412: "Somebody else has changed the server since.",
    413: "The body is too large.",
    415: "The body has no such form.",
    422: "The idempotency key belongs to another request.",
    429: "Too many requests, here or at the server.",
    502: "The server answered with an error, or with nonsense.",
    503: "The server cannot be reached.",
    504: "There was no answer in time.",
}
ALWAYS: Final = (401, 403, 406, 429)
WITH_BODY: Final = (400, 413, 415)
UPSTREAM: Final = (404, 409, 502, 503, 504)

SERVER_NAME: Final = OpenApiParameter(
    "name", str, OpenApiParameter.PATH, description="The server's name; case makes no difference."
)
IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The `ETag` that you have seen; 412 if the server was changed since.",
)
KEY: Final = OpenApiParameter(
    KEY_HEADER,
    {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description="A repeat with the same key does not run the tool again.",
)
CORRELATION: Final = OpenApiParameter(
    CORRELATION_HEADER,
    {"type": "string", "pattern": "^[A-Za-z0-9_.:-]{1,64}$"},
    OpenApiParameter.HEADER,
    description="Goes into the audit row; made up if it is missing.",
)


class MCPAutoSchema(AutoSchema):
    """JSON only, and the failures of each operation in the one form."""

    def map_parsers(self) -> list[str]:
        return ["application/json"]

    def map_renderers(self, attribute: str) -> list[str]:
        return ["application/json" if attribute == "media_type" else "json"]

    def get_tags(self) -> list[str]:
        return ["mcp"]

    def get_filter_backends(self) -> list[Any]:
        return []

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        view: Any = self.view
        named = getattr(getattr(view, view.action), "mcp_errors", ())
        with_body = WITH_BODY if self.method in ("POST", "PUT", "PATCH") else ()
        for code in sorted({*ALWAYS, *with_body, *named}):
            bodies[str(code)] = self._failure(str(code), ERRORS[code], direction)
        bodies["default"] = self._failure("default", "Any other failure.", direction)
        return bodies

    def _failure(self, code: str, description: str, direction: Any) -> dict[str, Any]:
        failure = OpenApiResponse(ErrorSerializer, description=description)
        build: Any = self._get_response_for_code  # without types of its own
        body: dict[str, Any] = build(failure, code, direction=direction)
        return body


class SecretChangesExtension(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # its registry
    """``env`` and ``headers`` as they are given."""

    target_class = "mcp_client_app.api.serializers.secrets.SecretChangesField"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        return {
            "type": "object",
            "description": "A string sets a value, null removes the key, an object keeps what is stored.",
            "additionalProperties": {"oneOf": [{"type": "string", "nullable": True}, {"type": "object"}]},
        }


class ConfigExtension(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # as above
    """An ``mcp.json``, decoded or not."""

    target_class = "mcp_client_app.api.serializers.transfer.ConfigField"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        return {
            "description": "The content of an `mcp.json`: an object, or its text.",
            "oneOf": [{"type": "object", "additionalProperties": True}, {"type": "string"}],
        }


def _operation(
    viewset: type[MCPViewSet],
    action: str,
    operation_id: str,
    responses: Any,
    *,
    errors: Sequence[int] = (),
    parameters: Sequence[Any] = (),
    shown: Sequence[OpenApiExample] = (),
) -> None:
    """Describe one action. Its summary and description are its docstring."""
    method = vars(viewset)[action]
    # Where drf-spectacular looks for the base of what it makes: a project's default may be another one.
    method.kwargs = {"schema": MCPAutoSchema}
    method.mcp_errors = tuple(errors)
    extend_schema(
        operation_id=f"mcp_{operation_id}",
        parameters=list(parameters),
        request=viewset.serializers.get(action),
        responses=responses,
        examples=list(shown),
    )(method)


def _describe() -> None:
    MCPViewSet.schema = MCPAutoSchema()
    config, status = servers.ServerConfigSerializer, states.ServerStatusSerializer
    _operation(
        ServerViewSet,
        "list",
        "servers_list",
        config(many=True),
        errors=(400, 404),
        parameters=[queries.ServerQuerySerializer],
    )
    _operation(
        ServerViewSet, "create", "servers_create", {201: config}, errors=(409,), shown=examples.NEW_SERVER
    )
    _operation(ServerViewSet, "retrieve", "servers_get", config, errors=(404,), parameters=[SERVER_NAME])
    changing: dict[str, Any] = {"errors": (404, 409, 412), "parameters": [SERVER_NAME, IF_MATCH]}
    _operation(ServerViewSet, "update", "servers_replace", config, **changing)
    _operation(ServerViewSet, "partial_update", "servers_update", config, shown=examples.CHANGES, **changing)
    _operation(ServerViewSet, "destroy", "servers_delete", {204: None}, **changing)

    one: dict[str, Any] = {"errors": UPSTREAM, "parameters": [SERVER_NAME]}
    _operation(ServerConnectionViewSet, "connect", "server_connect", {200: status, 202: status}, **one)
    _operation(ServerConnectionViewSet, "disconnect", "server_disconnect", status, **one)
    _operation(ServerConnectionViewSet, "refresh", "server_refresh", status, **one)
    _operation(ServerConnectionViewSet, "test", "server_test", states.TestReportSerializer, **one)
    _operation(ServerConnectionViewSet, "logs", "server_logs", states.ServerLogsSerializer, **one)

    report = connecting.ConnectionReportSerializer
    for action in ("connect", "disconnect"):
        _operation(
            ConnectionViewSet,
            action,
            action,
            {200: report, 202: report},
            errors=(404, 409),
            shown=examples.CONNECT,
        )

    for kind, offer in KINDS.items():
        _operation(
            OfferViewSet,
            kind,
            f"{kind}_list",
            offer.serializer(many=True),
            errors=(400, 404, 503),
            parameters=[queries.OfferQuerySerializer],
        )
        _operation(
            ServerOfferViewSet,
            kind,
            f"server_{kind}_list",
            offer.serializer(many=True),
            errors=(400, 404, 503),
            parameters=[SERVER_NAME, queries.ServerOfferQuerySerializer],
        )

    _operation(
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
        _operation(RequestViewSet, action, name, result, errors=UPSTREAM, parameters=[CORRELATION])

    _operation(
        HistoryViewSet,
        "list",
        "calls_list",
        calls.ToolCallRecordSerializer(many=True),
        errors=(400, 404),
        parameters=[queries.CallQuerySerializer],
    )
    _operation(
        TransferViewSet,
        "import_servers",
        "import",
        transfer.ImportReportSerializer,
        errors=(409,),
        shown=examples.IMPORT,
    )
    _operation(
        TransferViewSet,
        "export_servers",
        "export",
        transfer.ExportSerializer,
        errors=(400, 404),
        parameters=[queries.ExportQuerySerializer],
    )
    health = {200: HealthSerializer, 503: HealthSerializer}
    _operation(HealthViewSet, "show", "health", health)


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
