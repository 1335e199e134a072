"""How servers stand over all processes of the site, fit to be shown; looking never connects anything.

This process is asked, the others have left rows. If neither can tell, the state is unknown:
no page depends on the manager.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_client_app import services
from mcp_client_app.datatypes import SHARED, ConnectionState, ServerStatus
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import ServerConfig, ServerState
from mcp_client_app.moments import as_kept

__all__ = ["LABELS", "Board", "Overview", "Standing", "state_badge", "tone_of"]

DISABLED: Final = "disabled"
UNKNOWN: Final = "unknown"
LABELS: Final[dict[str, Any]] = dict(ServerState.STATES) | {
    DISABLED: _("disabled"),
    UNKNOWN: _("unknown"),
}
_TONES: Final[dict[str, str]] = {
    ConnectionState.READY: "good",
    ConnectionState.CONNECTING: "busy",
    ConnectionState.IDLE: "calm",
    ConnectionState.LOST: "bad",
    ConnectionState.BACKING_OFF: "bad",
    ConnectionState.FAILED: "bad",
    ConnectionState.NEEDS_AUTH: "bad",
}
_ORDER: Final = (
    ConnectionState.FAILED,
    ConnectionState.NEEDS_AUTH,
    ConnectionState.BACKING_OFF,
    ConnectionState.LOST,
    ConnectionState.CONNECTING,
    ConnectionState.READY,
    ConnectionState.STOPPED,
    ConnectionState.IDLE,
)
"""Trouble first: one process's trouble must not hide behind the others."""


def tone_of(state: str) -> str:
    """Return the CSS class of a state; the word always stands beside the colour."""
    return _TONES.get(state, "off")


def age(since: datetime | None) -> str:
    """Return for how long a state has lasted, in words."""
    if since is None:
        return ""
    if timezone.now() - as_kept(since) < timedelta(minutes=1):
        return gettext("just now")
    return gettext("for %(time)s") % {"time": timesince(since)}


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How a server stands in one process."""

    worker: str
    is_here: bool = False
    state: str
    reason: str = ""
    since: datetime | None = None
    retry_at: datetime | None = None
    tools: int = 0

    @property
    def label(self) -> Any:
        """The state in words."""
        return LABELS.get(self.state, self.state)

    @property
    def tone(self) -> str:
        """The CSS class of the state."""
        return tone_of(self.state)

    @property
    def age(self) -> str:
        """For how long, in words."""
        return age(self.since)


@dataclass(frozen=True, kw_only=True)
class Overview:
    """How a server stands, all in all."""

    state: str
    reason: str = ""
    since: datetime | None = None
    standings: tuple[Standing, ...] = field(default=())
    """One for each process that has anything to tell; this one first."""
    status: ServerStatus | None = None
    """What this process knows."""

    @property
    def label(self) -> Any:
        """The state in words."""
        return LABELS.get(self.state, self.state)

    @property
    def tone(self) -> str:
        """The CSS class of the state."""
        return tone_of(self.state)

    @property
    def age(self) -> str:
        """For how long, in words."""
        return age(self.since)

    @property
    def same(self) -> int:
        """How many processes are in this state."""
        return sum(standing.state == self.state for standing in self.standings)

    @property
    def tools(self) -> int:
        """How many tools the server offers, as far as any process knows."""
        return max((standing.tools for standing in self.standings), default=0)


class Board:
    """What is known about all servers at this moment: two queries, however many servers there are.

    Making one also brings the rows up to date with settings and file.
    """

    def __init__(self) -> None:
        self._statuses = _statuses()
        self._states: dict[int, list[ServerState]] = {}
        for state in services.worker_states():
            if state.principal == SHARED:
                self._states.setdefault(state.server_id, []).append(state)

    def of(self, row: ServerConfig) -> Overview:
        """Return how a server stands."""
        status = self._statuses.get(row.name) if self._statuses is not None else None
        return _overview(row, status, self._states.get(row.pk, []))


def state_badge(overview: Overview) -> str:
    """Return the state as HTML: dot and word, reason, age, and the processes if there are several."""
    return render_to_string("admin/mcp_client_app/includes/state.html", {"overview": overview})


def _statuses() -> dict[str, ServerStatus] | None:
    try:
        return {status.name: status for status in services.server_statuses()}
    except (MCPClientError, ImproperlyConfigured, ImportError):
        # Said by a system check, and by whoever uses a server: not the business of a page.
        return None


def _overview(row: ServerConfig, status: ServerStatus | None, states: list[ServerState]) -> Overview:
    here = (socket.gethostname()[:255], os.getpid())
    others = [state for state in states if status is None or (state.worker.host, state.worker.pid) != here]
    standings = [_standing_there(state) for state in others]
    if status is not None and (not others or _has_something_to_tell(status)):
        standings.insert(0, _standing_here(status))
    worst = min(standings, key=_rank, default=None)
    if not row.enabled:
        return Overview(state=DISABLED, standings=tuple(standings), status=status)
    if worst is None:
        return Overview(state=ConnectionState.STOPPED if row.stopped else UNKNOWN, status=status)
    return Overview(
        state=worst.state, reason=worst.reason, since=worst.since, standings=tuple(standings), status=status
    )


def _rank(standing: Standing) -> int:
    return _ORDER.index(ConnectionState(standing.state)) if standing.state in _ORDER else len(_ORDER)


def _has_something_to_tell(status: ServerStatus) -> bool:
    return status.state is not ConnectionState.IDLE or status.connects > 0


def _standing_here(status: ServerStatus) -> Standing:
    return Standing(
        worker=f"{socket.gethostname()}:{os.getpid()}",
        is_here=True,
        state=status.state.value,
        reason=status.reason,
        since=status.since,
        retry_at=status.retry_at,
        tools=status.tools,
    )


def _standing_there(state: ServerState) -> Standing:
    return Standing(
        worker=str(state.worker),
        state=state.state,
        reason=state.reason,
        since=state.since,
        retry_at=state.retry_at,
        tools=state.tools,
    )
