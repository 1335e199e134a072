"""Connecting, disconnecting, and how servers stand: here and in other processes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import router

from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.datatypes import LogMessage, ServerStatus
from mcp_client_app.exceptions import ConfigurationError, UnknownServerError
from mcp_client_app.models import ServerConfig, ServerState
from mcp_client_app.runtime import get_mcp_manager, row_source, started_manager
from mcp_client_app.services.permissions import CONNECT, VIEW, require
from mcp_client_app.services.servers import get_server

__all__ = [
    "aconnect",
    "aconnect_all",
    "adisconnect",
    "arefresh",
    "aserver_logs",
    "aserver_status",
    "aserver_statuses",
    "aserver_stderr",
    "aworker_states",
    "connect",
    "connect_all",
    "disconnect",
    "refresh",
    "server_logs",
    "server_status",
    "server_statuses",
    "server_stderr",
    "worker_states",
]

OnSettled = Callable[[str, ServerStatus], Any]
"""Called with name and status as soon as a server is ready or has failed."""


# How servers stand -----------------------------------------------------------------------


def server_status(name: str, *, user: Any = None) -> ServerStatus:
    """Return how a server stands in this process; never connects."""
    require(user, VIEW, server=name)
    return get_mcp_manager().status(name)


async def aserver_status(name: str, *, user: Any = None) -> ServerStatus:
    """Async twin of ``server_status``."""
    await sync_to_async(require)(user, VIEW, server=name)
    return await get_mcp_manager().astatus(name)


def server_statuses(*, user: Any = None) -> list[ServerStatus]:
    """Return how all servers stand in this process; never connects."""
    require(user, VIEW)
    return get_mcp_manager().status()


async def aserver_statuses(*, user: Any = None) -> list[ServerStatus]:
    """Async twin of ``server_statuses``."""
    await sync_to_async(require)(user, VIEW)
    return await get_mcp_manager().astatus()


def worker_states(name: str | None = None, *, user: Any = None) -> list[ServerState]:
    """Return the rows in which live processes of the site say how their connections stand."""
    require(user, VIEW)
    states = ServerState.objects.current().select_related("worker", "server")
    return list(states.filter(server__name__iexact=name) if name is not None else states)


aworker_states = sync_to_async(worker_states)


def server_logs(name: str, *, user: Any = None) -> tuple[LogMessage, ...]:
    """Return the last log messages of a server in this process."""
    return get_mcp_manager().server_logs(get_server(name, user=user).name)


async def aserver_logs(name: str, *, user: Any = None) -> tuple[LogMessage, ...]:
    """Async twin of ``server_logs``."""
    server = await sync_to_async(get_server)(name, user=user)
    return get_mcp_manager().server_logs(server.name)


def server_stderr(name: str, *, user: Any = None) -> tuple[str, ...]:
    """Return the last lines of standard error of a server in this process."""
    return server_status(name, user=user).stderr_tail


async def aserver_stderr(name: str, *, user: Any = None) -> tuple[str, ...]:
    """Async twin of ``server_stderr``."""
    return (await aserver_status(name, user=user)).stderr_tail


# Connecting ------------------------------------------------------------------------------


def connect(name: str, *, user: Any = None, wait: float | None = None) -> ServerStatus:
    """Connect a server in this process, and allow it again in all.

    Args:
        name: Which one.
        user: Who does it; None for trusted code.
        wait: Seconds after which to return although the attempt still runs: the status then says
            ``connecting``. None waits for its end.

    Raises:
        PermissionDeniedError: The user may not connect servers.
        MCPClientError: Why it cannot be connected.
    """
    forbid_running_loop("connect")
    _allow([name], user)
    return get_mcp_manager().connect(name, wait=wait)


async def aconnect(name: str, *, user: Any = None, wait: float | None = None) -> ServerStatus:
    """Async twin of ``connect``."""
    await sync_to_async(_allow)([name], user)
    return await get_mcp_manager().aconnect(name, wait=wait)


def connect_all(
    names: Iterable[str] | None = None,
    *,
    on_progress: OnSettled | None = None,
    user: Any = None,
    wait: float | None = None,
) -> dict[str, ServerStatus]:
    """Connect all enabled servers, or some, in parallel; no failure is raised: look at the status.

    After ``wait`` seconds those are left behind that still connect.

    Raises:
        PermissionDeniedError: The user may not connect servers.
        UnknownServerError: One of the names is none.
    """
    forbid_running_loop("connect_all")
    wanted = _allow(names, user)
    return get_mcp_manager().connect_all(wanted, on_progress=on_progress, wait=wait)


async def aconnect_all(
    names: Iterable[str] | None = None,
    *,
    on_progress: OnSettled | None = None,
    user: Any = None,
    wait: float | None = None,
) -> dict[str, ServerStatus]:
    """Async twin of ``connect_all``; ``on_progress`` may be a coroutine function."""
    wanted = await sync_to_async(_allow)(names, user)
    return await get_mcp_manager().aconnect_all(wanted, on_progress=on_progress, wait=wait)


def disconnect(name: str, *, user: Any = None) -> ServerStatus:
    """Disconnect a server in all processes, until somebody connects it."""
    forbid_running_loop("disconnect")
    name = _stop(name, user)
    manager = started_manager()
    if manager is not None:
        # One that is disabled or cannot work is not connected: its flag is all there is to set.
        with contextlib.suppress(UnknownServerError, ConfigurationError):
            manager.disconnect(name)
    return get_mcp_manager().status(name)


async def adisconnect(name: str, *, user: Any = None) -> ServerStatus:
    """Async twin of ``disconnect``."""
    name = await sync_to_async(_stop)(name, user)
    manager = started_manager()
    if manager is not None:
        with contextlib.suppress(UnknownServerError, ConfigurationError):
            await manager.adisconnect(name)
    return await get_mcp_manager().astatus(name)


def refresh(name: str, *, user: Any = None, wait: float | None = None) -> ServerStatus:
    """Read the lists of a server anew; at most ``wait`` seconds for everything."""
    forbid_running_loop("refresh")
    require(user, CONNECT, server=name)
    return get_mcp_manager().refresh(name, wait=wait)


async def arefresh(name: str, *, user: Any = None, wait: float | None = None) -> ServerStatus:
    """Async twin of ``refresh``."""
    await sync_to_async(require)(user, CONNECT, server=name)
    return await get_mcp_manager().arefresh(name, wait=wait)


def _allow(names: Iterable[str] | None, user: Any) -> list[str] | None:
    """Take back the stop that holds for all processes; returns the servers' own names."""
    require(user, CONNECT)
    stopped = ServerConfig.objects.using(router.db_for_write(ServerConfig)).filter(stopped=True)
    wanted = None if names is None else [get_server(name) for name in names]
    for row in stopped if wanted is None else wanted:
        if row.stopped:
            row.unstop()
    row_source.invalidate()
    return None if wanted is None else [row.name for row in wanted]


def _stop(name: str, user: Any) -> str:
    """Set the flag that all processes obey; returns the server's own name."""
    require(user, CONNECT, server=name)
    row = get_server(name)
    if not row.stopped:
        row.stop()
    row_source.invalidate()
    return row.name
