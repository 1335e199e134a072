"""What a manager runs on: loop thread, pool, callback threads, reaper; started on first use, ended whole."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from mcp_client_app.client.callbacks import CallbackExecutor
from mcp_client_app.client.connection import Connection
from mcp_client_app.client.connection_host import ConnectionHost
from mcp_client_app.client.input_desk import InputDesk
from mcp_client_app.client.link import LinkContext
from mcp_client_app.client.links import make_link
from mcp_client_app.client.loop import LoopThread
from mcp_client_app.client.observers import Observer
from mcp_client_app.client.pool import ConnectionPool
from mcp_client_app.client.private_servers import is_private
from mcp_client_app.client.reaper import Reaper
from mcp_client_app.client.sources import ServerEntry
from mcp_client_app.client.starts import StartSlots
from mcp_client_app.client.status import status_of
from mcp_client_app.datatypes import InputHandler, LogMessage, ManagerOptions, ServerStatus, StderrLine

logger = logging.getLogger(__name__)

__all__ = ["Engine"]

LOOP_THREAD = "mcp-client-loop"
IN_PROCESS_THREAD = "mcp-in-process-loop"
HEARTBEAT = 60.0
"""Seconds between two signs of life to the observers."""


class Engine:
    """One life of a manager, in one process."""

    def __init__(
        self,
        options: ManagerOptions,
        observers: list[Observer],
        input_handlers: dict[str, InputHandler],
    ) -> None:
        self.options = options
        self.logs: dict[str, deque[LogMessage]] = {}
        self._observers = observers
        self._input_handlers = input_handlers
        self._callbacks = CallbackExecutor(
            threads=options.callback_threads, queue_size=options.queue_size, around=options.around_callback
        )
        self._reaper = Reaper() if options.reaper else None
        self._in_process: LoopThread | None = None
        self._in_process_lock = threading.Lock()
        self.thread = LoopThread(LOOP_THREAD, use_uvloop=options.use_uvloop)
        self.pool: ConnectionPool = self.thread.run(self._build)

    async def _build(self) -> ConnectionPool:
        self._heartbeat = asyncio.get_running_loop().create_task(self._beat())
        self._starts = StartSlots(self.options.max_starts)
        self._desk = InputDesk(self._input_handlers, self.options)
        return ConnectionPool(
            ConnectionHost(
                options=self.options,
                make_link=make_link,
                link_context=self._link_context,
                state_changed=self._state_changed,
                catalogue_changed=self._catalogue_changed,
                desk=self._desk,
                logged=self._logged,
                stderr=self._stderr,
            )
        )

    def _link_context(self, **own: Any) -> LinkContext:
        return LinkContext(
            options=self.options,
            starts=self._starts,
            reaper=self._reaper,
            in_process_thread=self._in_process_thread,
            input_handlers=self._desk.for_link(own["spec"], own["principal"]),
            **own,
        )

    def _in_process_thread(self) -> LoopThread:
        with self._in_process_lock:
            if self._in_process is None:
                self._in_process = LoopThread(IN_PROCESS_THREAD)
            return self._in_process

    # Events ----------------------------------------------------------------------------

    def dropped(self, server: str) -> int:
        """Return how many events of a server were dropped because callbacks were too slow."""
        return self._callbacks.dropped.get(server, 0)

    def _state_changed(self, connection: Connection) -> None:
        self._tell(connection.spec.name, "state_changed", lambda: self._status(connection))

    def _catalogue_changed(self, connection: Connection) -> None:
        self._tell(connection.spec.name, "catalogue_changed", lambda: self._status(connection))

    def _status(self, connection: Connection) -> ServerStatus | None:
        """Return the server's status; None if this connection does not speak for the server any more."""
        name, principal = connection.spec.name, connection.principal
        entry = self.pool.snapshot.known(name)
        if entry is None and is_private(name):
            # Its holder has let it go: that it has ended is the last thing to be told of it.
            self.logs.pop(name, None)
            entry = ServerEntry(name=name, transport=connection.spec.transport)
        if entry is None:
            return None
        if not connection.retired:
            return status_of(entry, connection, principal, dropped=self.dropped(name))
        return status_of(entry, None, principal) if self.pool.existing(name, principal) is None else None

    def _logged(self, message: LogMessage) -> None:
        self.logs.setdefault(message.server, deque(maxlen=self.options.stderr_lines)).append(message)
        self._tell(message.server, "logged", lambda: message)

    def _stderr(self, line: StderrLine) -> None:
        self._tell(line.server, "stderr", lambda: line)

    def _tell(self, server: str, event: str, build: Callable[[], Any]) -> None:
        """Queue the event for each observer; the payload is the moment's, built once, here on the loop."""
        if not self._observers:
            return
        payload = build()
        if payload is None:
            return
        for observer in self._observers:
            method = getattr(observer, event)
            self._callbacks.post(server, partial(method, payload))

    async def _beat(self) -> None:
        """Let observers know once a minute that this process still holds connections."""
        while True:
            await asyncio.sleep(HEARTBEAT)
            if any(connection.link is not None for connection in self.pool.all()):
                for observer in self._observers:
                    self._callbacks.post("", observer.tick)

    def flush_callbacks(self, timeout: float) -> bool:
        """Wait until the callbacks queued so far have run."""
        return self._callbacks.flush(timeout)

    # The end ---------------------------------------------------------------------------

    def close(self, *, at_exit: bool = False) -> None:
        """Close everything, each connection within its own shutdown time. Blocks; from any thread."""
        try:
            if self.thread.is_alive:
                self.thread.run(self.pool.close)
        except Exception:
            logger.exception("Closing the connections failed; their processes are killed.")
            self.pool.kill_now()
        self.thread.stop(at_exit=at_exit)
        if self._in_process is not None:
            self._in_process.stop(at_exit=at_exit)
        self._desk.close(timeout=2.0)
        self._callbacks.close(timeout=2.0)
        for observer in self._observers:
            try:
                observer.closed()
            except Exception:
                logger.exception("An observer failed at the end.")
        if self._reaper is not None:
            self._reaper.close()

    def forget(self) -> None:
        """After a fork, in the child: close copies of descriptors; the parent's servers stay the parent's."""
        self.pool.forget()
        self.thread.forget()
        if self._in_process is not None:
            self._in_process.forget()
        if self._reaper is not None:
            self._reaper.forget()
