"""``agents/``: stored agents, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework import serializers as drf_serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app import services
from mcp_client_app.api.revisions import etag, expected_revision
from mcp_client_app.api.serializers.agents import (
    AgentChangesSerializer,
    AgentConfigSerializer,
    NewAgentConfigSerializer,
    UsableAgentSerializer,
)
from mcp_client_app.api.serializers.queries import AgentQuerySerializer
from mcp_client_app.api.viewsets import MCPViewSet
from mcp_client_app.models import AgentConfig
from mcp_client_app.services.permissions import ADD_AGENT, CHANGE_AGENT, DELETE_AGENT, RUN_AGENT, VIEW_AGENT

__all__ = ["AgentViewSet", "UsableAgentViewSet"]


class AgentViewSet(MCPViewSet):
    """Stored agents. Values of ``fixed_arguments`` come in and never go out."""

    required: ClassVar = {
        "list": (VIEW_AGENT,),
        "retrieve": (VIEW_AGENT,),
        "create": (ADD_AGENT,),
        "update": (CHANGE_AGENT,),
        "partial_update": (CHANGE_AGENT,),
        "destroy": (DELETE_AGENT,),
    }
    serializers: ClassVar = {
        "create": NewAgentConfigSerializer,
        "update": AgentChangesSerializer,
        "partial_update": AgentChangesSerializer,
    }

    def list(self, request: Request) -> Response:
        """List the agents."""
        query = self.query(AgentQuerySerializer)
        rows = [row for row in services.list_agents(user=request.user) if _fits(row, query)]
        page = self.paginate_queryset(rows)
        shown = AgentConfigSerializer(page or [], many=True, context=self.get_serializer_context())
        return self.get_paginated_response(shown.data)

    def create(self, request: Request) -> Response:
        """Store a new agent."""
        fields = self.body()
        row = services.add_agent(fields.pop("name"), user=request.user, **fields)
        location = request.build_absolute_uri(f"{request.path.rstrip('/')}/{row.name}/")
        return self._answer(row, status=201, headers={"Location": location})

    def retrieve(self, request: Request, name: str) -> Response:
        """Show an agent."""
        return self._answer(services.get_agent(name, user=request.user))

    def update(self, request: Request, name: str) -> Response:
        """Change an agent; fixed arguments of a server that is given become exactly those that are given."""
        return self._update(request, name)

    def partial_update(self, request: Request, name: str) -> Response:
        """Change an agent; fixed arguments that are not given stay."""
        return self._update(request, name)

    def destroy(self, request: Request, name: str) -> Response:
        """Delete an agent; its runs stay, under its name."""
        services.remove_agent(name, user=request.user, expected_revision=expected_revision(request))
        return Response(status=204)

    def _update(self, request: Request, name: str) -> Response:
        fields = self.body()
        expected = expected_revision(request, fields)
        fields.pop("revision", None)
        if fields.pop("name", name).casefold() != name.casefold():
            raise drf_serializers.ValidationError({"name": ["The name of an agent never changes."]})
        row = services.update_agent(name, user=request.user, expected_revision=expected, **fields)
        return self._answer(row)

    def get_serializer(self, *args: Any, **kwargs: Any) -> Any:
        # The forms of the browsable API show what is stored; a page of agents has none.
        if not isinstance(kwargs.get("instance"), AgentConfig):
            kwargs.pop("instance", None)
        return super().get_serializer(*args, **kwargs)

    def _answer(self, row: AgentConfig, status: int = 200, headers: dict[str, str] | None = None) -> Response:
        data = AgentConfigSerializer(row, context=self.get_serializer_context()).data
        # Elsewhere the data would be taken for the form to fill in.
        shown = data if self.action == "retrieve" else dict(data)
        return Response(shown, status=status, headers={"ETag": etag(row), **(headers or {})})


class UsableAgentViewSet(MCPViewSet):
    """The agents that the user may use, for front ends that let people choose."""

    required: ClassVar = {"list": (RUN_AGENT,)}

    def list(self, request: Request) -> Response:
        """List the agents that you may use; nothing of their configuration."""
        page = self.paginate_queryset(services.usable_agents(user=request.user))
        return self.get_paginated_response(UsableAgentSerializer(page or [], many=True).data)


def _fits(row: AgentConfig, query: Mapping[str, Any]) -> bool:
    text = query.get("search", "").casefold()
    server = query.get("server", "").casefold()
    return (
        query["enabled"] in (None, row.enabled)
        and any(text in part.casefold() for part in (row.name, row.label, row.description))
        and (not server or any(server == each.server.name.casefold() for each in row.agent_servers.all()))
    )
