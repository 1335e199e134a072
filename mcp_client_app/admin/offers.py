"""The page of one server: what it offers, how it stands, and why it is down if it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from mcp_client_app import services
from mcp_client_app.admin.overview import Board, state_badge
from mcp_client_app.admin.pages import ServerPages
from mcp_client_app.admin.presentation import pretty
from mcp_client_app.admin.verbs import VERBS
from mcp_client_app.datatypes import LogMessage, ToolAnnotations, ToolInfo
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import ServerConfig

if TYPE_CHECKING:
    from django.urls import URLPattern

__all__ = ["OffersPage", "hints"]

KINDS = ("tools", "resources", "resource_templates", "prompts")


class OffersPage(ServerPages):
    """Adds the page; looking at it connects nothing and waits for nothing."""

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page_path("<path:object_id>/offers/", self.offers_view, "offers"),
            *super().get_urls(),
        ]

    def offers_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what a server offered when it was last asked by this process; ``?q=`` filters."""
        row = self.server_or_404(request, object_id)
        overview = Board().of(row)
        query = request.GET.get("q", "").strip()
        offers = _offers(row)
        found = {kind: [item for item in items if _matches(item, query)] for kind, items in offers.items()}
        return self.render_page(
            request,
            "offers.html",
            title=_("Status and tools of %(server)s") % {"server": row.title},
            original=row,
            overview=overview,
            badge=state_badge(overview),
            status=overview.status,
            query=query,
            tools=[_tool(tool) for tool in found["tools"]],
            resources=found["resources"],
            resource_templates=found["resource_templates"],
            prompts=found["prompts"],
            total=sum(map(len, offers.values())),
            shown=sum(map(len, found.values())),
            logs=[_log(message) for message in _logs(row)],
            verbs=VERBS.values() if self.has_connect_permission(request) else (),
            may_change=self.has_change_permission(request, row),
        )


def _offers(row: ServerConfig) -> dict[str, tuple[Any, ...]]:
    try:
        return {kind: services.last_known(kind, row.name) for kind in KINDS}
    except MCPClientError:
        return dict.fromkeys(KINDS, ())


def _logs(row: ServerConfig) -> tuple[LogMessage, ...]:
    try:
        return services.server_logs(row.name)
    except MCPClientError:
        return ()


def _matches(item: Any, query: str) -> bool:
    texts = (getattr(item, name, None) for name in ("name", "title", "description", "public_name", "uri"))
    words = query.casefold().split()
    text = " ".join(filter(None, texts)).casefold()
    return all(word in text for word in words)


def _tool(tool: ToolInfo) -> dict[str, Any]:
    return {
        "info": tool,
        "hints": hints(tool.annotations),
        "input": pretty(tool.input_schema),
        "output": pretty(tool.output_schema) if tool.output_schema is not None else "",
    }


def hints(annotations: ToolAnnotations) -> list[Any]:
    """Return what the server claims about a tool, in words."""
    claims = (
        (annotations.read_only, True, _("only reads")),
        (annotations.read_only, False, _("changes things")),
        (annotations.destructive, True, _("may destroy")),
        (annotations.idempotent, True, _("harmless to repeat")),
        (annotations.open_world, True, _("reaches the outside world")),
    )
    return [words for claim, value, words in claims if claim is value]


def _log(message: LogMessage) -> dict[str, Any]:
    text = message.data if isinstance(message.data, str) else pretty(message.data)
    return {"level": message.level, "at": message.received_at, "logger": message.logger, "text": text}
