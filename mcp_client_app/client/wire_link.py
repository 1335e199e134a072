"""What both links open and keep: the server's process, the HTTP client, the wire below the SDK's session.

A link over a session has something below it that moves messages: our dispatcher, or our transport under
the SDK's own. Must not know which.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
from collections.abc import Callable
from typing import Any, Protocol

from mcp_client_app import json_codec
from mcp_client_app.client.http import HttpClient
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.client.link import Diagnostics, LinkContext
from mcp_client_app.client.process import ChildProcess, spawn
from mcp_client_app.client.redaction import without_input
from mcp_client_app.client.session_link import SessionLink
from mcp_client_app.client.stdio_channel import StdioChannel
from mcp_client_app.exceptions import ConfigurationError, MCPClientError

__all__ = ["WireLink", "start_child"]

HURRIED = 0.25
"""Seconds between the steps that end a process which never became ready."""

frames = logging.getLogger("mcp_client_app.frames")


class Wire(Protocol):
    """What moves the messages of a link."""

    failure: MCPClientError | None
    closed: asyncio.Future[None]
    noise_count: int
    noise_last: str
    dropped_notifications: int
    trace: Callable[[str, Any], None] | None


async def start_child(context: LinkContext) -> ChildProcess:
    """Start the process of a stdio server, off the loop and within a start slot.

    Raises:
        ConfigurationError: It cannot be started, or may not.
    """
    spec = context.spec
    if not context.options.allow_stdio:
        raise ConfigurationError(
            f"The server {spec.name!r} cannot be started: MCP_CLIENT_ALLOW_STDIO is off.",
            server=spec.name,
            field="transport",
        )

    def start() -> subprocess.Popen[bytes]:
        if context.reaper is not None:
            context.reaper.start()
        return spawn(spec)

    release = await context.starts.acquire()
    job = asyncio.get_running_loop().run_in_executor(None, start)
    job.add_done_callback(lambda _: release())
    try:
        popen = await asyncio.shield(job)
    except asyncio.CancelledError:
        job.add_done_callback(_end_unwanted)
        raise
    return ChildProcess(popen, context.reaper)


def _end_unwanted(job: asyncio.Future[subprocess.Popen[bytes]]) -> None:
    """End a process whose start nobody waited for; without a task, as the loop may be about to stop."""
    if not job.cancelled() and job.exception() is None:
        ChildProcess(job.result(), None).kill_now()


class WireLink(SessionLink):
    """A link over a session whose messages a wire of ours moves."""

    def __init__(self, context: LinkContext) -> None:
        super().__init__(context)
        self._repairer = Repairer(context.spec.name, context.spec.strict)
        self._wire: Wire | None = None
        self._child: ChildProcess | None = None
        self._channel: StdioChannel | None = None
        """The pipes of the server's process."""

    @property
    def is_down(self) -> bool:
        # Whoever tries again at once, in the very step in which the wire failed, must not find the link up.
        return super().is_down or (self._wire is not None and self._wire.failure is not None)

    @property
    def fault(self) -> MCPClientError | None:
        return super().fault or (self._wire.failure if self._wire is not None else None)

    async def open(self) -> None:
        await super().open()
        wire = self._wire
        assert wire is not None
        wire.closed.add_done_callback(lambda _: self._down(wire.failure))

    def _use(self, wire: Wire) -> None:
        """Take messages from this wire."""
        if self.context.options.debug:
            wire.trace = self._trace
        self._wire = wire

    async def _start_process(self, stack: contextlib.AsyncExitStack) -> ChildProcess:
        """Start the server's process; ``stack`` ends it."""
        child = self._child = await start_child(self.context)
        stack.push_async_callback(self._end, child)
        return child

    def _took_probe(self) -> bool:
        return self._channel is None or self._channel.input_taken

    async def _end(self, child: ChildProcess) -> None:
        limit = self.context.spec.shutdown_timeout
        patience = 0.4 * limit if limit else 2.0
        await child.end(min(patience, HURRIED) if self.hurry else patience)

    async def _make_http_client(self) -> HttpClient:
        """Make the client of this connection; whoever gets it closes it."""
        spec, options = self.context.spec, self.context.options
        release = await self.context.starts.acquire()
        try:
            return HttpClient(
                spec.url,
                server=spec.name,
                policy=options.url_policy,
                headers=spec.headers,
                trust_env=options.trust_env,
                on_connected=release,
            )
        except BaseException:
            release()
            raise

    def _trace(self, direction: str, message: Any) -> None:
        try:
            text = json_codec.dumps(without_input(message)).decode()
        except TypeError:
            text = repr(without_input(message))
        frames.debug("%s %s %s", self.context.spec.name, direction, self.context.redact(text)[:4000])

    def diagnostics(self) -> Diagnostics:
        wire, child = self._wire, self._child
        if wire is None:
            return Diagnostics()
        return Diagnostics(
            pid=child.pid if child is not None else None,
            exit_code=child.exit_code if child is not None else None,
            stderr_tail=tuple(self._channel.stderr_tail) if self._channel is not None else (),
            noise_count=wire.noise_count,
            noise_last=wire.noise_last,
            dropped=wire.dropped_notifications,
        )

    def kill_now(self) -> None:
        if self._child is not None:
            self._child.kill_now()

    def forget(self) -> None:
        if self._child is not None:
            self._child.forget()
