"""``tools/call/``, ``resources/read/``, ``prompts/get/``, ``complete/``: what reaches a server.

Every call is written down; its correlation id is in the answer, and may be given in the
request. A call that is not over when the request has to be answered ends with 504.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from mcp_client_app import services
from mcp_client_app.api.events import event_response
from mcp_client_app.api.orders import (
    CORRELATION_HEADER,
    REPLAYED_HEADER,
    ToolCallOrder,
    correlation_id,
    with_input,
)
from mcp_client_app.api.serializers.calls import (
    CompletionRequestSerializer,
    CompletionSerializer,
    PromptRequestSerializer,
    PromptResultSerializer,
    ResourceRequestSerializer,
    ResourceResultSerializer,
    ToolCallRequestSerializer,
)
from mcp_client_app.api.streaming import StreamingViewSet, wants_stream
from mcp_client_app.api.viewsets import MCPViewSet
from mcp_client_app.services.permissions import CALL

__all__ = ["OrderViewSet", "RequestViewSet", "ToolCallViewSet"]


class OrderViewSet(StreamingViewSet):
    """Answers calls of tools."""

    def answer(self, order: ToolCallOrder) -> HttpResponseBase:
        """Make the call, unless it was made before, and tell its progress if that is asked for."""
        headers = {CORRELATION_HEADER: order.correlation_id}
        if order.kept is not None:
            status, body = order.kept
            return Response(body, status=status, headers={**headers, REPLAYED_HEADER: "true"})
        if wants_stream(self.request):
            request = self.request._request  # noqa: SLF001 (documented by REST framework)
            response = event_response(request, order)
            response[CORRELATION_HEADER] = order.correlation_id
            return response
        return Response(order.make(self.time_left()), headers=headers)


class ToolCallViewSet(OrderViewSet):
    """Calls of tools."""

    required: ClassVar = {"call": (CALL,)}
    serializers: ClassVar = {"call": ToolCallRequestSerializer}
    streams = frozenset({"call"})

    def call(self, request: Request) -> HttpResponseBase:
        """Call a tool. A failure of the tool itself is a result with ``is_error``.

        With ``Accept: text/event-stream`` progress is told while the call runs.
        """
        return self.answer(ToolCallOrder.place(request, self.body()))


class RequestViewSet(MCPViewSet):
    """The other requests to a server: all of them only read."""

    required: ClassVar = {"read_resource": (CALL,), "get_prompt": (CALL,), "complete": (CALL,)}
    serializers: ClassVar = {
        "read_resource": ResourceRequestSerializer,
        "get_prompt": PromptRequestSerializer,
        "complete": CompletionRequestSerializer,
    }

    def read_resource(self, request: Request) -> Response:
        """Read a resource."""
        return self._answer(ResourceResultSerializer, services.read_resource, with_input(self.body()))

    def get_prompt(self, request: Request) -> Response:
        """Fill in a prompt."""
        return self._answer(PromptResultSerializer, services.get_prompt, with_input(self.body()))

    def complete(self, request: Request) -> Response:
        """Ask for suggestions for an argument of a prompt or of a resource template."""
        return self._answer(CompletionSerializer, services.complete, self.body())

    def _answer(self, form: type[BaseSerializer[Any]], verb: Any, body: dict[str, Any]) -> Response:
        ours = correlation_id(self.request)
        body["timeout"] = services.call_limit(
            self.time_left(), timeout=body.get("timeout"), server=body["server"]
        )
        result = verb(**body, user=self.request.user, correlation_id=ours)
        data = form(result, context={"correlation_id": ours}).data
        return Response(dict(data), headers={CORRELATION_HEADER: ours})
