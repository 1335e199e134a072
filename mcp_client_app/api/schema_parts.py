"""What the parts of the OpenAPI document are made with; imported only where drf-spectacular is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema

from mcp_client_app.api.orders import CORRELATION_HEADER, KEY_HEADER
from mcp_client_app.api.serializers.errors import ErrorSerializer
from mcp_client_app.api.viewsets import MCPViewSet

__all__ = [
    "AGENT_NAME",
    "CORRELATION",
    "IF_MATCH",
    "KEY",
    "SERVER_NAME",
    "UPSTREAM",
    "MCPAutoSchema",
    "operation",
]

ERRORS: Final[Mapping[int, str]] = {
    400: "The request is not valid.",
    401: "Nobody is signed in.",
    403: "The permission is missing, or a filter forbids the tool.",
    404: "There is no such thing, or not for you.",
    405: "This method is not for this address.",
    406: "The answer has no such form.",
    409: "It cannot work as things stand.",
    412: "Somebody else has changed it since.",
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
AGENT_NAME: Final = OpenApiParameter(
    "name", str, OpenApiParameter.PATH, description="The agent's name; case makes no difference."
)
IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The `ETag` that you have seen; 412 if it was changed since.",
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


def operation(
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
