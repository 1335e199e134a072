"""Servers in from a pasted or uploaded file, with a preview and a choice; and out again.

The text holds secrets, so that it is not sent back to the browser between preview and
import: it waits in the session. Where the session itself lives in the browser, the text
has to be given again.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.sessions.backends import signed_cookies
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext_lazy as _

from mcp_client_app import services
from mcp_client_app.admin.pages import ServerPages
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models import ServerConfig
from mcp_client_app.services import ImportReport

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.urls import URLPattern

__all__ = ["MAX_IMPORT_SIZE", "ImportExport", "ImportForm"]

MAX_IMPORT_SIZE: Final = 1_000_000
"""Bytes; a thousand servers take a third of that."""
_WAITING: Final = "mcp_client_app.import"


class ImportForm(forms.Form):
    """The text of an ``mcp.json``, pasted or uploaded."""

    text = forms.CharField(
        label=_("Paste"),
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 14, "class": "vLargeTextField mcp-lines", "spellcheck": "false"}
        ),
        help_text=_("Any dialect: Claude, Cursor, VS Code, Windsurf, Gemini and others; comments are fine."),
    )
    file = forms.FileField(label=_("or upload"), required=False, allow_empty_file=True)

    def clean(self) -> dict[str, Any]:
        """Make ``text`` what was given, whichever way."""
        cleaned = super().clean() or self.cleaned_data
        pasted, uploaded = cleaned.get("text", ""), cleaned.get("file")
        if bool(pasted.strip()) == (uploaded is not None):
            raise ValidationError(_("Paste a text or choose a file."), code="source")
        size = uploaded.size if uploaded is not None else len(pasted.encode("utf-8", "replace"))
        if size > MAX_IMPORT_SIZE:
            raise ValidationError(
                _("This is larger than %(limit)s."),
                code="size",
                params={"limit": filesizeformat(MAX_IMPORT_SIZE)},
            )
        if uploaded is not None:
            try:
                cleaned["text"] = uploaded.read().decode("utf-8-sig")
            except UnicodeDecodeError:
                raise ValidationError(
                    _("The file is not encoded as UTF-8; save it as UTF-8."), code="encoding"
                ) from None
        return cleaned


class ImportExport(ServerPages):
    """Adds the pages for import, and the export of all or of selected servers."""

    actions: tuple[str, ...] = ("export_servers",)

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page_path("import/", self.import_view, "import"),
            self.page_path("export/", self.export_view, "export"),
            *super().get_urls(),
        ]

    # Import ----------------------------------------------------------------------------

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for a text, show what it would do, do what was chosen."""
        if not self.has_import_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return self._ask(request, ImportForm())
        if "chosen" in request.POST:
            return self._import(request)
        form = ImportForm(request.POST, request.FILES)
        if not form.is_valid():
            return self._ask(request, form)
        return self._preview(request, form, form.cleaned_data["text"])

    def _ask(self, request: HttpRequest, form: ImportForm) -> HttpResponse:
        return self.render_page(
            request, "import.html", title=_("Import MCP servers"), form=form, step="ask", has_file_field=True
        )

    def _preview(self, request: HttpRequest, form: ImportForm, text: str) -> HttpResponse:
        try:
            report = services.import_servers(text, user=request.user, dry_run=True)
        except ConfigurationError as error:
            form.add_error(None, str(error))
            return self._ask(request, form)
        ticket = _put_aside(request, text)
        return self.render_page(
            request,
            "import.html",
            title=_("Import MCP servers: preview"),
            step="preview",
            entries=report.entries,
            importable=sum(entry.action in ("create", "update") for entry in report.entries),
            ticket=ticket,
            form=ImportForm() if not ticket else None,
        )

    def _import(self, request: HttpRequest) -> HttpResponse:
        text = _take_up(request)
        if text is None:
            form = ImportForm(request.POST, request.FILES)
            if not form.is_valid():
                self.message_user(
                    request, _("The text is not at hand any more; give it again."), messages.WARNING
                )
                return HttpResponseRedirect(self.page_url("import"))
            text = form.cleaned_data["text"]
        names = request.POST.getlist("only")
        if not names:
            self.message_user(request, _("No server was chosen; nothing was imported."), messages.WARNING)
            return HttpResponseRedirect(self.page_url("import"))
        report = services.import_servers(text, user=request.user, only=names)
        self._log_import(request, report)
        return self.render_page(
            request,
            "import.html",
            title=_("Import MCP servers: result"),
            step="result",
            entries=report.entries,
            addresses=self._addresses(report),
        )

    def _log_import(self, request: HttpRequest, report: ImportReport) -> None:
        rows = {
            row.name: row for row in ServerConfig.objects.filter(name__in=report.created + report.updated)
        }
        for name in report.created:
            self.log_addition(request, rows[name], "Imported.")
        for name in report.updated:
            self.log_change(request, rows[name], "Imported.")

    def _addresses(self, report: ImportReport) -> dict[str, str]:
        names = [entry.name for entry in report.entries if entry.error is None]
        return {row.name: self.page_url("change", row) for row in ServerConfig.objects.filter(name__in=names)}

    # Export ----------------------------------------------------------------------------

    def export_view(self, request: HttpRequest) -> HttpResponse:
        """Send all stored servers as a file; what the user may not see is not in it."""
        if not self.has_export_permission(request):
            raise PermissionDenied
        return _download(services.export_servers(user=request.user))

    @admin.action(description=_("Export selected MCP servers"), permissions=["export"])
    def export_servers(self, request: HttpRequest, queryset: QuerySet[ServerConfig]) -> HttpResponse:
        """List action."""
        names = list(queryset.values_list("name", flat=True))
        return _download(services.export_servers(names, user=request.user))


def _download(document: dict[str, Any]) -> HttpResponse:
    return HttpResponse(
        json.dumps(document, indent=2, ensure_ascii=False) + "\n",
        content_type="application/json",
        headers={"Content-Disposition": 'attachment; filename="mcp.json"', "Cache-Control": "no-store"},
    )


def _put_aside(request: HttpRequest, text: str) -> str:
    """Keep the text until it is imported; returns its ticket, or nothing if it cannot be kept in secret."""
    if isinstance(request.session, signed_cookies.SessionStore):
        return ""
    ticket = secrets.token_urlsafe(12)
    request.session[_WAITING] = {"ticket": ticket, "text": text}
    return ticket


def _take_up(request: HttpRequest) -> str | None:
    """Return the text that the ticket is for, once."""
    waiting = request.session.get(_WAITING)
    if not waiting or waiting["ticket"] != request.POST.get("ticket"):
        return None
    del request.session[_WAITING]
    return str(waiting["text"])
