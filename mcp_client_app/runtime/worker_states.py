"""This process's rows: that it lives, and how its connections stand."""

from __future__ import annotations

import os
import socket
import threading

from django.db import router, transaction
from django.utils import timezone

from mcp_client_app.datatypes import ServerStatus
from mcp_client_app.models.servers import ServerConfig
from mcp_client_app.models.workers import ServerState, WorkerProcess

__all__ = ["WorkerStates"]


class WorkerStates:
    """Writes ``WorkerProcess`` and ``ServerState``. Usable from several callback threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._pid = os.getpid()

    def record(self, status: ServerStatus) -> None:
        """Note how one connection stands now; a server that is gone has no state."""
        worker = self._present()
        with transaction.atomic(using=worker._state.db):
            server = ServerConfig.objects.using(worker._state.db).filter(name=status.name).first()
            if server is None:
                return
            ServerState.objects.using(worker._state.db).update_or_create(
                worker=worker, server=server, principal=status.principal[:100], defaults=_values(status)
            )

    def touch(self) -> None:
        """Note that the process lives, and clear away those that were not seen for long."""
        self._present().touch()
        WorkerProcess.objects.using(router.db_for_write(WorkerProcess)).gone().delete()

    def leave(self) -> None:
        """Take the process's rows away: it ends in good order."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None and self._pid == os.getpid():
            worker.delete()

    def _present(self) -> WorkerProcess:
        with self._lock:
            if self._worker is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._worker = WorkerProcess.objects.create(
                    host=socket.gethostname()[:255], pid=self._pid, started_at=timezone.now()
                )
            elif not WorkerProcess.objects.filter(pk=self._worker.pk).exists():
                # Another process took us for dead.
                self._worker.save(force_insert=True)
            return self._worker


def _values(status: ServerStatus) -> dict[str, object]:
    return {
        "state": status.state.value,
        "reason": status.reason,
        "code": status.code,
        "since": status.since or timezone.now(),
        "retry_at": status.retry_at,
        "failures": status.failures,
        "revision": status.revision,
        "link": status.link,
        "protocol_version": status.protocol_version or "",
        "server_name": (status.server_name or "")[:200],
        "server_version": (status.server_version or "")[:200],
        "tools": status.tools,
        "resources": status.resources,
        "resource_templates": status.resource_templates,
        "prompts": status.prompts,
    }
