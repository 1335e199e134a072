"""The link ``own``: our dispatchers under the SDK's session."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
from typing import Any

import mcp_types as types
from mcp.client.session import ClientSession

from mcp_client_app import json_codec
from mcp_client_app.client.dispatch import BaseDispatcher
from mcp_client_app.client.http import HttpClient
from mcp_client_app.client.in_process import InProcessDispatcher
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.client.link import Diagnostics, LinkContext
from mcp_client_app.client.process import ChildProcess, spawn
from mcp_client_app.client.session_link import SessionLink
from mcp_client_app.client.stdio import StdioDispatcher
from mcp_client_app.client.streamable_http import HttpDispatcher
from mcp_client_app.datatypes import ProtocolMode, Transport
from mcp_client_app.exceptions import ConfigurationError

__all__ = ["OwnLink", "QuietSession", "start_child"]

HURRIED = 0.25
"""Seconds between the steps that end a process which never became ready."""

frames = logging.getLogger("mcp_client_app.frames")


class QuietSession(ClientSession):
    """The SDK's session without its check of results.

    The check would raise after the tool has run, and list all tools again for one that it
    does not know. We check on the caller's side and warn.
    """

    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        """Accept every result."""


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


class OwnLink(SessionLink):
    """Our stdio, streamable HTTP and in-process dispatchers."""

    kind = "own"

    def __init__(self, context: LinkContext) -> None:
        super().__init__(context)
        self._repairer = Repairer(context.spec.name, context.spec.strict)
        self._dispatcher: BaseDispatcher | None = None
        self._child: ChildProcess | None = None

    async def open(self) -> None:
        await super().open()
        dispatcher = self._dispatcher
        assert dispatcher is not None
        dispatcher.closed.add_done_callback(lambda _: self._down(dispatcher.failure))

    async def _enter(self, stack: contextlib.AsyncExitStack) -> ClientSession:
        match self.context.spec.transport:
            case Transport.STDIO:
                dispatcher: BaseDispatcher = await self._stdio(stack)
            case Transport.STREAMABLE_HTTP:
                dispatcher = await self._http(stack)
            case Transport.IN_PROCESS:
                dispatcher = await self._in_process(stack)
            case transport:
                raise ConfigurationError(
                    f"The link 'own' does not speak {transport.value!r}; use 'stock'.",
                    server=self.context.spec.name,
                    field="link",
                )
        if self.context.options.debug:
            dispatcher.trace = self._trace
        self._dispatcher = dispatcher
        session = QuietSession(dispatcher=dispatcher, **self._session_arguments())
        return await stack.enter_async_context(session)

    async def _negotiate(self, session: ClientSession, mode: ProtocolMode) -> None:
        await super()._negotiate(session, mode)
        self._repairer.modern = self._modern

    async def _stdio(self, stack: contextlib.AsyncExitStack) -> StdioDispatcher:
        spec, options = self.context.spec, self.context.options
        child = self._child = await start_child(self.context)
        stack.push_async_callback(self._end, child)
        dispatcher = StdioDispatcher(
            child,
            server=spec.name,
            repairer=self._repairer,
            redactor=self.context.redact,
            max_frame_size=options.max_frame_size,
            queue_size=options.queue_size,
            stderr_lines=options.stderr_lines,
            strict_parsing=spec.strict.parse_errors,
            on_stderr=self.context.on_stderr,
        )
        stack.callback(dispatcher.channel.detach)
        return dispatcher

    async def _end(self, child: ChildProcess) -> None:
        limit = self.context.spec.shutdown_timeout
        patience = 0.4 * limit if limit else 2.0
        await child.end(min(patience, HURRIED) if self.hurry else patience)

    async def _http(self, stack: contextlib.AsyncExitStack) -> HttpDispatcher:
        spec, options = self.context.spec, self.context.options
        release = await self.context.starts.acquire()
        try:
            client = HttpClient(
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
        dispatcher = HttpDispatcher(
            spec,
            client,
            repairer=self._repairer,
            redactor=self.context.redact,
            max_frame_size=options.max_frame_size,
            queue_size=options.queue_size,
        )
        stack.push_async_callback(dispatcher.aclose, spec.shutdown_timeout or 5.0)
        return dispatcher

    async def _in_process(self, stack: contextlib.AsyncExitStack) -> InProcessDispatcher:
        spec = self.context.spec
        assert self.context.in_process_thread is not None
        dispatcher = InProcessDispatcher(
            spec.in_process,
            server=spec.name,
            repairer=self._repairer,
            thread=self.context.in_process_thread(),
            queue_size=self.context.options.queue_size,
        )
        stack.push_async_callback(dispatcher.aclose)
        await dispatcher.start()
        return dispatcher

    def _trace(self, direction: str, message: Any) -> None:
        try:
            text = json_codec.dumps(message).decode()
        except TypeError:
            text = repr(message)
        frames.debug("%s %s %s", self.context.spec.name, direction, self.context.redact(text[:4000]))

    def diagnostics(self) -> Diagnostics:
        dispatcher, child = self._dispatcher, self._child
        if dispatcher is None:
            return Diagnostics()
        tail = tuple(dispatcher.channel.stderr_tail) if isinstance(dispatcher, StdioDispatcher) else ()
        return Diagnostics(
            pid=child.pid if child is not None else None,
            exit_code=child.exit_code if child is not None else None,
            stderr_tail=tail,
            noise_count=dispatcher.noise_count,
            noise_last=dispatcher.noise_last,
            dropped=dispatcher.dropped_notifications,
        )

    def kill_now(self) -> None:
        if self._child is not None:
            self._child.kill_now()

    def forget(self) -> None:
        if self._child is not None:
            self._child.forget()
