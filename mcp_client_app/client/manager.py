"""The manager: all connections of this process, for threads and for coroutines on any loop.

Starts its loop thread on first use. Forgets everything in a forked child, where it starts
afresh; closes everything at exit. Usable without Django: what servers there are comes
from a ``Source``.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, overload

from mcp_client_app.client import exit_hooks, lifetimes, operations
from mcp_client_app.client.async_verbs import AsyncVerbs
from mcp_client_app.client.engine import Engine
from mcp_client_app.client.handle import SCOPE, ScopedConnection, ServerHandle
from mcp_client_app.client.listings import KINDS
from mcp_client_app.client.loop import EventRelay, forbid_running_loop
from mcp_client_app.client.observers import Observer
from mcp_client_app.client.plans import Operation, applied
from mcp_client_app.client.private_servers import PrivateServers
from mcp_client_app.client.sources import REFUSALS, ServerEntry, Snapshot, Source, StaticSource
from mcp_client_app.client.status import status_of
from mcp_client_app.client.sync_verbs import SyncVerbs
from mcp_client_app.datatypes import SHARED, InputHandler, LogMessage, ManagerOptions, ServerStatus
from mcp_client_app.exceptions import ManagerClosedError, UnknownServerError

logger = logging.getLogger(__name__)

__all__ = ["MCPClientManager"]

T = TypeVar("T")
OnSettled = Callable[[str, ServerStatus], None]
"""Called with name and status as soon as a server is ready or has failed."""


class MCPClientManager(SyncVerbs, AsyncVerbs):
    """Persistent connections to MCP servers.

    Every verb exists twice: ``call_tool`` blocks and must not be called on a running event
    loop; ``acall_tool`` is awaited, on any loop. Both are safe from any thread.
    """

    def __init__(
        self,
        source: Source | None = None,
        options: ManagerOptions | None = None,
        observers: Iterable[Observer] = (),
    ) -> None:
        self.source = source if source is not None else StaticSource()
        self.private = PrivateServers()
        self.options = options if options is not None else ManagerOptions()
        self.observers: list[Observer] = list(observers)
        self.input_handlers: dict[str, InputHandler] = {}
        """What answers requests of servers, by kind; none by default, so that all are refused."""
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._closed = False
        self._scopes = itertools.count(1)
        lifetimes.watch(self)

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called: the manager cannot be used any more."""
        return self._closed

    # Plumbing --------------------------------------------------------------------------

    def _started(self) -> Engine:
        if self._pid != os.getpid():  # a fork that skipped the hook, such as one made in C
            self.forget()
        engine = self._engine
        if engine is not None:
            return engine
        with self._lock:
            if self._closed:
                raise ManagerClosedError
            if self._engine is None:
                self._engine = Engine(self.options, self.observers, self.input_handlers)
                exit_hooks.register(self.close_at_exit)
            return self._engine

    def _run(
        self, verb: str, operation: Operation[T], relay: EventRelay | None = None, *, fresh: bool = False
    ) -> T:
        forbid_running_loop(verb)
        snapshot = self.private.beside(self.source.current(fresh=fresh))
        engine = self._started()
        try:
            return engine.thread.run(partial(applied, engine.pool, snapshot, operation), relay)
        except REFUSALS:
            self.source.invalidate()
            newer = self.private.beside(self.source.current())
            if newer.version == snapshot.version:
                raise
        return engine.thread.run(partial(applied, engine.pool, newer, operation), relay)

    async def _arun(
        self, operation: Operation[T], relay: EventRelay | None = None, *, fresh: bool = False
    ) -> T:
        snapshot = self.private.beside(await self.source.acurrent(fresh=fresh))
        engine = self._started()
        try:
            return await engine.thread.arun(partial(applied, engine.pool, snapshot, operation), relay)
        except REFUSALS:
            self.source.invalidate()
            newer = self.private.beside(await self.source.acurrent())
            if newer.version == snapshot.version:
                raise
        return await engine.thread.arun(partial(applied, engine.pool, newer, operation), relay)

    # Connecting ------------------------------------------------------------------------

    def connect(self, name: str, *, principal: str = SHARED, wait: float | None = None) -> ServerStatus:
        """Connect a server and wait until it is ready; clears a stop, a failure and the breaker.

        Args:
            name: The server.
            principal: Whose connection.
            wait: Seconds after which to return although the attempt still runs (its status then
                is ``connecting``); None waits for its end.

        Raises:
            UnknownServerError: No such server, or disabled.
            MCPClientError: Why it cannot be connected.
        """
        self._run(
            "connect", lambda pool: operations.connect(pool, name, principal=principal, wait=wait), fresh=True
        )
        return self.status(name, principal=principal)

    async def aconnect(
        self, name: str, *, principal: str = SHARED, wait: float | None = None
    ) -> ServerStatus:
        """Async twin of ``connect``."""
        await self._arun(
            lambda pool: operations.connect(pool, name, principal=principal, wait=wait), fresh=True
        )
        return await self.astatus(name, principal=principal)

    def connect_all(
        self,
        names: Iterable[str] | None = None,
        *,
        on_progress: OnSettled | None = None,
        wait: float | None = None,
    ) -> dict[str, ServerStatus]:
        """Connect all enabled servers (or ``names``) in parallel; returns when each is ready or has failed.

        No failure is raised: look at the status. ``on_progress`` is called in this thread. After
        ``wait`` seconds those are left behind that still connect.
        """
        relay = EventRelay(lambda name: on_progress(name, self.status(name))) if on_progress else None
        wanted = list(names) if names is not None else None
        settled = relay.put if relay is not None else _ignore
        self._run(
            "connect_all",
            lambda pool: operations.connect_all(pool, wanted, settled, wait),
            relay,
            fresh=True,
        )
        return {status.name: status for status in self.status() if wanted is None or status.name in wanted}

    async def aconnect_all(
        self,
        names: Iterable[str] | None = None,
        *,
        on_progress: OnSettled | None = None,
        wait: float | None = None,
    ) -> dict[str, ServerStatus]:
        """Async twin of ``connect_all``; ``on_progress`` may be a coroutine function."""
        snapshot = await self.source.acurrent()
        relay = (
            EventRelay(lambda name: on_progress(name, self._status(snapshot, name))) if on_progress else None
        )
        wanted = list(names) if names is not None else None
        settled = relay.put if relay is not None else _ignore
        await self._arun(lambda pool: operations.connect_all(pool, wanted, settled, wait), relay, fresh=True)
        found = await self.astatus()
        return {status.name: status for status in found if wanted is None or status.name in wanted}

    def disconnect(self, name: str, *, principal: str = SHARED) -> None:
        """Disconnect a server in this process, until ``connect``; calls raise ``NotConnectedError``."""
        self._run("disconnect", lambda pool: operations.disconnect(pool, name, principal=principal))

    async def adisconnect(self, name: str, *, principal: str = SHARED) -> None:
        """Async twin of ``disconnect``."""
        await self._arun(lambda pool: operations.disconnect(pool, name, principal=principal))

    def disconnect_all(self) -> None:
        """Disconnect everything that is connected in this process."""
        self._run("disconnect_all", operations.disconnect_all)

    async def adisconnect_all(self) -> None:
        """Async twin of ``disconnect_all``."""
        await self._arun(operations.disconnect_all)

    def refresh(self, name: str, *, principal: str = SHARED, wait: float | None = None) -> ServerStatus:
        """Read the lists of a server anew; at most ``wait`` seconds for everything."""
        self._run("refresh", lambda pool: operations.refresh(pool, name, principal=principal, wait=wait))
        return self.status(name, principal=principal)

    async def arefresh(
        self, name: str, *, principal: str = SHARED, wait: float | None = None
    ) -> ServerStatus:
        """Async twin of ``refresh``."""
        await self._arun(lambda pool: operations.refresh(pool, name, principal=principal, wait=wait))
        return await self.astatus(name, principal=principal)

    def ping(self, name: str, *, timeout: float | None = None, principal: str = SHARED) -> None:
        """Have the server answer the smallest request that its era knows; connects first.

        Raises:
            MCPClientError: Why there is no answer.
        """
        self._run("ping", lambda pool: operations.ping(pool, name, timeout, principal=principal))

    async def aping(self, name: str, *, timeout: float | None = None, principal: str = SHARED) -> None:
        """Async twin of ``ping``."""
        await self._arun(lambda pool: operations.ping(pool, name, timeout, principal=principal))

    def connect_server(self, name: str, *, wait: float | None = None) -> ScopedConnection:
        """Return a connection of its own, for a ``with`` or ``async with`` block; closed at its end.

        One that is not ready within ``wait`` seconds is given up.
        """
        return ScopedConnection(self, name, f"{SCOPE}{next(self._scopes)}", wait)

    def get_client(self, name: str) -> ServerHandle | None:
        """Return a handle on a connected server, or None."""
        connection = self._engine.pool.existing(name) if self._engine is not None else None
        return ServerHandle(self, name) if connection is not None and connection.link is not None else None

    # Servers ---------------------------------------------------------------------------

    def list_servers(self) -> list[str]:
        """Return the names of all known servers, connected or not."""
        return sorted(self.source.current().entries)

    async def alist_servers(self) -> list[str]:
        """Async twin of ``list_servers``."""
        return sorted((await self.source.acurrent()).entries)

    def connected_servers(self) -> list[str]:
        """Return the names of the servers that are connected in this process."""
        if self._engine is None:
            return []
        pool = self._engine.pool
        return sorted(c.spec.name for c in pool.all() if c.link is not None and c.principal == SHARED)

    @overload
    def status(self, name: str, *, principal: str = ...) -> ServerStatus: ...

    @overload
    def status(self, name: None = ..., *, principal: str = ...) -> list[ServerStatus]: ...

    def status(
        self, name: str | None = None, *, principal: str = SHARED
    ) -> ServerStatus | list[ServerStatus]:
        """Return what this process knows about a server, or about all; never connects.

        Raises:
            UnknownServerError: There is none of this name.
        """
        snapshot = self.private.beside(self.source.current())
        return self._statuses(snapshot) if name is None else self._status(snapshot, name, principal)

    @overload
    async def astatus(self, name: str, *, principal: str = ...) -> ServerStatus: ...

    @overload
    async def astatus(self, name: None = ..., *, principal: str = ...) -> list[ServerStatus]: ...

    async def astatus(
        self, name: str | None = None, *, principal: str = SHARED
    ) -> ServerStatus | list[ServerStatus]:
        """Async twin of ``status``."""
        snapshot = self.private.beside(await self.source.acurrent())
        return self._statuses(snapshot) if name is None else self._status(snapshot, name, principal)

    def follow_soon(self) -> None:
        """Follow a change of the configuration that this process made, without waiting for the next use."""
        engine = self._engine
        if engine is not None and self._pid == os.getpid() and not self._closed:
            self.private.beside(self.source.current())
            self.apply_soon()

    def apply_soon(self) -> None:
        """Follow what is known already; never looks, never waits: fit for the collection of garbage."""
        engine = self._engine
        if engine is not None and engine.thread.is_alive:
            snapshot = self.private.latest()
            engine.thread.call_soon(lambda: engine.pool.apply(snapshot))

    def add_server(self, name: str, config: Mapping[str, Any]) -> ServerHandle:
        """Store a new server and connect it.

        Raises:
            DuplicateServerError, ConfigurationError: Also ``ValueError``s.
            MCPClientError: It was stored but cannot be connected; connection errors are ``RuntimeError``s.
        """
        self.source.add(name, config)
        self.connect(name)
        return ServerHandle(self, name)

    def remove_server(self, name: str) -> None:
        """Disconnect and delete a server; one that does not exist is only worth a warning."""
        if not self.source.remove(name):
            logger.warning("There is no server %r to remove.", name)
        if self._engine is not None:
            self._run("remove_server", operations.follow, fresh=True)

    def load_from_config(self, path: str | Path) -> list[str]:
        """Store the servers of a configuration file and connect them; returns the connected ones."""
        names = self.source.load(path)
        statuses = self.connect_all(names)
        return [name for name, status in statuses.items() if status.is_ready]

    def known(self, kind: str, name: str, principal: str = SHARED) -> tuple[Any, ...]:
        """Return a list of a server as last known; never waits, never connects."""
        connection = self._engine.pool.existing(name, principal) if self._engine is not None else None
        catalogue = connection.catalogue if connection is not None else None
        return KINDS[kind].select(catalogue) if catalogue is not None else ()

    def entry(self, name: str) -> ServerEntry | None:
        """Return a server as this process knew it at its last use; never looks, never waits."""
        snapshot = self._engine.pool.snapshot if self._engine is not None else Snapshot(version=0)
        try:
            return snapshot.known(name) or snapshot.entry(name)
        except UnknownServerError:
            return None

    def server_logs(self, name: str) -> tuple[LogMessage, ...]:
        """Return the last log messages that a server sent over the protocol."""
        return tuple(self._engine.logs.get(name, ())) if self._engine is not None else ()

    def stderr(self, name: str) -> tuple[str, ...]:
        """Return the last lines that a stdio server wrote to its standard error; they survive its end."""
        return self.status(name).stderr_tail

    def _status(self, snapshot: Snapshot, name: str, principal: str = SHARED) -> ServerStatus:
        entry = snapshot.entry(name, principal)
        engine = self._engine
        if engine is None:
            return status_of(entry, None, principal)
        connection = engine.pool.existing(entry.name, principal)
        return status_of(entry, connection, principal, dropped=engine.dropped(entry.name))

    def _statuses(self, snapshot: Snapshot) -> list[ServerStatus]:
        return [self._status(snapshot, name) for name in sorted(snapshot.entries)]

    # Scoped connections ----------------------------------------------------------------

    def release(self, name: str, principal: str) -> None:
        """Close a principal's connection and forget it."""
        self._run("release", lambda pool: pool.release(name, principal))

    async def arelease(self, name: str, principal: str) -> None:
        """Async twin of ``release``."""
        await self._arun(lambda pool: pool.release(name, principal))

    # The end ---------------------------------------------------------------------------

    def close(self) -> None:
        """Close all connections and stop the threads; from any thread, more than once if you like."""
        self._close(at_exit=False)

    def close_at_exit(self) -> None:
        """Close at the end of the process: without an executor, and without a new thread."""
        self._close(at_exit=True)

    def _close(self, *, at_exit: bool) -> None:
        with self._lock:
            self._closed = True
            engine, self._engine = self._engine, None
        if engine is not None and self._pid == os.getpid():
            engine.close(at_exit=at_exit)

    def forget(self) -> None:
        """After a fork, in the child: be as new. The parent's threads are gone, its servers are not ours."""
        engine, self._engine = self._engine, None
        self._lock = threading.Lock()
        self.private.forget_locks()
        self._pid = os.getpid()
        if engine is not None:
            engine.forget()
        for observer in self.observers:
            observer.forked()


def _ignore(name: str) -> None:
    """Nobody wants to know."""
