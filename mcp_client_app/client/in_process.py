"""The dispatcher for servers that run in this very process, on a loop thread of their own.

The server speaks JSON-RPC over memory streams, exactly as over stdio, so both eras work;
its code never runs on the manager's loop, where a slow tool would delay all servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from typing import Any

import anyio
from mcp.shared.dispatcher import CallOptions
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter

from mcp_client_app import json_codec
from mcp_client_app.client.dispatch import BaseDispatcher, Pending
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.client.loop import LoopThread
from mcp_client_app.exceptions import (
    ConfigurationError,
    ConnectionLostError,
    MCPClientError,
    ServerCrashedError,
)

logger = logging.getLogger(__name__)

__all__ = ["InProcessDispatcher", "registered_servers"]

GRACE = 2.0
"""Seconds that a server gets to end by itself when its input ends."""

registered_servers: dict[str, Any] = {}
"""Servers that tests offer under a key instead of a dotted path."""


def load_server(path: str, server: str) -> Any:
    """Return the SDK's low-level server that ``path`` names.

    ``path`` is a registered key, ``package.module.attribute`` or ``package.module:attribute``;
    a callable is called without arguments. Runs the project's code: never on the manager's loop.

    Raises:
        ConfigurationError: The path leads nowhere, or to something else.
    """
    target = registered_servers.get(path)
    if target is None:
        module_name, _, attribute = path.replace(":", ".").rpartition(".")
        try:
            target = getattr(importlib.import_module(module_name), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigurationError(
                f"The in-process server {server!r} could not be loaded: {type(error).__name__}.",
                server=server,
                field="in_process",
            ) from error
    if not hasattr(target, "run") and callable(target):
        target = target()
    # MCPServer keeps the low-level server, which alone can run on given streams, in a private
    # attribute; the SDK's own client unwraps it the same way.
    target = getattr(target, "_lowlevel_server", target)
    if not hasattr(target, "create_initialization_options"):
        raise ConfigurationError(
            f"The in-process server {server!r} is a {type(target).__name__}, not an MCP server of the SDK.",
            server=server,
            field="in_process",
        )
    return target


class InProcessDispatcher(BaseDispatcher):
    """Speaks with a server object over memory streams, across two loops."""

    kind = "in-process"

    def __init__(
        self, path: str, *, server: str, repairer: Repairer, thread: LoopThread, queue_size: int = 1000
    ) -> None:
        super().__init__(server=server, repairer=repairer, queue_size=queue_size)
        self._path = path
        self._thread = thread
        self._home = asyncio.get_running_loop()
        self._started: asyncio.Future[None] = self._home.create_future()
        self._finished: asyncio.Future[None] = self._home.create_future()
        self._inbox: asyncio.Queue[dict[str, Any] | None] | None = None
        """Lives on the server's loop; None ends the server's input."""
        self._life: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the server.

        Raises:
            ConfigurationError: It cannot be loaded.
        """
        self._life = asyncio.create_task(self._thread.arun(self._live))
        self._life.add_done_callback(self._ended)
        await asyncio.shield(self._started)

    async def aclose(self) -> None:
        """End the server's input, then the server."""
        self._hand_over(None)
        if self._life is not None:
            await asyncio.wait({self._finished}, timeout=GRACE)
            self._life.cancel()
            await asyncio.wait({self._finished}, timeout=GRACE)
        self._fail(ConnectionLostError(f"The connection to {self.server!r} was closed.", server=self.server))

    # On the server's loop --------------------------------------------------------------

    async def _live(self) -> None:
        try:
            target = load_server(self._path, self.server)
            self._inbox = asyncio.Queue()
            async with create_client_server_memory_streams() as ((read, write), (server_read, server_write)):
                self._tell_home(self._started)
                async with anyio.create_task_group() as group:
                    group.start_soon(self._feed, write)
                    group.start_soon(self._drain, read)
                    await target.run(server_read, server_write, target.create_initialization_options())
                    group.cancel_scope.cancel()
        finally:
            self._inbox = None
            self._tell_home(self._finished)

    async def _feed(self, write: Any) -> None:
        assert self._inbox is not None
        while (message := await self._inbox.get()) is not None:
            await write.send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))
        await write.aclose()

    async def _drain(self, read: Any) -> None:
        async for item in read:
            if not isinstance(item, Exception):
                message = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
                self._at_home(self._receive, message)

    def _at_home(self, callback: Any, *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the manager's loop is closed
            self._home.call_soon_threadsafe(callback, *arguments)

    def _tell_home(self, future: asyncio.Future[None]) -> None:
        self._at_home(lambda: None if future.done() else future.set_result(None))

    # On the manager's loop -------------------------------------------------------------

    def _ended(self, task: asyncio.Task[None]) -> None:
        error: MCPClientError
        cause = None if task.cancelled() else task.exception()
        if isinstance(cause, MCPClientError):
            error = cause
        else:
            how = f"failed: {type(cause).__name__}" if cause is not None else "ended"
            error = ServerCrashedError(f"The in-process server {self.server!r} {how}.", server=self.server)
            if cause is not None:
                logger.error("The in-process server %r failed.", self.server, exc_info=cause)
                error.__cause__ = cause
        if not self._started.done():
            self._started.set_exception(error)
        if not self._finished.done():
            self._finished.set_result(None)
        self._fail(error)

    def _hand_over(self, message: dict[str, Any] | None) -> None:
        inbox = self._inbox
        if inbox is not None:
            self._thread.call_soon(lambda: inbox.put_nowait(message))

    async def _send_request(self, message: dict[str, Any], pending: Pending, opts: CallOptions) -> None:
        # As over a wire: what is no JSON is refused here, and the server gets objects of its own.
        message = json_codec.loads(json_codec.dumps(message))
        pending.exchange.sent = True
        self._hand_over(message)

    async def _send_message(self, message: dict[str, Any], opts: CallOptions) -> None:
        self._hand_over(message)

    def _abandon(self, pending: Pending, reason: str) -> None:
        params = {"requestId": pending.request_id, "reason": reason}
        self._hand_over({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
