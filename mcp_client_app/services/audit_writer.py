"""The thread that writes audit rows in batches: one for each process, there only while it has work.

This module knows the queue, the thread, forks and the end of the process; what becomes of a
batch in the database is the business of ``audit_rows``.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from django.db import connections

from mcp_client_app.client import exit_hooks
from mcp_client_app.models import ToolCall
from mcp_client_app.runtime.fork_gate import no_fork

logger = logging.getLogger(__name__)

__all__ = ["PATIENCE", "AuditWriter", "Entry"]

PATIENCE: Final = 10.0
"""Seconds that the end of the process waits for rows."""
BATCH_SIZE: Final = 500
"""Rows that are written at once, at most."""
INTERVAL: Final = 0.05
"""Seconds for which rows are collected."""
LINGER: Final = 1.0
"""Seconds without a row after which the thread closes its database connections and ends."""

Entry = tuple[str, ToolCall]
"""The database that a row belongs to, and the row."""


class AuditWriter:
    """``add`` from any thread, never blocking on the database."""

    def __init__(self, write: Callable[[Sequence[Entry]], None]) -> None:
        """Start nothing yet.

        Args:
            write: Writes a batch, on the writer's thread, and deals with failures.
        """
        self._write = write
        self.forget()

    def forget(self) -> None:
        """Start anew, in a forked child: the parent writes its own rows."""
        # Reentrant: a collection of garbage may end a transaction, and so add a row, anywhere.
        self._condition = threading.Condition(threading.RLock())
        self._entries: deque[Entry] = deque()
        self._thread: threading.Thread | None = None
        self._added = self._written = self._flushes = 0
        self._is_registered = self._is_closed = False
        self._pid = os.getpid()

    def add(self, entry: Entry, *, limit: int | None = None) -> bool:
        """Queue a row; returns False if the caller has to write it.

        That is so when ``limit`` rows are waiting, and when the process is about to end.
        """
        if self._pid != os.getpid():  # a fork that skipped the hook, such as one made in C
            self.forget()
        with self._condition:
            if self._is_closed or (limit is not None and len(self._entries) >= limit):
                return False
            if self._thread is None and not self._start():
                return False
            self._entries.append(entry)
            self._added += 1
            if len(self._entries) in (1, BATCH_SIZE):
                self._condition.notify_all()
            return True

    def flush(self, timeout: float) -> bool:
        """Wait until all rows queued so far are written; returns whether they are.

        If none came meanwhile, the thread has closed its database connections as well.
        """
        if self._pid != os.getpid():
            self.forget()
        with self._condition:
            if self._thread is threading.current_thread():
                return False
            goal = self._added
            self._flushes += 1
            self._condition.notify_all()
            try:
                return self._condition.wait_for(lambda: self._is_through(goal), timeout)
            finally:
                self._flushes -= 1

    def _is_through(self, goal: int) -> bool:
        # Where others go on adding rows the thread stays, and so do its connections.
        return self._thread is None or (self._written >= goal and self._added > goal)

    def finish(self) -> None:
        """Have everything written at the end of the process, and say what was not."""
        if not self.flush(PATIENCE):
            logger.error(
                "%d audit rows were not written in time, at the end of the process.",
                self._added - self._written,
            )

    def close(self) -> None:
        """Take no more rows, and ``finish``."""
        self._is_closed = True
        self.finish()

    # The thread ------------------------------------------------------------------------

    def _start(self) -> bool:
        # Known before it runs: a row that is added meanwhile, by this very thread, needs no second one.
        self._thread = thread = threading.Thread(target=self._work, name="mcp-audit", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no new thread at the interpreter's exit
            self._thread = None
            return False
        if not self._is_registered:
            self._is_registered = True
            exit_hooks.register(self.finish, priority=exit_hooks.AFTER_MANAGERS)
        return True

    def _work(self) -> None:
        while True:
            batch = self._take()
            if batch:
                self._write_safely(batch)
            elif self._leave():
                return

    def _take(self) -> list[Entry]:
        """Wait for a row and then, shortly, for more; returns none if none came for a while."""
        with self._condition:
            self._condition.wait_for(lambda: self._entries or self._flushes, LINGER)
            if self._entries:
                self._condition.wait_for(lambda: len(self._entries) >= BATCH_SIZE or self._flushes, INTERVAL)
            return [self._entries.popleft() for _ in range(min(BATCH_SIZE, len(self._entries)))]

    def _write_safely(self, batch: Sequence[Entry]) -> None:
        with no_fork():
            try:
                self._write(batch)
            except Exception:
                logger.exception("A batch of %d audit rows could not be written.", len(batch))
            # A forked child must not find one of SQLite open; and these are cheap to open anew.
            _close_connections("sqlite")
        with self._condition:
            self._written += len(batch)
            self._condition.notify_all()

    def _leave(self) -> bool:
        _close_connections()
        with self._condition:
            if self._entries:
                return False
            self._thread = None
            self._condition.notify_all()
            return True


def _close_connections(vendor: str | None = None) -> None:
    for connection in connections.all(initialized_only=True):
        if vendor in (None, connection.vendor):
            try:
                connection.close()
            except Exception:
                logger.exception("A database connection of the audit could not be closed.")
