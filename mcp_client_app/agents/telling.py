"""Tells what happens in a run: stored for whoever reads it, pieces of text only for who listens now.

A run that goes on after a pause acts on its last response again; what was told of it is not told twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from asgiref.sync import sync_to_async

from mcp_client_app.agents.asked import Asked
from mcp_client_app.datatypes import Progress
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import AgentEvent
from mcp_client_app.services.run_events import append_events
from mcp_client_app.services.run_feed import feed
from mcp_client_app.services.run_rows import Event, database
from mcp_client_app.toolsets import RenderedResult, parse_arguments
from mcp_client_app.toolsets.text import shorten

__all__ = ["Telling"]

LONGEST: Final = 2000
"""Characters of a result in an event; the messages of the run have the whole."""


class _Batch:
    """Events that are stored together."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.written: asyncio.Future[None]


class Telling:
    """The events of one run, for the worker that holds it."""

    def __init__(self, run: Any, owner: str) -> None:
        self._run = run
        self._owner = owner
        self._told: set[tuple[str, str]] = set()
        self._writing = asyncio.Lock()
        self._next: _Batch | None = None

    async def prepare(self) -> None:
        """Read what was told before, if the run goes on."""
        if self._run.event_count > 1:
            self._told = await sync_to_async(self._read)()

    def _read(self) -> set[tuple[str, str]]:
        kinds = ("tool.call", "tool.result")
        rows = AgentEvent.objects.using(database()).filter(run_id=self._run.pk, kind__in=kinds)
        return {(kind, str(data.get("id"))) for kind, data in rows.values_list("kind", "data")}

    async def tell(self, kind: str, data: Mapping[str, Any]) -> None:
        """Store an event; those of one moment, such as calls side by side, are stored together."""
        batch = self._next
        if batch is None:
            batch = self._next = _Batch()
            batch.written = asyncio.ensure_future(self._write(batch))
            # Whoever told of it may have been cancelled meanwhile.
            batch.written.add_done_callback(lambda done: done.cancelled() or done.exception())
        batch.events.append((kind, data))
        # Who is cancelled here takes the events of nobody else with him.
        await asyncio.wait({batch.written})
        batch.written.result()

    async def _write(self, batch: _Batch) -> None:
        async with self._writing:
            await asyncio.sleep(0)  # for what is told in this turn of the loop
            self._next = None
            await sync_to_async(append_events)(self._run.pk, batch.events, owner=self._owner)

    async def call(self, asked: Asked, *, is_valid: bool) -> None:
        """Tell what the model asks for."""
        if self._is_new("tool.call", asked):
            try:
                arguments: Any = parse_arguments(asked.arguments, tool=asked.name)
            except MCPClientError:
                arguments = str(asked.arguments)[:LONGEST]
            await self.tell(
                "tool.call",
                {"id": asked.call_id, "name": asked.name, "arguments": arguments, "valid": is_valid},
            )

    async def result(self, asked: Asked, rendered: RenderedResult) -> None:
        """Tell what the model reads."""
        if self._is_new("tool.result", asked):
            outcome = "error" if rendered.is_error else "ok"
            await self.tell(
                "tool.result",
                {
                    "id": asked.call_id,
                    "name": asked.name,
                    "outcome": outcome,
                    "text": shorten(rendered.text, LONGEST),
                },
            )

    def progress(self, asked: Asked, progress: Progress) -> None:
        """Tell whoever listens now how far a call is."""
        feed.pass_on(
            self._run.pk,
            "tool.progress",
            {
                "id": asked.call_id,
                "name": asked.name,
                "progress": progress.progress,
                "total": progress.total,
                "message": progress.message,
            },
        )

    def pass_on(self, kind: str, data: Mapping[str, Any]) -> None:
        """Tell whoever listens now."""
        feed.pass_on(self._run.pk, kind, data)

    def _is_new(self, kind: str, asked: Asked) -> bool:
        key = (kind, asked.call_id)
        is_new = key not in self._told
        self._told.add(key)
        return is_new
