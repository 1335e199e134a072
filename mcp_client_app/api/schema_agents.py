"""The part of the OpenAPI document that is about agents; imported only where drf-spectacular is installed."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema

from mcp_client_app.api import schema_examples as examples
from mcp_client_app.api.agents import AgentViewSet, UsableAgentViewSet
from mcp_client_app.api.schema_parts import AGENT_NAME, IF_MATCH, operation
from mcp_client_app.api.serializers import agents, queries

__all__ = ["describe_agents"]


class ArgumentChangesExtension(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # its registry
    """Fixed arguments as they are given."""

    target_class = "mcp_client_app.api.serializers.fixed_arguments.ArgumentChangesField"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        return {
            "type": "object",
            "description": (
                'Tool to argument to value. A text, number, boolean or list sets a value, `{"value": ...}` '
                'any value; null removes it, `{"set": true}` keeps what is stored.'
            ),
            "additionalProperties": {"type": "object", "nullable": True, "additionalProperties": {}},
        }


def describe_agents() -> None:
    """Describe the endpoints below ``agents/``."""
    agent, usable = agents.AgentConfigSerializer, agents.UsableAgentSerializer
    operation(
        AgentViewSet,
        "list",
        "agents_list",
        agent(many=True),
        errors=(400, 404),
        parameters=[queries.AgentQuerySerializer],
    )
    operation(AgentViewSet, "create", "agents_create", {201: agent}, errors=(409,), shown=examples.NEW_AGENT)
    operation(AgentViewSet, "retrieve", "agents_get", agent, errors=(404,), parameters=[AGENT_NAME])
    changing: dict[str, Any] = {"errors": (404, 409, 412), "parameters": [AGENT_NAME, IF_MATCH]}
    operation(AgentViewSet, "update", "agents_replace", agent, **changing)
    operation(
        AgentViewSet, "partial_update", "agents_update", agent, shown=examples.AGENT_CHANGES, **changing
    )
    operation(AgentViewSet, "destroy", "agents_delete", {204: None}, **changing)
    operation(UsableAgentViewSet, "list", "usable_agents_list", usable(many=True), errors=(404,))
