"""What the further pages of an admin have in common: their URLs, their frame, their permissions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.core.exceptions import BadRequest, PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse

from mcp_client_app.models import ServerConfig
from mcp_client_app.services.permissions import CONNECT, RUN_CODE, VIEW, may

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet
    from django.urls import URLPattern

    AnyModelAdmin = admin.ModelAdmin[Any]
else:
    AnyModelAdmin = admin.ModelAdmin

__all__ = ["Pages", "ServerPages"]


class Pages(AnyModelAdmin):
    """A ``ModelAdmin`` with further pages."""

    # Actions ---------------------------------------------------------------------------

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Refuse a selection that no page of ours has sent: Django would fail on its keys with a 500."""
        try:
            for key in request.POST.getlist(ACTION_CHECKBOX_NAME):
                self.opts.pk.clean(key, None)
        except ValidationError as error:
            raise BadRequest("Something is selected that cannot be a row.") from error
        return super().response_action(request, queryset, *args, **kwargs)

    # URLs ------------------------------------------------------------------------------

    def page_path(self, route: str, view: Callable[..., HttpResponse], page: str) -> URLPattern:
        """Return the URL pattern of a further page, behind the site's login."""
        return path(route, self.admin_site.admin_view(view), name=self._url_name(page))

    def page_url(self, page: str, row: Model | None = None) -> str:
        """Return the address of a page of this admin."""
        args = () if row is None else (row.pk,)
        return reverse(f"admin:{self._url_name(page)}", args=args, current_app=self.admin_site.name)

    def _url_name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"

    # Pages -----------------------------------------------------------------------------

    def row_or_404(self, request: HttpRequest, object_id: str) -> Any:
        """Return the row of a page.

        Raises:
            Http404: There is none.
            PermissionDenied: The user may not see such rows.
        """
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        return row

    def render_page(self, request: HttpRequest, template: str, **context: Any) -> TemplateResponse:
        """Render a further page within the frame of the site."""
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            f"admin/mcp_client_app/{self.opts.model_name}/{template}",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "media": self.media,
                "has_view_permission": self.has_view_permission(request),
                **context,
            },
        )


class ServerPages(Pages):
    """A ``ModelAdmin`` for servers with further pages."""

    def has_connect_permission(self, request: HttpRequest) -> bool:
        """Say whether the user may connect and disconnect; Django asks before it offers such an action."""
        return may(request.user, CONNECT)

    def has_import_permission(self, request: HttpRequest) -> bool:
        """Say whether the user may import: that both adds and changes."""
        return self.has_add_permission(request) and self.has_change_permission(request)

    def has_export_permission(self, request: HttpRequest) -> bool:
        """Say whether the user may export; to Django who may change may view, to the service not."""
        return may(request.user, VIEW)

    def has_change_permission(self, request: HttpRequest, obj: ServerConfig | None = None) -> bool:
        if not super().has_change_permission(request, obj):
            return False
        if obj is None:
            return True
        return not obj.is_read_only and (not obj.runs_code or may(request.user, RUN_CODE))

    def has_delete_permission(self, request: HttpRequest, obj: ServerConfig | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or not obj.is_read_only)

    def server_or_404(self, request: HttpRequest, object_id: str) -> ServerConfig:
        """Return the server of a page; see ``row_or_404``."""
        row: ServerConfig = self.row_or_404(request, object_id)
        return row
