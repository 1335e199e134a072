"""A run as it is told: its stored events in order, and between them what passes.

Nothing is missed and nothing told twice; pieces of text have no number and are told once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asgiref.sync import sync_to_async

from mcp_client_app.services.run_events import events_after
from mcp_client_app.services.run_feed import Passing, Watch
from mcp_client_app.services.run_rows import ENDS, PAUSED

__all__ = ["RunEvent", "aread", "read"]

RESTS: Final = ENDS | {PAUSED}
"""Events with which a run comes to rest."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something that happens in a run."""

    run_id: str
    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    number: int | None = None
    """Its place among the stored events; None for a piece of text, and for progress."""

    @property
    def is_last(self) -> bool:
        """Whether the run has come to rest with it."""
        return self.kind in RESTS


class _Reader:
    """Where one reader stands."""

    def __init__(self, run_id: Any) -> None:
        self._run_id = run_id
        self._number = 0
        self.is_over = False

    def passed(self, news: Passing) -> RunEvent:
        return RunEvent(str(self._run_id), news.kind, news.data)

    def further(self, upto: int | None) -> list[RunEvent]:
        """Return stored events that come next; in a thread."""
        found = []
        for event in events_after(self._run_id, self._number) if self._may_be_more(upto) else ():
            if upto is not None and event.number > upto:
                break  # what passes before it has to be told first
            self._number = event.number
            found.append(RunEvent(str(self._run_id), event.kind, event.data, event.number))
            if found[-1].is_last:
                self.is_over = True
                break
        return found

    def _may_be_more(self, upto: int | None) -> bool:
        return not self.is_over and (upto is None or upto > self._number)


def read(run_id: Any, watch: Watch) -> Iterator[RunEvent]:
    """Yield the events of a run until it comes to rest; waits in this thread."""
    reader = _Reader(run_id)
    while not reader.is_over:
        news = watch.get(None)
        if isinstance(news, Passing):
            yield reader.passed(news)
            continue
        while found := reader.further(news.number if news is not None else None):
            yield from found


async def aread(run_id: Any, watch: Watch) -> AsyncIterator[RunEvent]:
    """Async twin of ``read``."""
    reader = _Reader(run_id)
    further = sync_to_async(reader.further)
    while not reader.is_over:
        news = await watch.aget(None)
        if isinstance(news, Passing):
            yield reader.passed(news)
            continue
        while found := await further(news.number if news is not None else None):
            for event in found:
                yield event
