"""Tells readers in this process that a run has gone on.

What happens here is told at once. What other processes write is found by one thread, which looks
for all runs that are watched with one query, and is there only while somebody watches. Nobody is
told what has happened, except of events that pass without being stored: whoever hears of the others
reads them from the table, in order.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, InterfaceError, close_old_connections, connections, router
from django.utils import timezone

from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentRun
from mcp_client_app.runtime.fork_gate import no_fork

logger = logging.getLogger(__name__)

__all__ = ["Look", "News", "Passing", "RunFeed", "feed"]

SHORTEST: Final = 0.1
"""Seconds between two looks at the table while something happens."""
LONGEST: Final = 1.0
"""The same after a while without anything new."""
GROWTH: Final = 1.3


@dataclass(frozen=True, slots=True)
class Look:
    """There is something new in the table."""

    number: int | None = None
    """The last event that is meant; None = whatever is there, the run may be over."""


@dataclass(frozen=True, slots=True)
class Passing:
    """An event that is told once and stored nowhere, such as a piece of text."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


News = Look | Passing
Put = Callable[[News], None]
"""Takes news from any thread; must neither wait nor raise."""


@dataclass
class _Watched:
    readers: list[Put] = field(default_factory=list)
    number: int = 0
    """The last event that readers were told of."""

    def tell(self, news: News) -> None:
        for put in self.readers:
            put(news)


class RunFeed:
    """Who watches which run. All methods may be called from any thread."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew, in a forked child: the readers have stayed in the parent."""
        self._condition = threading.Condition()
        self._watched: dict[UUID, _Watched] = {}
        self._thread: threading.Thread | None = None
        self._interval = SHORTEST
        self._pid = os.getpid()

    @contextlib.contextmanager
    def watch(self, run_id: UUID, put: Put) -> Iterator[None]:
        """Tell ``put`` what happens in a run while the block runs; read the table after entering it."""
        if self._pid != os.getpid():  # a fork that skipped the hook, such as one made in C
            self.forget()
        with self._condition:
            watched = self._watched.setdefault(run_id, _Watched())
            watched.readers = [*watched.readers, put]
            self._hurry()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="mcp-run-feed", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._condition:
                watched.readers = [each for each in watched.readers if each is not put]
                if not watched.readers and self._watched.get(run_id) is watched:
                    del self._watched[run_id]
                    if not self._watched:
                        self._condition.notify_all()

    def stored(self, run_id: UUID, number: int) -> None:
        """Tell of events that this process has stored, up to this number."""
        with self._condition:
            if (watched := self._watched.get(run_id)) is not None and number > watched.number:
                watched.number = number
                watched.tell(Look(number))

    def pass_on(self, run_id: UUID, kind: str, data: Mapping[str, Any]) -> None:
        """Tell of an event that is not stored."""
        with self._condition:
            if (watched := self._watched.get(run_id)) is not None:
                watched.tell(Passing(kind, data))

    # The thread ------------------------------------------------------------------------

    def _hurry(self) -> None:
        self._interval = SHORTEST
        self._condition.notify_all()

    def _work(self) -> None:
        try:
            while runs := self._next():
                self._look(runs)
        finally:
            connections.close_all()

    def _next(self) -> list[UUID]:
        """Wait until it is time to look; return what to look for, nothing if nobody watches any more."""
        with self._condition:
            if self._watched:
                self._condition.wait(self._interval)
            self._interval = min(self._interval * GROWTH, LONGEST)
            if not self._watched:
                self._thread = None
            return list(self._watched)

    def _look(self, runs: list[UUID]) -> None:
        try:
            with no_fork():
                close_old_connections()
                found = _standing(runs)
                close_old_connections()
        except (DatabaseError, InterfaceError):
            logger.warning("The events of running agents could not be looked for.", exc_info=True)
            return
        with self._condition:
            for run_id in runs:
                if (watched := self._watched.get(run_id)) is None:
                    continue
                number, needs_a_reader = found.get(run_id, (0, True))
                if number > watched.number:
                    watched.number = number
                    self._hurry()
                    watched.tell(Look())
                elif needs_a_reader:
                    watched.tell(Look())


def _standing(runs: list[UUID]) -> dict[UUID, tuple[int, bool]]:
    """Return how many events each run has, and whether it is over or given up by its worker."""
    rows = AgentRun.objects.using(router.db_for_write(AgentRun)).filter(pk__in=runs).order_by()
    now = timezone.now()
    return {
        run_id: (number, _needs_a_reader(RunStatus(status), lease is not None and lease < now))
        for run_id, number, status, lease in rows.values_list("pk", "event_count", "status", "lease_until")
    }


def _needs_a_reader(status: RunStatus, is_overdue: bool) -> bool:
    return status.is_final or (is_overdue and not status.is_paused)


feed = RunFeed()
"""The one of this process."""
os.register_at_fork(after_in_child=feed.forget)
