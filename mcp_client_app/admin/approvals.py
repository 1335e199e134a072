"""Approvals in the admin: what waits, for how long, and the page where a person decides.

What a call is about is shown to those alone who may decide about it; others with
``view_approval`` see that there is one, and what became of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_client_app import services
from mcp_client_app.admin.approval_forms import AnswerForms, DecisionForm
from mcp_client_app.admin.presentation import json_block
from mcp_client_app.admin.readonly import ReadOnly
from mcp_client_app.exceptions import (
    InvalidArgumentsError,
    InvalidInputError,
    MCPClientError,
    PermissionDeniedError,
    UnknownRunError,
)
from mcp_client_app.models import AgentRun, Approval
from mcp_client_app.services.approval_decisions import may_decide
from mcp_client_app.services.permissions import DECIDE, may

if TYPE_CHECKING:
    from django.db.models import QuerySet

    ApprovalModelAdmin = admin.ModelAdmin[Approval]
else:
    ApprovalModelAdmin = admin.ModelAdmin

__all__ = ["ApprovalAdmin"]

TONES: Final[dict[str, str]] = {
    Approval.Status.PENDING: "busy",
    Approval.Status.APPROVED: "good",
    Approval.Status.ANSWERED: "good",
    Approval.Status.USED: "calm",
    Approval.Status.DENIED: "bad",
}
CONFIDENTIAL: Final = frozenset(
    {"arguments", "edited_arguments", "answers", "requests", "request_state", "schema", "fixed_names"}
)
"""Neither shown to all, nor to be searched or filtered by."""


class ApprovalAdmin(ReadOnly, ApprovalModelAdmin):
    """Calls that wait for a person, and questions of servers. Derive from this class to adapt it."""

    list_display = ("standing", "call", "kind", "agent_name", "asked_for_by", "age", "decision")
    list_display_links = ("standing", "call")
    list_filter = ("status", "kind", "agent_name", "server_name", "created_at")
    search_fields = ("tool", "server_name", "agent_name", "username", "call_id", "decided_by_name")
    date_hierarchy = "created_at"
    ordering = ("-created_at", "-pk")
    show_full_result_count = False
    actions = ("approve_calls", "deny_calls")

    class Media:
        css = {"all": ["mcp_client_app/admin/mcp_client.css"]}  # noqa: RUF012 (Django's way)

    # Permissions -----------------------------------------------------------------------

    def has_view_permission(self, request: HttpRequest, obj: Approval | None = None) -> bool:
        return super().has_view_permission(request, obj) or may(request.user, DECIDE)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Say whether the user may decide about everybody's calls; Django asks before it offers an action."""
        return may(request.user, DECIDE)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        # Filters in the address would let people find out letter by letter what they are not shown.
        if lookup.partition("__")[0] in CONFIDENTIAL:
            return False
        return super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    # List ------------------------------------------------------------------------------

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        services.expire_approvals()
        return super().changelist_view(request, extra_context)

    @admin.display(description=_("status"), ordering="status")
    def standing(self, row: Approval) -> SafeString:
        """How it stands, in colour and words."""
        standing = row.standing
        return format_html(
            '<span class="mcp-state mcp-{}">{}</span>', TONES.get(standing, "off"), standing.label
        )

    @admin.display(description=_("call"), ordering="tool")
    def call(self, row: Approval) -> str:
        """Server and tool."""
        return f"{row.server_name}: {row.tool}"

    @admin.display(description=_("asked for by"), ordering="username")
    def asked_for_by(self, row: Approval) -> str:
        """User name."""
        return row.username or "-"

    @admin.display(description=_("age"), ordering="created_at")
    def age(self, row: Approval) -> str:
        """How long it has waited, and how long it still can."""
        said = gettext("%(time)s ago") % {"time": timesince(row.created_at)}
        if row.standing not in (Approval.Status.PENDING, Approval.Status.APPROVED, Approval.Status.ANSWERED):
            return said
        return f"{said}; {gettext('%(time)s left') % {'time': timeuntil(row.expires_at)}}"

    @admin.display(description=_("decided by"), ordering="decided_by_name")
    def decision(self, row: Approval) -> str:
        """Who decided."""
        return row.decided_by_name or "-"

    @admin.action(description=_("Approve selected calls, as they are"), permissions=["decide"])
    def approve_calls(self, request: HttpRequest, queryset: QuerySet[Approval]) -> None:
        """List action."""
        self._decide_all(request, queryset, services.approve, gettext("approved"))

    @admin.action(description=_("Deny selected calls"), permissions=["decide"])
    def deny_calls(self, request: HttpRequest, queryset: QuerySet[Approval]) -> None:
        """List action."""
        self._decide_all(request, queryset, services.deny, gettext("denied"))

    def _decide_all(self, request: HttpRequest, rows: QuerySet[Approval], verb: Any, done: str) -> None:
        for row in rows:
            try:
                verb(row.pk, user=request.user)
            except MCPClientError as error:
                self.message_user(request, f"{self.call(row)}: {error}", messages.ERROR)
            else:
                self.message_user(request, f"{self.call(row)}: {done}.", messages.SUCCESS)
                self.log_change(request, row, done)

    # One of them -----------------------------------------------------------------------

    def get_fieldsets(self, request: HttpRequest, obj: Approval | None = None) -> Any:
        about = ["standing", "call", "kind", "agent_name", "shown_run", "call_id", "asked_for_by", "age"]
        parts: list[Any] = [(None, {"fields": about})]
        if obj is None or not may_decide(obj, request.user):
            told = _("What the call is about is shown to those who may decide about it.")
            parts[0][1]["description"] = told
        else:
            confidential = {
                "shown_arguments": True,
                "shown_edited_arguments": obj.edited_arguments is not None,
                "shown_questions": obj.is_input,
            }
            shown = [name for name, is_there in confidential.items() if is_there]
            parts.append((_("What it is about"), {"fields": shown}))
        if obj is not None and obj.decided_at is not None:
            decided = ["decision", "decided_at", "reason", "used_at"]
            parts.append((_("Decision"), {"fields": decided}))
        return parts

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        if row is None or not self.has_view_permission(request, row):
            return super().change_view(request, object_id, form_url, extra_context)
        if request.method != "POST":
            if row.is_pending and may_decide(row, request.user):
                return self._page(request, row, AnswerForms(row) if row.is_input else DecisionForm(row))
            return super().change_view(request, object_id, form_url, extra_context)
        if not may_decide(row, request.user):
            raise PermissionDenied
        return self._answered(request, row) if row.is_input else self._decided(request, row)

    def _decided(self, request: HttpRequest, row: Approval) -> HttpResponse:
        form = DecisionForm(row, request.POST)
        if "_deny" in request.POST:
            form.leave_arguments()
        if not form.is_valid():
            return self._page(request, row, form)
        reason = form.cleaned_data["reason"]
        if "_deny" in request.POST:
            return self._done(
                request, row, lambda user: services.deny(row.pk, user=user, reason=reason), _("Denied.")
            )
        try:
            return self._done(
                request,
                row,
                lambda user: services.approve(row.pk, user=user, arguments=form.chosen, reason=reason),
                _("Approved."),
            )
        except InvalidArgumentsError as error:
            form.add_error("arguments", str(error))
            return self._page(request, row, form)

    def _answered(self, request: HttpRequest, row: Approval) -> HttpResponse:
        forms = AnswerForms(row, request.POST)
        if not forms.is_valid():
            return self._page(request, row, forms)
        try:
            return self._done(
                request,
                row,
                lambda user: services.answer_input(row.pk, user=user, responses=forms.responses),
                _("Answered."),
            )
        except InvalidInputError as error:
            forms.refuse(error)
            return self._page(request, row, forms)

    def _done(self, request: HttpRequest, row: Approval, verb: Any, told: Any) -> HttpResponse:
        """Decide, and go to where there may be more; what cannot be mended in the form is told there."""
        try:
            verb(request.user)
        except (InvalidArgumentsError, InvalidInputError):
            raise
        except (PermissionDeniedError, UnknownRunError):
            raise PermissionDenied from None
        except MCPClientError as error:
            self.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(request.path)
        self.log_change(request, row, str(told))
        self.message_user(request, f"{self.call(row)}: {told}", messages.SUCCESS)
        opts = self.opts
        place = f"admin:{opts.app_label}_{opts.model_name}_changelist"
        return HttpResponseRedirect(reverse(place, current_app=self.admin_site.name))

    def _page(self, request: HttpRequest, row: Approval, form: Any) -> HttpResponse:
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            "admin/mcp_client_app/approval/decide.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Answer a server") if row.is_input else _("Decide about a call"),
                "subtitle": self.call(row),
                "opts": self.opts,
                "media": self.media,
                "original": row,
                "age": self.age(row),
                "run_link": self.shown_run(row),
                # Those that can be changed stand in the form.
                "arguments": None
                if "arguments" in getattr(form, "fields", ())
                else json_block(row.arguments),
                "is_fixed": not row.is_input and row.schema is None,
                "schema": json_block(row.schema) if row.schema is not None else None,
                "form": None if row.is_input else form,
                "answers": form if row.is_input else None,
            },
        )

    # What is shown ---------------------------------------------------------------------

    @admin.display(description=_("run"))
    def shown_run(self, row: Approval) -> str | SafeString:
        """The run, as a link if this site shows runs."""
        if row.run_id is None:
            return "-"
        if not self.admin_site.is_registered(AgentRun):
            return str(row.run_id)
        place = f"admin:{self.opts.app_label}_agentrun_change"
        url = reverse(place, args=(row.run_id,), current_app=self.admin_site.name)
        return format_html('<a href="{}">{}</a>', url, row.run_id)

    @admin.display(description=_("arguments"))
    def shown_arguments(self, row: Approval) -> SafeString:
        """Arguments as the model gave them."""
        return json_block(row.arguments)

    @admin.display(description=_("edited arguments"))
    def shown_edited_arguments(self, row: Approval) -> SafeString:
        """What was sent in their place."""
        return json_block(row.edited_arguments)

    @admin.display(description=_("questions"))
    def shown_questions(self, row: Approval) -> SafeString:
        """What the server asked."""
        return json_block(row.requests)
