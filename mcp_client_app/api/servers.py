"""``servers/``: stored servers, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rest_framework import serializers as drf_serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app import services
from mcp_client_app.api.revisions import etag, expected_revision
from mcp_client_app.api.serializers.queries import ServerQuerySerializer
from mcp_client_app.api.serializers.servers import (
    NewServerConfigSerializer,
    ServerChangesSerializer,
    ServerConfigSerializer,
)
from mcp_client_app.api.viewsets import MCPViewSet
from mcp_client_app.configuration.secrets import SecretChanges
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import ServerConfig
from mcp_client_app.services.permissions import ADD, CHANGE, DELETE, VIEW

__all__ = ["ServerViewSet"]


class ServerViewSet(MCPViewSet):
    """Stored servers. Values of ``env`` and ``headers`` come in and never go out."""

    required: ClassVar = {
        "list": (VIEW,),
        "retrieve": (VIEW,),
        "create": (ADD,),
        "update": (CHANGE,),
        "partial_update": (CHANGE,),
        "destroy": (DELETE,),
    }
    serializers: ClassVar = {
        "create": NewServerConfigSerializer,
        "update": ServerChangesSerializer,
        "partial_update": ServerChangesSerializer,
    }

    def list(self, request: Request) -> Response:
        """List the servers, with how they stand; nothing is connected for that."""
        query = self.query(ServerQuerySerializer)
        rows = [row for row in services.list_servers(user=request.user) if _fits(row, query)]
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self._shown(page or [], many=True).data)

    def create(self, request: Request) -> Response:
        """Store a new server."""
        fields = self.body()
        for name in ("env", "headers"):
            if isinstance(changes := fields.get(name), SecretChanges):
                fields[name] = changes.whole({}, ignore_case=name == "headers")
        row = services.add_server(fields.pop("name"), user=request.user, **fields)
        return self._answer(row, status=201, headers={"Location": self.reverse_action(row)})

    def retrieve(self, request: Request, name: str) -> Response:
        """Show a server, with how it stands in this process and in the others."""
        return self._answer(services.get_server(name, user=request.user))

    def update(self, request: Request, name: str) -> Response:
        """Change a server; the keys of ``env`` and ``headers`` become exactly those that are given."""
        return self._update(request, name)

    def partial_update(self, request: Request, name: str) -> Response:
        """Change a server; keys of ``env`` and ``headers`` that are not given stay."""
        return self._update(request, name)

    def destroy(self, request: Request, name: str) -> Response:
        """Delete a server; its connections end in all processes, its audit rows stay."""
        services.remove_server(name, user=request.user, expected_revision=expected_revision(request))
        return Response(status=204)

    def _update(self, request: Request, name: str) -> Response:
        fields = self.body()
        expected = expected_revision(request, fields)
        fields.pop("revision", None)
        if fields.pop("name", name).casefold() != name.casefold():
            raise drf_serializers.ValidationError({"name": ["The name of a server never changes."]})
        row = services.update_server(name, user=request.user, expected_revision=expected, **fields)
        return self._answer(row)

    def get_serializer(self, *args: Any, **kwargs: Any) -> Any:
        # The forms of the browsable API show what is stored; a page of servers has none.
        if not isinstance(kwargs.get("instance"), ServerConfig):
            kwargs.pop("instance", None)
        return super().get_serializer(*args, **kwargs)

    def reverse_action(self, row: ServerConfig) -> str:  # type: ignore[override]  # the router's form is not used
        """Return the address of a server."""
        return self.request.build_absolute_uri(f"{self.request.path.rstrip('/')}/{row.name}/")

    # What is shown ---------------------------------------------------------------------

    def _answer(
        self, row: ServerConfig, status: int = 200, headers: dict[str, str] | None = None
    ) -> Response:
        data = self._shown(row).data
        # Elsewhere the data would be taken for the form to fill in.
        shown = data if self.action == "retrieve" else dict(data)
        return Response(shown, status=status, headers={"ETag": etag(row), **(headers or {})})

    def _shown(self, rows: ServerConfig | Sequence[ServerConfig], *, many: bool = False) -> Any:
        user = self.request.user
        names = [row.name for row in rows] if not isinstance(rows, ServerConfig) else [rows.name]
        context = {
            **self.get_serializer_context(),
            "statuses": _statuses(user),
            "workers": _workers(names, user),
        }
        return ServerConfigSerializer(rows, many=many, context=context)


def _fits(row: ServerConfig, query: dict[str, Any]) -> bool:
    text = query.get("search", "").casefold()
    return (
        (query.get("transport") in (None, row.transport))
        and (query["enabled"] in (None, row.enabled))
        and any(text in part.casefold() for part in (row.name, row.label, row.description))
    )


def _statuses(user: Any) -> dict[str, Any]:
    """Return the states in this process by name; none where no connections can be had at all."""
    try:
        return {status.name: status for status in services.server_statuses(user=user)}
    except MCPClientError:
        return {}


def _workers(names: list[str], user: Any) -> dict[str, list[Any]]:
    states = services.worker_states(names[0] if len(names) == 1 else None, user=user)
    found: dict[str, list[Any]] = {}
    for state in states:
        found.setdefault(state.server.name, []).append(state)
    return found
