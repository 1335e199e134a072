"""The page of an agent's tools: what a model sees of them, and why it does not see others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext_lazy as _

from mcp_client_app.admin.offers import hints
from mcp_client_app.admin.pages import Pages
from mcp_client_app.admin.presentation import pretty
from mcp_client_app.datatypes import AgentSpec
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import AgentConfig, ServerConfig
from mcp_client_app.models.agent_fields import POLICIES
from mcp_client_app.services.permissions import CONNECT, may
from mcp_client_app.services.toolset import Toolset
from mcp_client_app.toolsets import SelectedTool, ToolSelection
from mcp_client_app.toolsets.policies import policy_for, result_limit_for

if TYPE_CHECKING:
    from django.urls import URLPattern

__all__ = ["AgentToolsPage"]


@dataclass(frozen=True)
class Unavailable:
    """A server whose tools are missing."""

    name: str
    reason: str
    url: str
    """Its page; empty where the user may not see it, or there is none."""


class AgentToolsPage(Pages):
    """Adds the page; looking at it connects nothing and waits for nothing."""

    patience = 10.0
    """Seconds that a request waits for servers that somebody had asked."""

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page_path("<path:object_id>/tools/", self.tools_view, "tools"),
            *super().get_urls(),
        ]

    def tools_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the tools as far as this process knows them; a POST asks the servers first."""
        row: AgentConfig = self.row_or_404(request, object_id)
        may_connect = may(request.user, CONNECT)
        if request.method == "POST":
            if not may_connect:
                raise PermissionDenied
            self.selection_of(row, wait=self.patience)
            return HttpResponseRedirect(self.page_url("tools", row))
        spec, selection = row.to_spec(), self.selection_of(row)
        shown = list(selection or ())
        return self.render_page(
            request,
            "tools.html",
            title=_("Tools of %(agent)s as a model sees them") % {"agent": row.title},
            original=row,
            is_known=selection is not None,
            tools=[_tool(each, spec) for each in shown],
            unavailable=self._unavailable(request, selection),
            warnings=_warnings(selection, spec),
            may_connect=may_connect,
            may_change=self.has_change_permission(request, row),
        )

    def selection_of(self, row: AgentConfig, *, wait: float = 0) -> ToolSelection | None:
        """Return what a model would see; None where the connections of this process cannot be asked."""
        try:
            return Toolset.from_spec(row.to_spec()).selection(wait=wait)
        except (MCPClientError, ImproperlyConfigured, ImportError):
            # Said by a system check, and by whoever uses a server: not the business of a page.
            return None

    def _unavailable(self, request: HttpRequest, selection: ToolSelection | None) -> list[Unavailable]:
        if selection is None:
            return []
        rows = {row.name: row for row in ServerConfig.objects.filter(name__in=selection.unavailable)}
        return [
            Unavailable(name, selection.reasons.get(name, ""), self._server_url(request, rows.get(name)))
            for name in selection.unavailable
        ]

    def _server_url(self, request: HttpRequest, row: ServerConfig | None) -> str:
        site = self.admin_site
        if row is None or not site.is_registered(ServerConfig):
            return ""
        servers = site.get_model_admin(ServerConfig)
        if not isinstance(servers, Pages) or not servers.has_view_permission(request, row):
            return ""
        return servers.page_url("offers", row)


def _tool(shown: SelectedTool, spec: AgentSpec) -> dict[str, Any]:
    policies: dict[str, Any] = dict(POLICIES)
    return {
        "name": shown.name,
        "info": shown.tool,
        "hints": hints(shown.tool.annotations),
        "schema": pretty(shown.schema),
        "fixed": list(shown.fixed),
        "approval": policies[policy_for(shown.tool, spec)],
        "limit": result_limit_for(shown.tool, spec),
    }


def _warnings(selection: ToolSelection | None, spec: AgentSpec) -> list[tuple[str, tuple[str, ...]]]:
    """Return what to look at, by whom it concerns; providers only if the agent may have their models."""
    if selection is None:
        return []
    kind = spec.model.partition(":")[0]
    found: list[tuple[str, tuple[str, ...]]] = [("", selection.warnings)]
    if not kind.startswith("anthropic"):
        found.append(("OpenAI", selection.for_openai().warnings))
    if not kind.startswith("openai"):
        found.append(("Anthropic", selection.for_anthropic().warnings))
    return [(provider, texts) for provider, texts in found if texts]
