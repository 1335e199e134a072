"""Turns what the core observes into signals and rows. Runs on callback threads, never on the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from django.db import Error as DatabaseError
from django.dispatch import Signal

from mcp_client_app.client.handle import SCOPE
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
        if _is_scoped(status) and status.state in (ConnectionState.IDLE, ConnectionState.STOPPED):
            self._previous.pop(key, None)
        else:
            self._previous[key] = status.state
        self._record(status)
        _send(server_state_changed, status=status, previous=previous)

    def catalogue_changed(self, status: ServerStatus) -> None:
        self._record(status)
        _send(catalogue_changed, status=status)

    def logged(self, message: LogMessage) -> None:
        _send(server_log, message=message)

    def stderr(self, line: StderrLine) -> None:
        _send(server_stderr, line=line)

    def tick(self) -> None:
        _keep(self._states.touch)

    def forked(self) -> None:
        self._states.forget()
        self._previous = {}

    def closed(self) -> None:
        # On an event loop the database is out of reach; the rows count for three more minutes.
        if not _is_on_a_loop():
            _keep(self._states.leave)

    def _record(self, status: ServerStatus) -> None:
        if not _is_scoped(status):
            _keep(lambda: self._states.record(status))


def _is_scoped(status: ServerStatus) -> bool:
    """Say whether the connection belongs to a block of code: it tells nothing about the server's standing."""
    return status.principal.startswith(SCOPE)


def _keep(write: Callable[[], None]) -> None:
    """Write rows if the site wants them; a failure costs the row and nothing else."""
    try:
        if app_settings.RECORD_STATES:
            write()
    except DatabaseError as error:
        logger.warning("The state of a connection could not be recorded: %s", type(error).__name__)
    except Exception:
        logger.exception("The state of a connection could not be recorded.")


def _send(signal: Signal, **payload: Any) -> None:
    # A receiver's failure is logged by Django and costs the other receivers nothing.
    signal.send_robust(sender=MCPClientManager, **payload)


def _is_on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
