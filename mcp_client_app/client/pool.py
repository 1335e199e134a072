"""All connections of one manager, on its loop: made on demand, replaced when the configuration changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from mcp_client_app.client.background import spawn
from mcp_client_app.client.backoff import Backoff
from mcp_client_app.client.connection import Connection
from mcp_client_app.client.connection_host import ConnectionHost
from mcp_client_app.client.sources import ServerEntry, Snapshot
from mcp_client_app.datatypes import SHARED, ConnectionState, ServerSpec, ToolInfo
from mcp_client_app.exceptions import ManagerClosedError, ServerConnectionError

logger = logging.getLogger(__name__)

__all__ = ["ROW_STOP", "ConnectionPool"]

T = TypeVar("T")
Key = tuple[str, str]
"""Server and principal."""
FoundKey = tuple[str, str | None, str]
"""The name asked for, the server if it was given, and the principal."""
MOST_FOUND = 20_000
"""Names whose tools are remembered: callers may come up with any."""

ROW_STOP = "disconnected by an operator"


class ConnectionPool:
    """Maps (server, principal) to connections, and follows snapshots of the configuration."""

    def __init__(self, host: ConnectionHost) -> None:
        self.host = host
        self.snapshot = Snapshot(version=0)
        self._connections: dict[Key, Connection] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._retiring: dict[Key, asyncio.Task[None]] = {}
        self._leaving: set[Connection] = set()
        """Retired connections whose processes may still live."""
        self._closed = False
        self._found: dict[FoundKey, tuple[ServerSpec, ToolInfo]] = {}
        self._found_in = host.generation

    def connection(self, name: str, principal: str = SHARED) -> Connection:
        """Return the connection of a server, made if there is none yet; it may not be connected.

        Raises:
            UnknownServerError: No such server, or disabled.
            ConfigurationError: It cannot work as configured.
            ManagerClosedError: The pool has been closed.
        """
        if self._closed:
            raise ManagerClosedError
        entry = self.snapshot.entry(name, principal)
        key = (entry.name, principal)
        connection = self._connections.get(key)
        if connection is None:
            backoff = self._backoffs.setdefault(entry.name, Backoff())
            connection = Connection(entry.usable_spec(), self.host, backoff=backoff, principal=principal)
            if (predecessor := self._retiring.get(key)) is not None:
                connection.follow(predecessor)
            if entry.stopped:
                connection.standing.move(ConnectionState.STOPPED, ROW_STOP)
            self._connections[key] = connection
            self.host.names_changed()
        return connection

    async def using(self, name: str, principal: str, use: Callable[[Connection], Awaitable[T]]) -> T:
        """Do something with a connection; should it be replaced meanwhile, once more with its successor.

        For what has no effect by itself: connecting, reading lists.

        Raises:
            MCPClientError: As ``connection``, and what ``use`` raises.
        """
        while True:
            connection = self.connection(name, principal)
            try:
                return await use(connection)
            except ServerConnectionError:
                if self.existing(connection.spec.name, principal) is connection:
                    raise

    def existing(self, name: str, principal: str = SHARED) -> Connection | None:
        """Return the connection if there is one; never makes one."""
        return self._connections.get((name, principal))

    def found(self, key: FoundKey) -> tuple[ServerSpec, ToolInfo] | None:
        """Return the tool that was found for a name, unless it may be another one by now."""
        return self._names().get(key)

    def remember(self, key: FoundKey, spec: ServerSpec, tool: ToolInfo) -> None:
        """Keep what a name means."""
        names = self._names()
        if len(names) >= MOST_FOUND:
            names.clear()
        names[key] = spec, tool

    def _names(self) -> dict[FoundKey, tuple[ServerSpec, ToolInfo]]:
        if self._found_in != self.host.generation:
            self._found.clear()  # also lets go of specs, and their secrets, that are not in use any more
            self._found_in = self.host.generation
        return self._found

    def all(self) -> list[Connection]:
        """Return every connection there is."""
        return list(self._connections.values())

    # Following the configuration -------------------------------------------------------

    def apply(self, snapshot: Snapshot) -> None:
        """Follow a newer snapshot: retire what changed or went, keep what did not."""
        if snapshot.version <= self.snapshot.version:
            return
        self.snapshot = snapshot
        self.host.names_changed()
        for key, connection in list(self._connections.items()):
            entry = snapshot.known(key[0])
            spec = entry.spec if entry is not None and entry.enabled else None
            if entry is None or spec is None or spec.link_key != connection.spec.link_key:
                self._backoffs.pop(key[0], None)
                self.host.eras.pop(key[0], None)
                self.retire(key)
                continue
            if spec is not connection.spec and spec != connection.spec:
                connection.update(spec)
            self._follow_stop_flag(entry, connection)

    def _follow_stop_flag(self, entry: ServerEntry, connection: Connection) -> None:
        stopped_by_row = connection.standing.reason == ROW_STOP
        if entry.stopped and connection.standing.state is not ConnectionState.STOPPED:
            connection.refuse(ROW_STOP)  # already for the call that brought this news
            spawn(self._stop_by_row(connection), "Stopping a connection")
        elif not entry.stopped and stopped_by_row and connection.standing.state is ConnectionState.STOPPED:
            connection.standing.move(ConnectionState.IDLE)

    async def _stop_by_row(self, connection: Connection) -> None:
        await connection.stop(ROW_STOP)
        entry = self.snapshot.known(connection.spec.name)
        if entry is not None and not entry.stopped and not connection.retired:
            self._follow_stop_flag(entry, connection)  # it was taken back while the link was closing

    def retire(self, key: Key) -> asyncio.Task[None] | None:
        """Take a connection out and close it once its running calls are done."""
        connection = self._connections.pop(key, None)
        if connection is None:
            return None
        self.host.names_changed()
        task = spawn(
            connection.retire(connection.spec.shutdown_timeout or 5.0), "Closing a replaced connection"
        )
        self._retiring[key] = task
        self._leaving.add(connection)
        task.add_done_callback(lambda done: self._retired(key, connection, done))
        return task

    async def release(self, name: str, principal: str) -> None:
        """Close a connection and forget it; also one whose server is gone from the configuration."""
        folded = name.strip().casefold()
        for key in {*self._connections, *self._retiring}:
            if key[1] == principal and key[0].casefold() == folded:
                task = self.retire(key) or self._retiring[key]
                await asyncio.wait({task})  # unlike awaiting it, this leaves it alone when cancelled

    def _retired(self, key: Key, connection: Connection, task: asyncio.Task[None]) -> None:
        self._leaving.discard(connection)
        if self._retiring.get(key) is task:
            del self._retiring[key]

    # The end ---------------------------------------------------------------------------

    async def close(self) -> None:
        """Close all connections at once; each is bounded by its own shutdown time."""
        self._closed = True
        connections = [*self.all(), *self._leaving]
        await _gather(connection.stop("the manager was closed") for connection in connections)
        self._connections.clear()

    def kill_now(self) -> None:
        """End every process at once: for the exit path."""
        for connection in (*self.all(), *self._leaving):
            connection.kill_now()

    def forget(self) -> None:
        """After a fork, in the child."""
        for connection in (*self.all(), *self._leaving):
            connection.forget()
        self._connections.clear()


async def _gather(coroutines: Iterable[Any]) -> None:
    tasks = [spawn(coroutine, "Closing a connection") for coroutine in coroutines]
    if tasks:
        await asyncio.wait(tasks)
