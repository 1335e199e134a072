"""A run as a stream of server-sent events: what has happened, from any event on, and what happens.

A stream reads the events from the table, in order, and holds no database connection while it waits:
whoever writes events in this process wakes it, one thread finds what other processes write. Pieces
of text are told as they come, if the run executes in this process; they have no number and are not
told again.

Under WSGI the stream is a plain iterator and waits in its worker's thread, under ASGI it is an
asynchronous one and waits on the loop.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import close_old_connections
from django.http import HttpRequest, StreamingHttpResponse

from mcp_client_app import services
from mcp_client_app.api import streaming
from mcp_client_app.api.streaming import comment, encoded, let_go_of_database, stream_response
from mcp_client_app.exceptions import UnknownRunError
from mcp_client_app.models import AgentEvent
from mcp_client_app.services.run_feed import Look, News, Passing, Watch
from mcp_client_app.services.run_rows import ENDS, PAUSED

__all__ = ["RunStream", "run_stream_response"]

AT_ONCE: Final = 200
"""Events that are read with one query."""


class RunStream:
    """One client that reads one run."""

    def __init__(
        self,
        watch: Watch,
        *,
        number: int = 0,
        opening: bytes = b"",
        is_live: bool = False,
        ends_at_pause: bool = False,
        when_left: Callable[[], Any] | None = None,
    ) -> None:
        """Tell nothing yet.

        Args:
            watch: The run; the stream closes it.
            number: The last event that the client has.
            opening: Told first, in place of a comment.
            is_live: The run begins now: tell pieces of text as well, in their places.
            ends_at_pause: End where the run begins to wait for people, not only where it ends.
            when_left: Done if the client goes away before the end.
        """
        self.watch = watch
        self.number = number
        self.opening = opening or comment("the events of a run")
        self.is_live = is_live
        self.ends = ENDS | {PAUSED} if ends_at_pause else ENDS
        self.is_over = False
        self._when_left = when_left

    @property
    def first_look(self) -> Look:
        """Where to begin: a run that was watched before it began has told everything, in order."""
        return Look(self.number) if self.is_live else Look()

    def close(self) -> None:
        """End the stream. Django calls this after the last byte, or when the client has gone."""
        self.watch.close()
        when_left, self._when_left = self._when_left, None
        try:
            if when_left is not None and not self.is_over:
                when_left()
        finally:
            let_go_of_database()

    def read(self, look: Look) -> bytes:
        """Return further events from the table; nothing if there are no more. For threads."""
        if self.is_over or (look.number is not None and look.number <= self.number):
            return b""
        try:
            found = self._next(look)
        except UnknownRunError:  # it was deleted
            self.is_over, found = True, []
        told = []
        for event in found:
            told.append(encoded(event.kind, event.data, event.number))
            self.number = event.number
            self.is_over = event.kind in self.ends
            if self.is_over:
                break
        return b"".join(told)

    def _next(self, look: Look) -> list[AgentEvent]:
        found = self._stored()
        if look.number is None and not found and services.get_run(self.watch.run_id).state.is_final:
            # Once more: what has ended has written all its events by now.
            found = self._stored()
            self.is_over = not found
        # What comes later comes after pieces of text that are still to be told.
        last = look.number if self.is_live else None
        return [event for event in found if last is None or event.number <= last]

    def _stored(self) -> list[AgentEvent]:
        return services.events_after(self.watch.run_id, self.number, limit=AT_ONCE)

    def passed_on(self, news: Passing) -> Iterator[bytes]:
        """Yield what is told of an event that has no number."""
        if self.is_live:
            yield encoded(news.kind, news.data)


class ThreadStream(RunStream):
    """The stream under WSGI."""

    def __iter__(self) -> Generator[bytes]:
        yield self.opening
        news: News | None = self.first_look
        while True:
            match news:
                case None:
                    yield comment("nothing new")
                case Passing():
                    yield from self.passed_on(news)
                case Look():
                    while told := self._read_alone(news):
                        yield told
            if self.is_over:
                return
            news = self.watch.get(streaming.KEEP_ALIVE)

    def _read_alone(self, look: Look) -> bytes:
        """Read on this thread, which then waits."""
        try:
            return self.read(look)
        finally:
            let_go_of_database()


class LoopStream(RunStream):
    """The stream under ASGI."""

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        yield self.opening
        # What the view has opened, on the thread that Django keeps for this request.
        await sync_to_async(let_go_of_database)()
        # By threads that all streams share: a thread of its own would wait with each.
        read = sync_to_async(self._read_among_others, thread_sensitive=False)
        news: News | None = self.first_look
        while True:
            match news:
                case None:
                    yield comment("nothing new")
                case Passing():
                    for told in self.passed_on(news):
                        yield told
                case Look():
                    while told := await read(news):
                        yield told
            if self.is_over:
                return
            news = await self.watch.aget(streaming.KEEP_ALIVE)

    def _read_among_others(self, look: Look) -> bytes:
        """Read on a thread that others use at once, as Django's own threads use the database."""
        close_old_connections()
        try:
            return self.read(look)
        finally:
            close_old_connections()


def run_stream_response(request: HttpRequest, watch: Watch, **options: Any) -> StreamingHttpResponse:
    """Return the answer that tells what happens in a run; see ``RunStream`` for the options."""
    kind = LoopStream if isinstance(request, ASGIRequest) else ThreadStream
    return stream_response(kind(watch, **options))
