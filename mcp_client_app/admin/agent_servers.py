"""The servers of an agent, edited within its form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from mcp_client_app.admin.agent_forms import AgentServerForm
from mcp_client_app.admin.presentation import json_block, lines
from mcp_client_app.models import AgentServer
from mcp_client_app.services.permissions import ADD_AGENT, CHANGE_AGENT, VIEW_AGENT, may

if TYPE_CHECKING:
    ServerInline = admin.StackedInline[AgentServer, Any]
else:
    ServerInline = admin.StackedInline

__all__ = ["AgentServerInline", "shown_patterns"]

_SHOWN_INSTEAD: Final = {
    "allowed_tools": "shown_allowed_tools",
    "blocked_tools": "shown_blocked_tools",
    "fixed_arguments": "shown_fixed_arguments",
    "output_filters": "shown_output_filters",
    "result_limits": "shown_result_limits",
    "tool_approvals": "shown_tool_approvals",
}
"""What stands in for a field where it cannot be edited: Django would print the stored value."""


class AgentServerInline(ServerInline):
    """What the agent may use of each server. Who may change the agent may change this."""

    model = AgentServer
    form = AgentServerForm
    verbose_name = _("MCP server")
    verbose_name_plural = _("MCP servers")
    extra = 0
    readonly_fields = tuple(_SHOWN_INSTEAD.values())
    fieldsets = (
        (None, {"fields": ("server", "allowed_tools", "blocked_tools")}),
        (_("Fixed arguments"), {"classes": ("collapse",), "fields": ("fixed_arguments",)}),
        (_("Approvals"), {"classes": ("collapse",), "fields": ("approval", "tool_approvals")}),
        (
            _("Results"),
            {"classes": ("collapse",), "fields": ("output_filters", "result_limit", "result_limits")},
        ),
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("agent", "server").order_by("server__name")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if self.has_change_permission(request, obj):
            return fieldsets
        return [
            (
                title,
                {**options, "fields": [_SHOWN_INSTEAD.get(str(name), name) for name in options["fields"]]},
            )
            for title, options in fieldsets
        ]

    # Permissions -----------------------------------------------------------------------

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may(request.user, VIEW_AGENT) or self.has_change_permission(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may(request.user, ADD_AGENT if obj is None else CHANGE_AGENT)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request, obj)

    # What cannot be edited -------------------------------------------------------------

    @admin.display(description=_("allowed tools"))
    def shown_allowed_tools(self, row: AgentServer) -> Any:
        """One pattern a line."""
        return shown_patterns(row.allowed_tools)

    @admin.display(description=_("blocked tools"))
    def shown_blocked_tools(self, row: AgentServer) -> str | SafeString:
        """One pattern a line."""
        return lines(row.blocked_tools)

    @admin.display(description=_("fixed arguments"))
    def shown_fixed_arguments(self, row: AgentServer) -> str | SafeString:
        """Tools and names of arguments."""
        return lines([f"{tool}: {', '.join(arguments)}" for tool, arguments in row.fixed_arguments.items()])

    @admin.display(description=_("output filters"))
    def shown_output_filters(self, row: AgentServer) -> str | SafeString:
        """As stored."""
        return _block(row.output_filters)

    @admin.display(description=_("longest results by tool"))
    def shown_result_limits(self, row: AgentServer) -> str | SafeString:
        """As stored."""
        return _block(row.result_limits)

    @admin.display(description=_("approval by tool"))
    def shown_tool_approvals(self, row: AgentServer) -> str | SafeString:
        """As stored."""
        return _block(row.tool_approvals)


def shown_patterns(allowed: list[str] | None) -> Any:
    """Return allowed tools as HTML, one a line; none and all in a word."""
    return _("all") if allowed is None else lines(allowed, empty=str(_("none")))


def _block(value: Mapping[str, Any]) -> str | SafeString:
    return json_block(value) if value else "-"
