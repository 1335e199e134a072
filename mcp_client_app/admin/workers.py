"""Processes that hold connections, and what they report: read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from mcp_client_app.admin.overview import tone_of
from mcp_client_app.admin.readonly import ReadOnly
from mcp_client_app.models import ServerState, WorkerProcess

if TYPE_CHECKING:
    StateInline = admin.TabularInline[ServerState, WorkerProcess]
    StateModelAdmin = admin.ModelAdmin[ServerState]
    WorkerModelAdmin = admin.ModelAdmin[WorkerProcess]
else:
    StateInline = admin.TabularInline
    StateModelAdmin = WorkerModelAdmin = admin.ModelAdmin

__all__ = ["ServerStateAdmin", "ServerStateInline", "WorkerProcessAdmin"]


class ColouredState:
    """Mixed into an admin of states."""

    @admin.display(description=_("state"), ordering="state")
    def coloured_state(self, state: ServerState) -> SafeString:
        """A coloured dot and the word."""
        return format_html(
            '<span class="mcp-state mcp-{}">{}</span>', tone_of(state.state), state.get_state_display()
        )


class ServerStateInline(ColouredState, ReadOnly, StateInline):
    """What a process reports."""

    model = ServerState
    fields = ("server", "principal", "coloured_state", "reason", "since", "tools")
    readonly_fields = ("coloured_state",)
    extra = 0


class WorkerProcessAdmin(ReadOnly, WorkerModelAdmin):
    """The processes of the site that hold connections."""

    list_display = ("__str__", "lives", "started_at", "seen_at")
    list_filter = ("host", "seen_at")
    search_fields = ("host", "pid")
    fields = ("host", "pid", "lives", "started_at", "seen_at")
    inlines = (ServerStateInline,)

    class Media:
        css = {"all": ["mcp_client_app/admin/mcp_client.css"]}  # noqa: RUF012 (Django's way)

    @admin.display(description=_("alive"), boolean=True)
    def lives(self, worker: WorkerProcess) -> bool:
        """Whether the process was seen lately."""
        return worker.is_alive()


class ServerStateAdmin(ColouredState, ReadOnly, StateModelAdmin):
    """How servers stand, as their processes report."""

    list_display = ("server", "coloured_state", "reason", "since", "worker", "principal", "tools")
    list_filter = ("state", "server", "worker")
    list_select_related = ("server", "worker")
    search_fields = ("server__name", "reason", "worker__host")

    class Media:
        css = {"all": ["mcp_client_app/admin/mcp_client.css"]}  # noqa: RUF012 (Django's way)
