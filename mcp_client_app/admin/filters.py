"""Filters of the lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext_lazy as _

from mcp_client_app.datatypes import SHARED
from mcp_client_app.models import ServerConfig, ServerState

if TYPE_CHECKING:
    from django.http import HttpRequest

__all__ = ["StateFilter"]


class StateFilter(admin.SimpleListFilter):
    """Servers that any live process has reported in a state."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [*ServerState.STATES, ("none", _("not used by any process"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ServerConfig]) -> QuerySet[ServerConfig]:
        value = self.value()
        if value is None:
            return queryset
        states = ServerState.objects.current().filter(server=OuterRef("pk"), principal=SHARED)
        if value == "none":
            return queryset.filter(~Exists(states))
        return queryset.filter(Exists(states.filter(state=value)))
