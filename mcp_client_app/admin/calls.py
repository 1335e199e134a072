"""The audit of calls: read-only, to be filtered and searched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from mcp_client_app.admin.presentation import json_block, outcome
from mcp_client_app.admin.readonly import ReadOnly
from mcp_client_app.models import ToolCall

if TYPE_CHECKING:
    from django.http import HttpRequest

    CallModelAdmin = admin.ModelAdmin[ToolCall]
else:
    CallModelAdmin = admin.ModelAdmin

__all__ = ["ToolCallAdmin"]


class ToolCallAdmin(ReadOnly, CallModelAdmin):
    """Who called what, when, and how it ended; arguments and result if they were kept."""

    list_display = ("started_at", "ended", "server_name", "tool", "kind", "who", "took")
    list_display_links = ("started_at", "tool")
    list_filter = ("is_error", "code", "server_name", "kind", "transport", "started_at")
    search_fields = ("server_name", "tool", "username", "agent", "code", "correlation_id")
    date_hierarchy = "started_at"
    ordering = ("-started_at", "-pk")
    show_full_result_count = False

    class Media:
        css = {"all": ["mcp_client_app/admin/mcp_client.css"]}  # noqa: RUF012 (Django's way)

    def get_fieldsets(self, request: HttpRequest, obj: ToolCall | None = None) -> Any:
        kept = [
            shown
            for field, shown in (("arguments", "kept_arguments"), ("result", "kept_result"))
            if obj is not None and getattr(obj, field) is not None
        ]
        return [
            (None, {"fields": ["ended", "server_name", "kind", "tool", "transport"]}),
            (_("Who"), {"fields": ["username", "agent", "correlation_id"]}),
            (_("Measured"), {"fields": ["started_at", "took", "request_size", "result_size"]}),
            *([(_("Kept payloads"), {"fields": kept})] if kept else []),
        ]

    @admin.display(description=_("outcome"), ordering="code")
    def ended(self, call: ToolCall) -> SafeString:
        """How the call ended, in colour and words."""
        return outcome(call)

    @admin.display(description=_("user"), ordering="username")
    def who(self, call: ToolCall) -> str:
        """User and agent."""
        return " / ".join(filter(None, (call.username, call.agent))) or "-"

    @admin.display(description=_("duration"), ordering="duration_ms")
    def took(self, call: ToolCall) -> str:
        """The duration with its unit."""
        return f"{call.duration_ms} ms"

    @admin.display(description=_("arguments"))
    def kept_arguments(self, call: ToolCall) -> SafeString:
        """Arguments, redacted and cut as the settings say."""
        return json_block(call.arguments)

    @admin.display(description=_("result"))
    def kept_result(self, call: ToolCall) -> SafeString:
        """Result, redacted and cut as the settings say."""
        return json_block(call.result)
