"""A call whose progress is told as server-sent events while it runs.

Events: ``progress`` as often as the server reports, then one ``result`` or ``error``, with the
body that the plain answer has. Comments keep the stream alive, so that proxies do not cut it
and a client that has gone is noticed: then the call is cancelled.

The stream is asynchronous. Under WSGI a thread of its own runs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from functools import partial
from typing import Any, Protocol

from asgiref.sync import async_to_sync
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import HttpRequest, StreamingHttpResponse

from mcp_client_app.api import streaming
from mcp_client_app.api.streaming import comment, encoded, let_go_of_database, stream_response
from mcp_client_app.datatypes import Progress

__all__ = ["Job", "event_response"]

PATIENCE = 5.0
"""Seconds that closing a stream waits for its cancelled call."""


class Job(Protocol):
    """A call that can be watched."""

    async def run(self, on_progress: Callable[[Progress], Any]) -> tuple[str, dict[str, Any]]:
        """Do it; return the name and the body of the last event. Failures are events, too."""


def event_response(request: HttpRequest, job: Job) -> StreamingHttpResponse:
    """Return the answer that runs the job and tells its events."""
    events = _events(job)
    return stream_response(events if isinstance(request, ASGIRequest) else _ThreadedStream(events))


async def _events(job: Job) -> AsyncGenerator[bytes]:
    reports: asyncio.Queue[Progress | None] = asyncio.Queue()
    task = asyncio.create_task(job.run(reports.put_nowait))
    task.add_done_callback(lambda _: reports.put_nowait(None))
    try:
        # At once, so that the client sees the headers.
        yield comment("the call has begun")
        while True:
            try:
                async with asyncio.timeout(streaming.KEEP_ALIVE):
                    report = await reports.get()
            except TimeoutError:
                yield comment("it still runs")
                continue
            if report is None:
                break
            yield encoded(
                "progress",
                {"progress": report.progress, "total": report.total, "message": report.message},
            )
        yield encoded(*task.result())
    finally:
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


class _ThreadedStream:
    """Iterates over an asynchronous stream from a thread; ``close`` cancels it."""

    def __init__(self, events: AsyncGenerator[bytes]) -> None:
        self._events = events
        self._chunks: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._cancel: Callable[[], None] | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._main, name="mcp-event-stream", daemon=True)

    def __iter__(self) -> Iterator[bytes]:
        self._thread.start()
        let_go_of_database()
        while (chunk := self._chunks.get()) is not None:
            yield chunk

    def close(self) -> None:
        """End the stream; the server that hosts us calls this when the client has gone."""
        with self._lock:
            self._closed = True
            if self._cancel is not None:
                self._cancel()
        if self._thread.is_alive():
            self._thread.join(PATIENCE)

    def _main(self) -> None:
        try:
            async_to_sync(self._pump)()
        finally:
            self._chunks.put(None)
            connections.close_all()

    async def _pump(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with self._lock:
            if self._closed:
                return
            self._cancel = partial(_cancel_from_afar, loop, task)
        try:
            async with contextlib.aclosing(self._events) as events:
                async for chunk in events:
                    self._chunks.put(chunk)
        except asyncio.CancelledError:
            pass  # the client has gone: nobody is left to tell
        finally:
            with self._lock:
                self._cancel = None


def _cancel_from_afar(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    loop.call_soon_threadsafe(task.cancel)
