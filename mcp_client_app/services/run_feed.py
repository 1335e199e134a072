"""Tells readers in this process that a run has gone on.

What happens here is told at once. What other processes write is found by one thread, which looks
for all runs that are watched with one query, and is there only while somebody watches. Nobody is
told what has happened, except of events that pass without being stored: whoever hears of the others
reads them from the table, in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self
from uuid import UUID

from django.db import close_old_connections, connections, router
from django.utils import timezone

from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentRun
from mcp_client_app.runtime.fork_gate import no_fork

logger = logging.getLogger(__name__)

__all__ = ["Look", "News", "Passing", "RunFeed", "Watch", "feed"]

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


class Watch:
    """One reader's news of one run; take them in a thread or on one event loop. Close it, or forget it."""

    def __init__(self, run_id: UUID, feed: RunFeed, *, listens: bool) -> None:
        self.run_id = run_id
        self.listens = listens
        """Whether it takes events that pass."""
        self._feed = feed
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived = asyncio.Event()

    def put(self, news: News) -> None:
        """Add news; from any thread, without waiting."""
        self._news.put(news)
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody reads any more
                self._loop.call_soon_threadsafe(self._arrived.set)

    def remind(self) -> None:
        """Have the reader look, unless there is news already: one who is slow gathers nothing."""
        if self._news.empty():
            self.put(Look())

    def get(self, timeout: float | None) -> News | None:
        """Wait in this thread for the next news; None if there are none in time."""
        try:
            return self._news.get(timeout=timeout)
        except queue.Empty:
            return None

    async def aget(self, timeout: float | None) -> News | None:
        """Wait on this loop for the next news; None if there are none in time."""
        self._loop = asyncio.get_running_loop()
        while True:
            self._arrived.clear()
            with contextlib.suppress(queue.Empty):
                return self._news.get_nowait()
            try:
                async with asyncio.timeout(timeout):
                    await self._arrived.wait()
            except TimeoutError:
                return None

    def close(self) -> None:
        """End the watch; twice does no harm."""
        self._feed.leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Watched:
    """A run and those who watch it, as long as anybody else knows them."""

    def __init__(self) -> None:
        self.readers: weakref.WeakSet[Watch] = weakref.WeakSet()
        self.number = 0
        """The last event that readers were told of."""

    def tell(self, news: News) -> None:
        for reader in self.readers:
            if reader.listens or not isinstance(news, Passing):
                reader.put(news)

    def remind(self) -> None:
        for reader in self.readers:
            reader.remind()


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
        self._has_failed = False
        self._pid = os.getpid()

    def watch(self, run_id: UUID, *, listens: bool = True) -> Watch:
        """Begin to watch a run; what is read from the table afterwards misses nothing.

        Args:
            run_id: The run.
            listens: Take events that pass, too.
        """
        if self._pid != os.getpid():  # a fork that skipped the hook, such as one made in C
            self.forget()
        reader = Watch(run_id, self, listens=listens)
        with self._condition:
            self._watched.setdefault(run_id, _Watched()).readers.add(reader)
            self._hurry()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="mcp-run-feed", daemon=True)
                self._thread.start()
        return reader

    def leave(self, reader: Watch) -> None:
        """End a watch."""
        with self._condition:
            if (watched := self._watched.get(reader.run_id)) is not None:
                watched.readers.discard(reader)
            self._drop_unwatched()
            if not self._watched:
                self._condition.notify_all()

    def has_listeners(self, run_id: UUID) -> bool:
        """Say whether anybody takes events that pass."""
        with self._condition:
            watched = self._watched.get(run_id)
            return watched is not None and any(reader.listens for reader in watched.readers)

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
            self._drop_unwatched()
            if not self._watched:
                self._thread = None
            return list(self._watched)

    def _drop_unwatched(self) -> None:
        for run_id in [each for each, watched in self._watched.items() if not watched.readers]:
            del self._watched[run_id]

    def _look(self, runs: list[UUID]) -> None:
        try:
            with no_fork():
                close_old_connections()
                found = _standing(runs)
                close_old_connections()
        except Exception:
            if not self._has_failed:
                logger.exception("The events of runs cannot be looked for; trying on.")
            self._has_failed = True
            return
        self._has_failed = False
        with self._condition:
            for run_id in runs:
                if (watched := self._watched.get(run_id)) is None:
                    continue
                number, needs_a_reader = found.get(run_id, (0, True))
                if number > watched.number:
                    watched.number = number
                    self._hurry()
                    watched.tell(Look(number))
                elif needs_a_reader:
                    watched.remind()


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
