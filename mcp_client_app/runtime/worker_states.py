"""This process's rows: that it lives, and how its connections stand."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

from django.db import router, transaction
from django.utils import timezone

from mcp_client_app import json_codec
from mcp_client_app.datatypes import ServerStatus
from mcp_client_app.models.servers import ServerConfig
from mcp_client_app.models.workers import ServerState, WorkerProcess
from mcp_client_app.moments import as_kept

__all__ = ["WorkerStates"]

PATIENCE = 2.0
"""Seconds that the end waits for another thread's write."""


class WorkerStates:
    """Writes ``WorkerProcess`` and ``ServerState``. Usable from several callback threads."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew, in a forked child: the parent's rows stay the parent's."""
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._left = threading.Event()
        self._statuses: dict[tuple[str, str], ServerStatus] = {}

    def record(self, status: ServerStatus) -> None:
        """Note how one connection stands now; a server that is gone has no state."""
        self._statuses[status.name, status.principal] = status
        self._report([status])

    def touch(self) -> None:
        """Note that the process lives, and clear away those that were not seen for long."""
        self._report([])
        WorkerProcess.objects.using(_database()).gone().delete()

    def leave(self) -> None:
        """Take the process's rows away: it ends in good order. Nothing is written any more."""
        self._left.set()
        if not self._lock.acquire(timeout=PATIENCE):
            return  # a write hangs: should it ever come through, it takes the rows away itself
        try:
            self._remove()
        finally:
            self._lock.release()

    def _remove(self) -> None:
        if self._worker is not None:
            WorkerProcess.objects.using(_database()).filter(pk=self._worker.pk).delete()

    def _report(self, statuses: list[ServerStatus]) -> None:
        # The first statement is a write. SQLite lets that wait for its turn; a transaction that has
        # read already, and wants to write while somebody else does, fails at once.
        with self._lock, transaction.atomic(using=_database()):
            if self._left.is_set():
                return
            if self._is_known():
                worker = self._worker
            else:
                # The first report, or another process took this one for dead and removed all its rows.
                worker, statuses = self._introduce(), list(self._statuses.values())
            for status in statuses:
                self._write(worker, status)
            if self._left.is_set():  # meanwhile
                self._remove()

    def _is_known(self) -> bool:
        if self._worker is None:
            return False
        rows = WorkerProcess.objects.using(_database()).filter(pk=self._worker.pk)
        return rows.update(seen_at=timezone.now()) > 0

    def _introduce(self) -> WorkerProcess:
        self._worker = WorkerProcess.objects.using(_database()).create(
            host=socket.gethostname()[:255], pid=os.getpid()
        )
        return self._worker

    def _write(self, worker: WorkerProcess | None, status: ServerStatus) -> None:
        server = ServerConfig.objects.using(_database()).filter(name=status.name).first()
        if server is None:
            self._statuses.pop((status.name, status.principal), None)
            return
        ServerState.objects.using(_database()).update_or_create(
            worker=worker, server=server, principal=status.principal[:100], defaults=_values(status)
        )


def _database() -> str:
    return router.db_for_write(WorkerProcess)


def _values(status: ServerStatus) -> dict[str, Any]:
    """Return the columns; what servers say about themselves is cut and cleaned to fit."""
    texts = {
        "reason": status.reason,
        "code": status.code[:40],
        "link": status.link[:200],
        "protocol_version": (status.protocol_version or "")[:40],
        "server_name": (status.server_name or "")[:200],
        "server_version": (status.server_version or "")[:200],
    }
    return {
        **json_codec.scrub(texts),
        "state": status.state.value,
        "since": as_kept(status.since) if status.since else timezone.now(),
        "retry_at": as_kept(status.retry_at) if status.retry_at else None,
        "failures": status.failures,
        "revision": status.revision,
        "tools": status.tools,
        "resources": status.resources,
        "resource_templates": status.resource_templates,
        "prompts": status.prompts,
    }
