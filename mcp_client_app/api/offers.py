"""``tools/``, ``resources/``, ``resource-templates/``, ``prompts/``, over all servers or one.

Listing connects nothing and waits for nothing, unless ``?wait=`` says so. One server that
cannot be asked never hides the others: it is named in ``errors``, and what it offered when
it was last asked is listed as unavailable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from rest_framework.request import Request
from rest_framework.response import Response

from mcp_client_app import services
from mcp_client_app.api.errors import described
from mcp_client_app.api.pagination import PartialPages
from mcp_client_app.api.serializers.offers import (
    OfferSerializer,
    PromptInfoSerializer,
    ResourceInfoSerializer,
    ResourceTemplateInfoSerializer,
    ToolInfoSerializer,
)
from mcp_client_app.api.serializers.queries import OfferQuerySerializer, ServerOfferQuerySerializer
from mcp_client_app.api.viewsets import MCPViewSet
from mcp_client_app.datatypes import Listing
from mcp_client_app.services.permissions import CALL, VIEW

__all__ = ["KINDS", "OfferViewSet", "ServerOfferViewSet"]


@dataclass(frozen=True)
class Kind:
    """One of the four lists."""

    list: Callable[..., Listing[Any]]
    serializer: type[OfferSerializer]
    searched: tuple[str, ...]


KINDS: Final[Mapping[str, Kind]] = {
    "tools": Kind(services.list_tools, ToolInfoSerializer, ("name", "public_name", "title", "description")),
    "resources": Kind(
        services.list_resources, ResourceInfoSerializer, ("uri", "name", "title", "description")
    ),
    "resource_templates": Kind(
        services.list_resource_templates,
        ResourceTemplateInfoSerializer,
        ("uri_template", "name", "title", "description"),
    ),
    "prompts": Kind(services.list_prompts, PromptInfoSerializer, ("name", "title", "description")),
}


class OfferViewSet(MCPViewSet):
    """What all servers offer. Whoever may call tools may see them."""

    required: ClassVar = dict.fromkeys(KINDS, (VIEW, CALL))
    pagination_class = PartialPages

    def tools(self, request: Request, **kwargs: str) -> Response:
        """List tools."""
        return self._page("tools", **self.query(OfferQuerySerializer))

    def resources(self, request: Request, **kwargs: str) -> Response:
        """List resources."""
        return self._page("resources", **self.query(OfferQuerySerializer))

    def resource_templates(self, request: Request, **kwargs: str) -> Response:
        """List templates for URIs of resources."""
        return self._page("resource_templates", **self.query(OfferQuerySerializer))

    def prompts(self, request: Request, **kwargs: str) -> Response:
        """List prompts."""
        return self._page("prompts", **self.query(OfferQuerySerializer))

    def _page(self, name: str, *, search: str, wait: float, server: str | None = None) -> Response:
        kind, user, left = KINDS[name], self.request.user, self.time_left()
        patience = wait if left is None else min(wait, left)
        listing = kind.list(server, wait=patience, user=user)
        items = list(listing.items)
        for away in listing.errors:
            items += services.last_known(name, away, user=user)
        items = sorted(_matching(items, kind, search), key=lambda item: item.server.casefold())
        paginator = self.paginator
        assert isinstance(paginator, PartialPages)
        paginator.errors = {away: described(error) for away, error in listing.errors.items()}
        page = self.paginate_queryset(items)
        shown = kind.serializer(page, many=True, context={"errors": listing.errors})
        return self.get_paginated_response(shown.data)


class ServerOfferViewSet(OfferViewSet):
    """What one server offers."""

    def tools(self, request: Request, **kwargs: str) -> Response:
        """List the tools of a server."""
        return self._of_one("tools", **kwargs)

    def resources(self, request: Request, **kwargs: str) -> Response:
        """List the resources of a server."""
        return self._of_one("resources", **kwargs)

    def resource_templates(self, request: Request, **kwargs: str) -> Response:
        """List the templates for URIs of resources of a server."""
        return self._of_one("resource_templates", **kwargs)

    def prompts(self, request: Request, **kwargs: str) -> Response:
        """List the prompts of a server."""
        return self._of_one("prompts", **kwargs)

    def _of_one(self, kind: str, *, name: str) -> Response:
        return self._page(kind, server=name, **self.query(ServerOfferQuerySerializer))


def _matching(items: list[Any], kind: Kind, search: str) -> list[Any]:
    text = search.casefold()
    return [
        item
        for item in items
        if any(text in (getattr(item, attribute) or "").casefold() for attribute in kind.searched)
    ]
