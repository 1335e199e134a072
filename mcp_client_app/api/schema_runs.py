"""The part of the OpenAPI document that is about agents at work; imported only where drf-spectacular is."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from mcp_client_app.api.agent_calls import AgentCallViewSet
from mcp_client_app.api.agent_runs import AgentRunViewSet
from mcp_client_app.api.runs import LAST_EVENT_HEADER, RunViewSet
from mcp_client_app.api.schema_parts import AGENT_NAME, CORRELATION, KEY, UPSTREAM, operation
from mcp_client_app.api.serializers import agent_calls, runs
from mcp_client_app.datatypes import RunStatus

__all__ = ["describe_runs"]

RUN_ID: Final = OpenApiParameter("id", str, OpenApiParameter.PATH, description="The run's id.")
LAST_EVENT: Final = OpenApiParameter(
    LAST_EVENT_HEADER,
    {"type": "string", "pattern": "^[0-9]{1,18}$"},
    OpenApiParameter.HEADER,
    description="The number of the last event that you have; what browsers send when they connect again.",
)

AGENT_CALL: Final = [
    OpenApiExample(
        "As a model asks for it",
        value={
            "name": "weather__forecast",
            "arguments": {"city": "Lisbon"},
            "call_id": "call_1",
            "for_model": True,
        },
        request_only=True,
    ),
    OpenApiExample(
        "Once more, approved",
        value={
            "name": "shop__order",
            "arguments": '{"article": "tea"}',
            "approval": "0c1f7f0e-9f2d-4f0e-8a53-1f4f3c6b2a11",
        },
        request_only=True,
    ),
]
RUN: Final = [
    OpenApiExample(
        "A question", value={"prompt": "Shall I take an umbrella in Lisbon tomorrow?"}, request_only=True
    )
]
INPUT: Final = [
    OpenApiExample(
        "A form filled in",
        value={"responses": {"size": {"action": "accept", "content": {"size": "L"}}}},
        request_only=True,
    )
]


class RunStatusExtension(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # its registry
    """Where a run stands: one schema, for all that tell it."""

    target_class = "mcp_client_app.api.serializers.runs.RunStatusField"

    def get_name(self) -> str:
        return "RunStatus"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        return {"type": "string", "enum": [status.value for status in RunStatus]}


def describe_runs() -> None:
    """Describe the tools, calls and runs of agents."""
    named: dict[str, Any] = {"parameters": [AGENT_NAME]}
    operation(
        AgentCallViewSet,
        "tools",
        "agent_tools",
        agent_calls.AgentToolListSerializer,
        errors=(400, 404, 409),
        parameters=[AGENT_NAME, agent_calls.AgentToolQuerySerializer],
    )
    operation(
        AgentCallViewSet,
        "call",
        "agent_call",
        _or_events({200: agent_calls.AgentToolResultSerializer}),
        errors=(*UPSTREAM, 422),
        parameters=[AGENT_NAME, agent_calls.AgentCallQuerySerializer, KEY, CORRELATION],
        shown=AGENT_CALL,
    )
    run = runs.AgentRunSerializer
    starting: dict[str, Any] = {
        "errors": (404, 409, 422, 503, 504),
        "parameters": [AGENT_NAME, KEY, CORRELATION],
        "shown": RUN,
    }
    operation(AgentRunViewSet, "run", "agent_run", _or_events({200: run, 202: run}), **starting)
    operation(AgentRunViewSet, "start", "agent_runs_start", {202: run}, **starting)
    summaries = runs.AgentRunSummarySerializer(many=True)
    listing: dict[str, Any] = {"errors": (400, 404)}
    operation(
        AgentRunViewSet,
        "list",
        "agent_runs_list",
        summaries,
        parameters=[*named["parameters"], runs.AgentRunQuerySerializer],
        **listing,
    )
    operation(RunViewSet, "list", "runs_list", summaries, parameters=[runs.RunQuerySerializer], **listing)
    one: dict[str, Any] = {"parameters": [RUN_ID]}
    operation(RunViewSet, "retrieve", "runs_get", run, errors=(404,), **one)
    operation(
        RunViewSet,
        "events",
        "runs_events",
        _or_events({200: runs.RunEventListSerializer}),
        errors=(400, 404),
        parameters=[RUN_ID, runs.EventQuerySerializer, LAST_EVENT],
    )
    operation(RunViewSet, "cancel", "runs_cancel", {200: run, 202: run}, errors=(404, 409), **one)
    operation(RunViewSet, "answer", "runs_input", {200: run, 202: run}, errors=(404, 409), shown=INPUT, **one)


def _or_events(answers: dict[int, Any]) -> dict[tuple[int, str], Any]:
    """Return the answers in JSON, and besides a stream of events."""
    json = {(status, "application/json"): body for status, body in answers.items()}
    return {**json, (200, "text/event-stream"): OpenApiTypes.STR}
