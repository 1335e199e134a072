"""Runs of agents in the admin: how they stand and why, what happened, which calls were made. Read-only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_client_app import json_codec, services
from mcp_client_app.admin.pages import Pages
from mcp_client_app.admin.presentation import json_block
from mcp_client_app.admin.readonly import ReadOnly
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import AgentEvent, AgentRun, Approval, RunCall
from mcp_client_app.moments import local
from mcp_client_app.services.permissions import CHANGE_RUN, VIEW_RUN, may
from mcp_client_app.services.run_settling import look_after
from mcp_client_app.services.runs import conversation
from mcp_client_app.toolsets.text import shorten

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.urls import URLPattern

    CallInline = admin.TabularInline[RunCall, AgentRun]
else:
    CallInline = admin.TabularInline

__all__ = ["AgentRunAdmin"]

TONES: Final[dict[str, str]] = {
    RunStatus.QUEUED: "calm",
    RunStatus.RUNNING: "busy",
    RunStatus.AWAITING_APPROVAL: "busy",
    RunStatus.AWAITING_INPUT: "busy",
    RunStatus.COMPLETED: "good",
    RunStatus.LIMIT_REACHED: "bad",
    RunStatus.FAILED: "bad",
}
CALL_TONES: Final[dict[str, str]] = {
    RunCall.Status.STARTED: "busy",
    RunCall.Status.DONE: "good",
    RunCall.Status.FAILED: "bad",
    RunCall.Status.UNKNOWN: "bad",
}
MINUTE: Final = 60.0
LATEST: Final = 200
"""Events that are shown; a run may have thousands."""
LONGEST: Final = 300
"""Characters of an event's data in its line."""


class RunCallInline(ReadOnly, CallInline):
    """The ledger of the calls."""

    model = RunCall
    fields = ("tool", "server_name", "coloured_status", "code", "is_safe", "shown_arguments", "started_at")
    readonly_fields = ("coloured_status", "shown_arguments")
    extra = 0
    ordering = ("started_at", "pk")

    @admin.display(description=_("status"))
    def coloured_status(self, call: RunCall) -> SafeString:
        """A coloured dot and the word."""
        return _badge(CALL_TONES[call.status], call.get_status_display())

    @admin.display(description=_("arguments"))
    def shown_arguments(self, call: RunCall) -> SafeString:
        """As the model gave them, without fixed ones."""
        return json_block(call.arguments)


