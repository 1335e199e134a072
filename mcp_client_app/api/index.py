"""The root of the API, and the answer for addresses below it that do not exist."""

from __future__ import annotations

from typing import NoReturn

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app.api.viewsets import MCPViewSet

__all__ = ["IndexViewSet", "NowhereViewSet"]

PLACES = (
    "servers",
    "tools",
    "resources",
    "resource-templates",
    "prompts",
    "agents",
    "usable-agents",
    "runs",
    "approvals",
    "calls",
    "export",
    "health",
)


class IndexViewSet(MCPViewSet):
    """Where to begin, for people who browse."""

    schema = None  # no part of the OpenAPI document

    def show(self, request: Request) -> Response:
        """List the places that can be read."""
        base = request.build_absolute_uri(request.path)
        return Response({place: f"{base}{place}/" for place in PLACES})


class NowhereViewSet(MCPViewSet):
    """404 in the form of all errors, instead of the project's page for people."""

    schema = None

    def initial(self, request: Request, *args: object, **kwargs: object) -> NoReturn:
        """Refuse whoever may not be here, then say that there is nothing."""
        super().initial(request, *args, **kwargs)
        raise Http404
