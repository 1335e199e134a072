"""The admin of servers: the list and the form. Further pages and buttons are in modules of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminTextareaWidget
from django.core.exceptions import ValidationError
from django.db.models import TextField
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from mcp_client_app import services
from mcp_client_app.admin.filters import StateFilter
from mcp_client_app.admin.forms import FIELDS_BY_KIND, KINDS, ServerConfigForm
from mcp_client_app.admin.importing import ImportExport
from mcp_client_app.admin.masking import SECRET_FIELDS, target
from mcp_client_app.admin.offers import OffersPage
from mcp_client_app.admin.overview import Board, Overview, state_badge
from mcp_client_app.admin.presentation import lines, secret_list
from mcp_client_app.admin.verbs import VERBS, ServerVerbs
from mcp_client_app.configuration.secrets import visible_url
from mcp_client_app.datatypes import Transport
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import ServerConfig, ServerState
from mcp_client_app.models.importing import messages as messages_of

if TYPE_CHECKING:
    from django.contrib.admin.views.main import ChangeList
    from django.db.models import Model, QuerySet

__all__ = ["ServerConfigAdmin"]

_SHOWN_INSTEAD: Final = {
    "args": "shown_args",
    "env": "shown_env",
    "headers": "shown_headers",
    "url": "shown_url",
    "inherited_names": "shown_inherited_names",
    "allowed_tools": "shown_allowed_tools",
    "blocked_tools": "shown_blocked_tools",
    "strict": "shown_strict",
}
"""What stands in for a field where it cannot be edited: Django would print the stored value."""


_SHORT: Final[dict[str, Any]] = {
    Transport.STREAMABLE_HTTP: "HTTP",
    Transport.SSE: "SSE",
    Transport.IN_PROCESS: _("in process"),
}


class ServerConfigAdmin(ServerVerbs, OffersPage, ImportExport):
    """Servers. Derive from this class to adapt it, and hand yours to ``mcp_client_app.admin.register``."""

    form = ServerConfigForm
    formfield_overrides = {  # noqa: RUF012 (Django's way)
        TextField: {"widget": AdminTextareaWidget(attrs={"rows": 3})},
    }
    list_display: tuple[str, ...] = (
        "name_and_label",
        "state",
        "tool_count",
        "target",
        "short_transport",
        "enabled",
        "source",
    )
    list_filter = (StateFilter, "transport", "enabled", "source")
    search_fields = ("name", "label", "description", "command")
    readonly_fields = ("state", "source", "revision", "created_at", "updated_at", *_SHOWN_INSTEAD.values())
    actions = (*ServerVerbs.actions, *ImportExport.actions)
    fieldsets = (
        (None, {"fields": ("name", "state", "label", "description", "transport", "enabled", "version")}),
        (_("Local process"), {"classes": ("mcp-kind-process",), "fields": FIELDS_BY_KIND["process"]}),
        (_("HTTP"), {"classes": ("mcp-kind-http",), "fields": FIELDS_BY_KIND["http"]}),
        (
            _("Server in this process"),
            {"classes": ("mcp-kind-in_process",), "fields": FIELDS_BY_KIND["in_process"]},
        ),
        (_("Tools"), {"fields": ("allowed_tools", "blocked_tools")}),
        (
            _("Limits"),
            {
                "classes": ("collapse",),
                "fields": (
                    "connect_timeout",
                    "list_timeout",
                    "call_timeout",
                    "shutdown_timeout",
                    "idle_timeout",
                    "max_concurrency",
                    "max_result_size",
                ),
            },
        ),
        (
            _("Connection"),
            {
                "classes": ("collapse",),
                "fields": ("mode", "link", "auto_reconnect", "trust_annotations", "strict"),
            },
        ),
        (
            _("Stored"),
            {"classes": ("collapse",), "fields": ("source", "revision", "created_at", "updated_at")},
        ),
    )

    class Media:
        css = {"all": ["mcp_client_app/admin/mcp_client.css"]}  # noqa: RUF012 (Django's way)
        js = ("mcp_client_app/admin/secrets.js", "mcp_client_app/admin/servers.js")

    # List ------------------------------------------------------------------------------

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        board = Board()
        changelist = super().get_changelist_instance(request)
        # All states at once: the columns would ask for each row.
        rows = list(changelist.result_list)
        for row in rows:
            row.overview = board.of(row)
        changelist.result_list = rows
        return changelist

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = {
            "may_import": self.has_import_permission(request),
            "may_export": self.has_export_permission(request),
            "import_url": self.page_url("import"),
            "export_url": self.page_url("export"),
        }
        return super().changelist_view(request, context | (extra_context or {}))

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        # Filters in the address would let people who see no secret find it out letter by letter.
        if lookup.partition("__")[0] in SECRET_FIELDS:
            return False
        return super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    @admin.display(description=_("name"), ordering="name")
    def name_and_label(self, row: ServerConfig) -> str:
        """The name, and the label if it says more."""
        return f"{row.name} ({row.label})" if row.label and row.label != row.name else row.name

    @admin.display(description=_("state"))
    def state(self, row: ServerConfig) -> str:
        """How the server stands."""
        return state_badge(_overview_of(row)) if row.pk else "-"

    @admin.display(description=_("tools"))
    def tool_count(self, row: ServerConfig) -> str:
        """How many tools the server offers, as far as known."""
        return str(_overview_of(row).tools or "-")

    @admin.display(description=_("transport"), ordering="transport")
    def short_transport(self, row: ServerConfig) -> Any:
        """The transport in a word."""
        return _SHORT.get(row.transport, row.transport)

    @admin.display(description=_("target"))
    def target(self, row: ServerConfig) -> str:
        """Command, key, or where it is."""
        return target(row)

    # Form ------------------------------------------------------------------------------

    def get_form(
        self, request: HttpRequest, obj: ServerConfig | None = None, change: bool = False, **kwargs: Any
    ) -> type[ServerConfigForm]:
        kwargs["form"] = type(self.form.__name__, (self.form,), {"user": request.user})
        form: type[ServerConfigForm] = super().get_form(request, obj, change, **kwargs)  # type: ignore[assignment]
        return form

    def get_readonly_fields(self, request: HttpRequest, obj: ServerConfig | None = None) -> Any:
        # States, agents and the names of tools refer to the name.
        return (*super().get_readonly_fields(request, obj), *(("name",) if obj is not None else ()))

    def get_fieldsets(self, request: HttpRequest, obj: ServerConfig | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None:
            left_out = ("state", "source", "revision", "created_at", "updated_at")
            return _without_fields(fieldsets, left_out)
        if self.has_change_permission(request, obj):
            return fieldsets
        kind = f"mcp-kind-{KINDS.get(obj.transport)}"
        shown = [
            (title, {**options, "fields": [_shown(name) for name in options["fields"]]})
            for title, options in fieldsets
            if not any(each.startswith("mcp-kind-") and each != kind for each in options.get("classes", ()))
        ]
        return _without_fields(shown, ("version",))

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: ServerConfig | None = None,
    ) -> HttpResponse:
        if obj is not None:
            context["verbs"] = VERBS.values() if self.has_connect_permission(request) else ()
            context["offers_url"] = self.page_url("offers", obj)
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
            text = " ".join(messages_of(error)) if isinstance(error, ValidationError) else str(error)
            self.message_user(request, text, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    # Saving and deleting ---------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: ServerConfig, form: Any, change: bool) -> None:
        services.save_server(obj, user=request.user)

    def delete_model(self, request: HttpRequest, obj: ServerConfig) -> None:
        services.remove_server(obj.name, user=request.user)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ServerConfig]) -> None:
        for row in queryset:
            services.remove_server(row.name, user=request.user)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        to_delete, counts, perms_needed, protected = super().get_deleted_objects(objs, request)
        # Nobody may delete states by hand; those of a server go with it.
        return to_delete, counts, set(perms_needed) - {_verbose_name(ServerState)}, protected

    # What cannot be edited -------------------------------------------------------------

    @admin.display(description=_("arguments"))
    def shown_args(self, row: ServerConfig) -> str | SafeString:
        """Arguments."""
        return lines(row.args)

    @admin.display(description=_("environment"))
    def shown_env(self, row: ServerConfig) -> str | SafeString:
        """Names, and values that are references."""
        return secret_list(row.env)

    @admin.display(description=_("headers"))
    def shown_headers(self, row: ServerConfig) -> str | SafeString:
        """Names, and values that are references."""
        return secret_list(row.headers)

    @admin.display(description=_("URL"))
    def shown_url(self, row: ServerConfig) -> str:
        """Scheme and host."""
        return visible_url(row.url) or "-"

    @admin.display(description=_("further inherited variables"))
    def shown_inherited_names(self, row: ServerConfig) -> str | SafeString:
        """One name a line."""
        return lines(row.inherited_names)

    @admin.display(description=_("allowed tools"))
    def shown_allowed_tools(self, row: ServerConfig) -> Any:
        """One pattern a line."""
        return _("all") if row.allowed_tools is None else lines(row.allowed_tools, empty=str(_("none")))

    @admin.display(description=_("blocked tools"))
    def shown_blocked_tools(self, row: ServerConfig) -> str | SafeString:
        """One pattern a line."""
        return lines(row.blocked_tools)

    @admin.display(description=_("strict options"))
    def shown_strict(self, row: ServerConfig) -> str | SafeString:
        """One name a line."""
        return lines(row.strict)


def _overview_of(row: ServerConfig) -> Overview:
    """Return what the list has found out already, or ask."""
    known: Overview | None = getattr(row, "overview", None)
    return known if known is not None else Board().of(row)


def _shown(name: Any) -> Any:
    return _SHOWN_INSTEAD.get(name, name)


def _without_fields(fieldsets: Any, names: tuple[str, ...]) -> list[Any]:
    kept = [
        (title, {**options, "fields": [name for name in options["fields"] if name not in names]})
        for title, options in fieldsets
    ]
    return [(title, options) for title, options in kept if options["fields"]]


def _verbose_name(model: type[Model]) -> Any:
    return model._meta.verbose_name  # noqa: SLF001 (documented by Django)