class AgentRunAdmin(ReadOnly, Pages):
    """Runs, to be looked at and cancelled. Derive from this class to adapt it."""

    change_form_template = "admin/mcp_client_app/agentrun/change_form.html"
    list_display = ("created_at", "standing", "agent_name", "who", "asked", "tool_rounds", "took")
    list_display_links = ("created_at", "asked")
    list_filter = ("status", "code", "agent_name", "in_background", "created_at")
    search_fields = ("=id", "agent_name", "username", "prompt", "code", "correlation_id")
    date_hierarchy = "created_at"
    ordering = ("-created_at", "-pk")
    show_full_result_count = False
    inlines = (RunCallInline,)
    actions = ("cancel_runs",)

    class Media:
        css = {"all": ["mcp_client_app/admin/mcp_client.css"]}  # noqa: RUF012 (Django's way)

    # Permissions -----------------------------------------------------------------------

    def has_view_permission(self, request: HttpRequest, obj: AgentRun | None = None) -> bool:
        """Say whether the user may see runs; to Django who may change may view, to the services not."""
        return may(request.user, VIEW_RUN)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Say whether the user may end runs; Django asks before it offers such an action."""
        return may(request.user, CHANGE_RUN)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        # Filters in the address would let people find out letter by letter what they are not shown.
        if lookup.partition("__")[0] == "messages":
            return False
        return super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    # List ------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentRun]:
        return super().get_queryset(request).defer("messages")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        services.list_runs()  # settles what nobody works on any more
        return super().changelist_view(request, extra_context)

    @admin.display(description=_("status"), ordering="status")
    def standing(self, run: AgentRun) -> SafeString:
        """How it stands, in colour and words, and why."""
        said = str(run.get_status_display())
        if run.code:
            said = f"{said} ({run.code})"
        if run.state is RunStatus.RUNNING and run.cancel_requested_at is not None:
            said = gettext("being cancelled")
        return _badge(TONES.get(run.status, "off"), said)

    @admin.display(description=_("user"), ordering="username")
    def who(self, run: AgentRun) -> str:
        """User name."""
        return run.username or "-"

    @admin.display(description=_("prompt"))
    def asked(self, run: AgentRun) -> str:
        """The beginning of the prompt."""
        return shorten(" ".join(run.prompt.split()), 80) or "-"

    @admin.display(description=_("duration"))
    def took(self, run: AgentRun) -> str:
        """How long it took, or has taken, with the time that it waited."""
        if run.started_at is None:
            return "-"
        ended = run.finished_at or timezone.now()
        seconds = (ended - run.started_at).total_seconds()
        return timesince(run.started_at, ended) if seconds >= MINUTE else f"{seconds:.1f} s"

    @admin.display(description=_("time used, without pauses"), ordering="seconds_used")
    def spent(self, run: AgentRun) -> str:
        """How long it was worked on."""
        return f"{run.seconds_used:.1f} s"

    # Cancelling ------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        own = self.page_path("<path:object_id>/cancel/", self.cancel_view, "cancel")
        return [own, *super().get_urls()]

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """End a run, then show its page again."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        run = self.row_or_404(request, object_id)
        if not self.has_cancel_permission(request):
            raise PermissionDenied
        self._cancel(request, run)
        return HttpResponseRedirect(self.page_url("change", run))

    @admin.action(description=_("Cancel selected runs"), permissions=["cancel"])
    def cancel_runs(self, request: HttpRequest, queryset: QuerySet[AgentRun]) -> None:
        """List action."""
        for run in queryset:
            self._cancel(request, run)

    def _cancel(self, request: HttpRequest, run: AgentRun) -> None:
        try:
            cancelled = services.cancel_run(run.pk, user=request.user)
        except MCPClientError as error:
            self.message_user(request, f"{run}: {error}", messages.ERROR)
            return
        told = gettext("cancelled.")
        if not cancelled.state.is_final:
            told = gettext("its worker is told to cancel it.")
        self.message_user(request, f"{run}: {told}", messages.SUCCESS)
        self.log_change(request, run, told)

    # One of them -----------------------------------------------------------------------

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        run = super().get_object(request, object_id, from_field)
        if run is not None and look_after(run):
            run.refresh_from_db()
        return run

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        run = context.get("original")
        if run is not None and not run.state.is_final and self.has_cancel_permission(request):
            context["cancel_url"] = self.page_url("cancel", run)
        return super().render_change_form(request, context, *args, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: AgentRun | None = None) -> Any:
        about = ["standing", "detail", "agent_name", "who", "correlation_id", "approval_links"]
        times = [
            "created_at",
            "started_at",
            "finished_at",
            "took",
            "spent",
            "tool_rounds",
            "shown_usage",
        ]
        worker = ["in_background", "attempts", "lease_owner", "lease_until", "cancel_requested_at"]
        parts = [
            (None, {"fields": about}),
            (_("Conversation"), {"fields": ["shown_prompt", "shown_answer"]}),
            (_("What happened"), {"fields": ["timeline"]}),
            (_("Measured"), {"fields": times}),
            (_("Worker"), {"fields": worker, "classes": ["collapse"]}),
        ]
        kept = {"shown_deps": obj is not None and obj.deps is not None, "shown_messages": True}
        shown = [name for name, is_there in kept.items() if is_there]
        return [*parts, (_("Kept for going on"), {"fields": shown, "classes": ["collapse"]})]

    @admin.display(description=_("prompt"))
    def shown_prompt(self, run: AgentRun) -> SafeString:
        """The whole prompt."""
        return _text(run.prompt)

    @admin.display(description=_("answer"))
    def shown_answer(self, run: AgentRun) -> SafeString:
        """The whole answer."""
        return _text(run.text or "-")

    @admin.display(description=_("usage"))
    def shown_usage(self, run: AgentRun) -> SafeString:
        """As the provider counts."""
        return json_block(run.usage)

    @admin.display(description=_("values of the caller"))
    def shown_deps(self, run: AgentRun) -> SafeString:
        """What the agent's code may want."""
        return json_block(run.deps)

    @admin.display(description=_("messages"))
    def shown_messages(self, run: AgentRun) -> SafeString:
        """The conversation as it goes to the model, but for the agent's instructions."""
        return json_block(conversation(run.messages))

    @admin.display(description=_("events"))
    def timeline(self, run: AgentRun) -> SafeString | str:
        """The latest events in order, one a line."""
        latest = list(run.events.order_by("-number")[:LATEST])[::-1]
        if not latest:
            return "-"
        lines = format_html_join("\n", "{} {} {} {}", map(_line, latest))
        return format_html('<pre class="mcp-json">{}</pre>', lines)

    @admin.display(description=_("approvals"))
    def approval_links(self, run: AgentRun) -> SafeString | str:
        """The questions to people, as links if this site shows them."""
        found = [(self._approval_url(each), str(each)) for each in run.approvals.order_by("created_at")]
        if not found:
            return "-"
        if not self.admin_site.is_registered(Approval):
            return ", ".join(text for _url, text in found)
        return format_html_join(", ", '<a href="{}">{}</a>', found)

    def _approval_url(self, row: Approval) -> str:
        if not self.admin_site.is_registered(Approval):
            return ""
        place = f"admin:{self.opts.app_label}_approval_change"
        return reverse(place, args=(row.pk,), current_app=self.admin_site.name)


def _badge(tone: str, text: str) -> SafeString:
    return format_html('<span class="mcp-state mcp-{}">{}</span>', tone, text)


def _text(text: str) -> SafeString:
    return format_html('<div class="mcp-text">{}</div>', text)


def _line(event: AgentEvent) -> tuple[int, str, str, str]:
    when = date_format(local(event.created_at), "H:i:s")
    return event.number, when, event.kind, _brief(event.data)


def _brief(data: Mapping[str, Any]) -> str:
    return shorten(json_codec.dumps(data).decode(), LONGEST) if data else ""
