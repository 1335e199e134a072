"""Turns what the core observes into signals and rows. Runs on callback threads, never on the loop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError
from django.dispatch import Signal

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.client.observers import Observer
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import ConnectionState, LogMessage, ServerStatus, StderrLine
from mcp_client_app.runtime.worker_states import WorkerStates
from mcp_client_app.signals import catalogue_changed, server_log, server_state_changed, server_stderr

logger = logging.getLogger(__name__)

__all__ = ["DjangoObserver"]


class DjangoObserver(Observer):
    """Sends the app's signals, and keeps the rows of this process's states."""

    def __init__(self) -> None:
        self._states = WorkerStates()
        self._previous: dict[tuple[str, str], ConnectionState] = {}

    def state_changed(self, status: ServerStatus) -> None:
        key = (status.name, status.principal)
        previous = self._previous.get(key, ConnectionState.IDLE)
        self._previous[key] = status.state
        self._keep(lambda: self._states.record(status))
        self._send(server_state_changed, status=status, previous=previous)

    def catalogue_changed(self, status: ServerStatus) -> None:
        self._keep(lambda: self._states.record(status))
        self._send(catalogue_changed, status=status)

    def logged(self, message: LogMessage) -> None:
        self._send(server_log, message=message)

    def stderr(self, line: StderrLine) -> None:
        self._send(server_stderr, line=line)

    def tick(self) -> None:
        self._keep(self._states.touch)

    def closed(self) -> None:
        self._keep(self._states.leave)

    def _keep(self, write: Callable[[], None]) -> None:
        """Write rows if the site wants them; a failure costs the row and nothing else."""
        if not app_settings.RECORD_STATES:
            return
        try:
            write()
        except DatabaseError as error:
            logger.warning("The state of a connection could not be recorded: %s", type(error).__name__)

    def _send(self, signal: Signal, **payload: Any) -> None:
        # The receiver's failure is logged by send_robust's own logger.
        signal.send_robust(sender=MCPClientManager, **payload)
