"""What can be done to servers at the press of a button: one at a time, or several from the list.

No verb keeps a request waiting for more than ``patience`` seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_client_app import services
from mcp_client_app.admin.bounded import Outcome, Work, run_bounded
from mcp_client_app.admin.overview import LABELS
from mcp_client_app.admin.pages import ServerPages
from mcp_client_app.datatypes import ConnectionState, ServerStatus
from mcp_client_app.exceptions import MCPClientError, UnknownServerError
from mcp_client_app.models import ServerConfig
from mcp_client_app.services import TestReport

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.urls import URLPattern

__all__ = ["VERBS", "ServerVerbs", "Verb"]


@dataclass(frozen=True, kw_only=True)
class Verb:
    """Something that can be done to a server."""

    name: str
    label: Any
    run: Callable[..., Any]
    """The service: takes the server's name, ``user`` and ``wait``."""
    done: Callable[[Any], tuple[int, str]]
    """Turns what the service returns into level and text of a message."""
    pending: Any
    """What to say if it takes long."""


def _disconnect(name: str, *, user: Any, wait: float) -> ServerStatus:
    # Ends within the time limit for closing; a longer one goes on in its thread.
    return services.disconnect(name, user=user)


def _standing(status: ServerStatus) -> tuple[int, str]:
    if not status.is_ready:
        return messages.WARNING, gettext("%(state)s. %(reason)s") % {
            "state": LABELS[status.state],
            "reason": status.reason,
        }
    counts = {"tools": status.tools, "resources": status.resources, "prompts": status.prompts}
    return messages.SUCCESS, (
        gettext("ready: %(tools)d tools, %(resources)d resources, %(prompts)d prompts.") % counts
    )


def _disconnected(status: ServerStatus) -> tuple[int, str]:
    return messages.SUCCESS, gettext("disconnected in all processes, until somebody connects it.")


def _tested(report: TestReport) -> tuple[int, str]:
    steps = [
        f"{'✓' if step.ok else '✗'} {step.name}" + (f" ({step.detail})" if step.detail else "")
        for step in report.steps
    ]
    verdict = gettext("the test succeeded:") if report.ok else gettext("the test failed:")
    return messages.SUCCESS if report.ok else messages.ERROR, f"{verdict} {', '.join(steps)}"


_STILL: Final = _("still at it after %(seconds)d seconds; its state will tell.")

VERBS: Final = {
    verb.name: verb
    for verb in (
        Verb(
            name="connect",
            label=_("Connect"),
            run=services.connect,
            done=_standing,
            pending=_("still connecting after %(seconds)d seconds; its state will tell."),
        ),
        Verb(
            name="disconnect",
            label=_("Disconnect"),
            run=_disconnect,
            done=_disconnected,
            pending=_STILL,
        ),
        Verb(name="refresh", label=_("Refresh"), run=services.refresh, done=_standing, pending=_STILL),
        Verb(name="test", label=_("Test"), run=services.test_server, done=_tested, pending=_STILL),
    )
}


class ServerVerbs(ServerPages):
    """Buttons and list actions."""

    patience = 10.0
    """Seconds that a request waits for servers."""

    actions: tuple[str, ...] = (
        "connect_servers",
        "disconnect_servers",
        "refresh_servers",
        "test_servers",
        "enable_servers",
        "disable_servers",
    )

    def get_urls(self) -> list[URLPattern]:
        own = [
            self.page_path(f"<path:object_id>/{name}/", partial(self.verb_view, verb=verb), name)
            for name, verb in VERBS.items()
        ]
        return [*own, *super().get_urls()]

    def verb_view(self, request: HttpRequest, object_id: str, *, verb: Verb) -> HttpResponse:
        """Do what a button says, then show the page again that it is on."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = self.server_or_404(request, object_id)
        if not self.has_connect_permission(request):
            raise PermissionDenied
        self._do(request, verb, [row])
        return HttpResponseRedirect(
            self.page_url("offers" if request.POST.get("back") == "offers" else "change", row)
        )

    @admin.action(description=_("Connect selected MCP servers"), permissions=["connect"])
    def connect_servers(self, request: HttpRequest, queryset: QuerySet[ServerConfig]) -> None:
        """List action."""
        self._do(request, VERBS["connect"], queryset)

    @admin.action(description=_("Disconnect selected MCP servers"), permissions=["connect"])
    def disconnect_servers(self, request: HttpRequest, queryset: QuerySet[ServerConfig]) -> None:
        """List action."""
        self._do(request, VERBS["disconnect"], queryset)

    @admin.action(description=_("Refresh the lists of selected MCP servers"), permissions=["connect"])
    def refresh_servers(self, request: HttpRequest, queryset: QuerySet[ServerConfig]) -> None:
        """List action."""
        self._do(request, VERBS["refresh"], queryset)

    @admin.action(description=_("Test selected MCP servers"), permissions=["connect"])
    def test_servers(self, request: HttpRequest, queryset: QuerySet[ServerConfig]) -> None:
        """List action."""
        self._do(request, VERBS["test"], queryset)

    @admin.action(description=_("Enable selected MCP servers"), permissions=["change"])
    def enable_servers(self, request: HttpRequest, queryset: QuerySet[ServerConfig]) -> None:
        """List action."""
        self._set(request, queryset, services.enable_server, _("Enabled."))

    @admin.action(description=_("Disable selected MCP servers"), permissions=["change"])
    def disable_servers(self, request: HttpRequest, queryset: QuerySet[ServerConfig]) -> None:
        """List action."""
        self._set(request, queryset, services.disable_server, _("Disabled."))

    # Doing -----------------------------------------------------------------------------

    def _do(self, request: HttpRequest, verb: Verb, rows: Iterable[ServerConfig]) -> None:
        by_name = {row.name: row for row in rows}
        outcomes = run_bounded({name: _work(verb, name, request.user) for name in by_name}, self.patience)
        for name, outcome in outcomes.items():
            level, text = self._told(verb, outcome)
            self.message_user(request, f"{name}: {text}", level)
            if outcome.error is None:
                self.log_change(request, by_name[name], str(verb.label))

    def _told(self, verb: Verb, outcome: Outcome[Any]) -> tuple[int, str]:
        if outcome.is_pending or _still_connects(outcome.value):
            return messages.WARNING, str(verb.pending) % {"seconds": self.patience}
        if isinstance(outcome.error, UnknownServerError):
            return messages.ERROR, gettext("there is no such server, or it is disabled.")
        if outcome.error is not None:
            return messages.ERROR, str(outcome.error)
        return verb.done(outcome.value)

    def _set(
        self,
        request: HttpRequest,
        rows: Iterable[ServerConfig],
        change: Callable[..., ServerConfig],
        done: Any,
    ) -> None:
        for row in rows:
            try:
                change(row.name, user=request.user)
            except (MCPClientError, ValidationError) as error:
                text = " ".join(error.messages) if isinstance(error, ValidationError) else str(error)
                self.message_user(request, f"{row.name}: {text}", messages.ERROR)
            else:
                self.message_user(request, f"{row.name}: {done}", messages.SUCCESS)
                self.log_change(request, row, str(done))


def _work(verb: Verb, name: str, user: Any) -> Work[Any]:
    return lambda left: verb.run(name, user=user, wait=left)


def _still_connects(value: Any) -> bool:
    return isinstance(value, ServerStatus) and value.state is ConnectionState.CONNECTING
