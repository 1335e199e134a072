"""``agents/{name}/tools/`` and ``agents/{name}/call/``: for whoever asks a model himself.

A view that drives a model of its own gives it the agent's tools, and hands back what the model
asks for: names, filters, fixed arguments and approvals are the agent's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from django.http.response import HttpResponseBase
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app import services
from mcp_client_app.api.calls import OrderViewSet
from mcp_client_app.api.orders import ToolCallOrder
from mcp_client_app.api.serializers.agent_calls import (
    AgentCallQuerySerializer,
    AgentCallRequestSerializer,
    AgentToolListSerializer,
    AgentToolQuerySerializer,
)
from mcp_client_app.services.permissions import RUN_AGENT
from mcp_client_app.services.toolset import Toolset
from mcp_client_app.services.toolset_results import ToolsetResult
from mcp_client_app.toolsets import ProviderTools, ToolSelection

__all__ = ["AgentCallOrder", "AgentCallViewSet"]

TOOLS_OF: Final[Mapping[str, Callable[[ToolSelection], ProviderTools]]] = {
    "mcp": ToolSelection.for_mcp,
    "openai": ToolSelection.for_openai,
    "anthropic": ToolSelection.for_anthropic,
}


@dataclass
class AgentCallOrder(ToolCallOrder):
    """A call of an agent's tool, under the agent's rules."""

    agent: str = ""
    form: str = "mcp"
    toolset: Toolset = field(init=False, repr=False)

    def _send(self, **call: Any) -> ToolsetResult:
        verb = self.toolset.answer if call.pop("for_model", False) else self.toolset.call_tool
        return verb(**self._own(call))

    async def _asend(self, **call: Any) -> ToolsetResult:
        verb = self.toolset.aanswer if call.pop("for_model", False) else self.toolset.acall_tool
        return await verb(**self._own(call))

    def _own(self, call: dict[str, Any]) -> dict[str, Any]:
        """Return what a toolset takes: for whom, it knows."""
        return {name: value for name, value in call.items() if name != "user"}

    def _body(self, result: ToolsetResult) -> dict[str, Any]:
        sent = result.result
        return {
            "correlation_id": self.correlation_id,
            "agent": self.agent,
            "name": result.name,
            "server": sent.server if sent is not None else getattr(result.error, "server", None),
            "tool": sent.tool if sent is not None else None,
            "call_id": self.call.get("call_id", ""),
            "is_error": result.is_error,
            "code": None if result.error is None else result.error.code,
            "text": result.text,
            "content": self._content(result),
            "structured": sent.structured if sent is not None else None,
            "warnings": list(result.warnings),
            "truncated": result.rendered.truncated,
        }

    def _content(self, result: ToolsetResult) -> Any:
        if self.form == "openai":
            return result.for_openai()
        if self.form == "anthropic":
            return result.for_anthropic()
        if result.result is None:
            return [{"type": "text", "text": result.text}]
        return list(result.result.content)


class FormNegotiation(DefaultContentNegotiation):
    """Leaves ``?format=openai`` to the endpoint; REST framework would look for a renderer of that name."""

    def filter_renderers(self, renderers: Any, format: str) -> Any:  # noqa: A002 (as in the base)
        return [each for each in renderers if each.format == format] or renderers


class AgentCallViewSet(OrderViewSet):
    """Tools of one agent."""

    required: ClassVar = {"tools": (RUN_AGENT,), "call": (RUN_AGENT,)}
    serializers: ClassVar = {"call": AgentCallRequestSerializer}
    streams = frozenset({"call"})
    content_negotiation_class = FormNegotiation

    def tools(self, request: Request, name: str) -> Response:
        """List the agent's tools as a provider wants them; what it would refuse is left out, and said so."""
        query = self.query(AgentToolQuerySerializer)
        form = query["format"]
        left = self.time_left()
        wait = query["wait"] if left is None else min(query["wait"], left)
        toolset = services.get_toolset(name, request.user)
        selection = toolset.selection(wait=wait)
        shown = TOOLS_OF[form](selection)
        listed = {
            "agent": toolset.name,
            "format": form,
            "tools": shown.tools,
            "warnings": [*selection.warnings, *shown.warnings],
            "unavailable": [
                {"server": server, "detail": reason} for server, reason in selection.reasons.items()
            ],
        }
        return Response(AgentToolListSerializer(listed).data)

    def call(self, request: Request, name: str) -> HttpResponseBase:
        """Call one of the agent's tools, as a model asks for it, under the agent's rules.

        Answers 409 `approval_required` if a person has to approve the call: send it again, with the
        `approval`, once that is done. With `Accept: text/event-stream` progress is told while the call runs.
        """
        form = self.query(AgentCallQuerySerializer)["format"]
        toolset = services.get_toolset(name, request.user)
        order = AgentCallOrder.place(request, self.body(), agent=toolset.name, form=form)
        order.toolset = toolset
        return self.answer(order)
