"""The admin of agents: the list and the form."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminTextareaWidget
from django.core.exceptions import ValidationError
from django.db.models import TextField
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from mcp_client_app import services
from mcp_client_app.admin.agent_forms import AgentConfigForm
from mcp_client_app.admin.agent_servers import AgentServerInline, shown_patterns
from mcp_client_app.admin.agent_tools import AgentToolsPage
from mcp_client_app.admin.overview import Board
from mcp_client_app.admin.presentation import json_block, lines
from mcp_client_app.agents import requirements
from mcp_client_app.configuration.secrets import visible_url, without_secrets_json
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import AgentConfig, AgentServer
from mcp_client_app.models.importing import messages as messages_of
from mcp_client_app.services.agent_problems import agent_problems
from mcp_client_app.services.agents import remove_agent_server, save_agent_server

if TYPE_CHECKING:
    from django.contrib.admin.views.main import ChangeList
    from django.db.models import QuerySet

__all__ = ["AgentConfigAdmin"]

_SHOWN_INSTEAD: Final = {
    "allowed_tools": "shown_allowed_tools",
    "blocked_tools": "shown_blocked_tools",
    "base_url": "shown_base_url",
    "model_settings": "shown_model_settings",
}
"""What stands in for a field where it cannot be edited: Django would print the stored value."""
_STORED: Final = ("revision", "created_at", "updated_at")


class AgentConfigAdmin(AgentToolsPage):
    """Agents. Derive from this class to adapt it, and hand yours to ``mcp_client_app.admin.register``."""

    form = AgentConfigForm
    inlines = (AgentServerInline,)
    formfield_overrides = {  # noqa: RUF012 (Django's way)
        TextField: {"widget": AdminTextareaWidget(attrs={"rows": 4})},
    }
    list_display: tuple[str, ...] = (
        "name_and_label",
        "standing",
        "model",
        "server_names",
        "tool_count",
        "approval",
        "enabled",
    )
    list_filter = ("enabled", "approval", "servers")
    search_fields = ("name", "label", "description", "model")
    readonly_fields = (*_STORED, *_SHOWN_INSTEAD.values())
    filter_horizontal = ("groups",)
    actions = ("enable_agents", "disable_agents")
    fieldsets = (
        (None, {"fields": ("name", "label", "description", "enabled", "version")}),
        (
            _("Model"),
            {"fields": ("model", "base_url", "api_key_variable", "instructions", "model_settings")},
        ),
        (_("Tools"), {"fields": ("all_servers", "allowed_tools", "blocked_tools", "validation")}),
        (_("Approvals"), {"fields": ("approval", "approval_lifetime")}),
        (
            _("Limits"),
            {
                "classes": ("collapse",),
                "fields": ("max_rounds", "max_parallel_calls", "token_limit", "time_limit", "result_limit"),
            },
        ),
        (_("Access"), {"fields": ("groups",)}),
        (_("Stored"), {"classes": ("collapse",), "fields": _STORED}),
    )

    class Media:
        css = {"all": ["mcp_client_app/admin/mcp_client.css"]}  # noqa: RUF012 (Django's way)
        js = ("mcp_client_app/admin/secrets.js",)

    # List ------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentConfig]:
        return super().get_queryset(request).prefetch_related("agent_servers__server")

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        board = Board()
        changelist = super().get_changelist_instance(request)
        # All states at once: the columns would ask for each row.
        rows = list(changelist.result_list)
        for row in rows:
            row.board = board
        changelist.result_list = rows
        return changelist

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        # Filters in the address would let people who see no secret find it out letter by letter.
        if lookup.partition("__")[0] in ("base_url", "model_settings"):
            return False
        return super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    @admin.display(description=_("name"), ordering="name")
    def name_and_label(self, row: AgentConfig) -> str:
        """The name, and the label if it says more."""
        return f"{row.name} ({row.label})" if row.label and row.label != row.name else row.name

    @admin.display(description=_("state"))
    def standing(self, row: AgentConfig) -> SafeString:
        """Whether it can be used, and what an operator should look at."""
        if not row.enabled:
            return format_html('<span class="mcp-state mcp-off">{}</span>', _("disabled"))
        problems = agent_problems(row)
        if not problems:
            return format_html('<span class="mcp-state mcp-good">{}</span>', _("in order"))
        shown = format_html_join("", '<div class="mcp-reason">{}</div>', ((text,) for text in problems))
        return format_html('<span class="mcp-state mcp-busy">{}</span>{}', _("look at this"), shown)

    @admin.display(description=_("MCP servers"))
    def server_names(self, row: AgentConfig) -> str | SafeString:
        """Its servers, and how they stand."""
        board: Board = getattr(row, "board", None) or Board()
        chosen = sorted((each.server for each in row.agent_servers.all()), key=lambda server: server.name)
        overviews = [(server.name, board.of(server)) for server in chosen]
        shown = format_html_join(
            "",
            '<div><span class="mcp-state mcp-{}">{}</span> <span class="mcp-quiet">{}</span></div>',
            ((overview.tone, name, overview.label) for name, overview in overviews),
        )
        return format_html("{}<div>{}</div>", shown, _("all servers")) if row.all_servers else shown or "-"

    @admin.display(description=_("tools"))
    def tool_count(self, row: AgentConfig) -> str:
        """How many tools a model would see, as far as this process knows."""
        selection = self.selection_of(row)
        return "-" if selection is None else str(len(selection))

    @admin.action(description=_("Enable selected agents"), permissions=["change"])
    def enable_agents(self, request: HttpRequest, queryset: QuerySet[AgentConfig]) -> None:
        """List action."""
        self._set(request, queryset, is_on=True)

    @admin.action(description=_("Disable selected agents"), permissions=["change"])
    def disable_agents(self, request: HttpRequest, queryset: QuerySet[AgentConfig]) -> None:
        """List action."""
        self._set(request, queryset, is_on=False)

    def _set(self, request: HttpRequest, rows: QuerySet[AgentConfig], *, is_on: bool) -> None:
        done = _("Enabled.") if is_on else _("Disabled.")
        for row in rows:
            try:
                services.update_agent(row.name, user=request.user, enabled=is_on)
            except (MCPClientError, ValidationError) as error:
                self.message_user(request, f"{row.name}: {_told(error)}", messages.ERROR)
            else:
                self.message_user(request, f"{row.name}: {done}", messages.SUCCESS)
                self.log_change(request, row, str(done))

    # Form ------------------------------------------------------------------------------

    def get_form(
        self, request: HttpRequest, obj: AgentConfig | None = None, change: bool = False, **kwargs: Any
    ) -> type[AgentConfigForm]:
        kwargs["form"] = type(self.form.__name__, (self.form,), {"user": request.user})
        form: type[AgentConfigForm] = super().get_form(request, obj, change, **kwargs)  # type: ignore[assignment]
        return form

    def get_readonly_fields(self, request: HttpRequest, obj: AgentConfig | None = None) -> Any:
        # Runs, audit rows and addresses refer to the name.
        return (*super().get_readonly_fields(request, obj), *(("name",) if obj is not None else ()))

    def get_fieldsets(self, request: HttpRequest, obj: AgentConfig | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None:
            return [(title, options) for title, options in fieldsets if options["fields"] != _STORED]
        if self.has_change_permission(request, obj):
            return fieldsets
        return [(title, {**options, "fields": _shown(options["fields"])}) for title, options in fieldsets]

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: AgentConfig | None = None,
    ) -> HttpResponse:
        if obj is not None:
            context["problems"] = [*agent_problems(obj), *_provider_problems(obj)]
            context["tools_url"] = self.page_url("tools", obj)
        return super().render_change_form(request, context, add, change, form_url, obj)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except (MCPClientError, ValidationError) as error:
            # The form has judged already: only a race or a permission that has just gone leads here.
            self.message_user(request, _told(error), messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    # Saving and deleting ---------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: AgentConfig, form: Any, change: bool) -> None:
        services.save_agent(obj, user=request.user)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        rows: list[AgentServer] = formset.save(commit=False)
        for row in formset.deleted_objects:
            remove_agent_server(row, user=request.user)
        for row in rows:
            save_agent_server(row, user=request.user)

    def delete_model(self, request: HttpRequest, obj: AgentConfig) -> None:
        services.remove_agent(obj.name, user=request.user)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[AgentConfig]) -> None:
        for row in queryset:
            services.remove_agent(row.name, user=request.user)

    # What cannot be edited -------------------------------------------------------------

    @admin.display(description=_("allowed tools"))
    def shown_allowed_tools(self, row: AgentConfig) -> Any:
        """One pattern a line."""
        return shown_patterns(row.allowed_tools)

    @admin.display(description=_("blocked tools"))
    def shown_blocked_tools(self, row: AgentConfig) -> str | SafeString:
        """One pattern a line."""
        return lines(row.blocked_tools)

    @admin.display(description=_("base URL"))
    def shown_base_url(self, row: AgentConfig) -> str:
        """Scheme and host."""
        return visible_url(row.base_url) or "-"

    @admin.display(description=_("model settings"))
    def shown_model_settings(self, row: AgentConfig) -> str | SafeString:
        """Null for what sounds secret."""
        return json_block(without_secrets_json(row.model_settings)) if row.model_settings else "-"


def _shown(names: Any) -> list[str]:
    return [_SHOWN_INSTEAD.get(name, name) for name in names if name != "version"]


def _told(error: MCPClientError | ValidationError) -> str:
    return " ".join(messages_of(error)) if isinstance(error, ValidationError) else str(error)


def _provider_problems(row: AgentConfig) -> list[str]:
    """Ask pydantic-ai, if it is there; it is loaded only for the form of an agent with a model."""
    if not row.model or find_spec("pydantic_ai") is None:
        return []
    problem: str | None = requirements.load("known_models").provider_problem(row.model)
    return [] if problem is None else [problem]
