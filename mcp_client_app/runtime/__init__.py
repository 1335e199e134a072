"""The process-wide manager: settings and rows on one side, connections on the other.

``get_mcp_manager()`` builds it on first use. Nothing connects, and the SDK is not loaded,
before that.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from asgiref.sync import sync_to_async

from mcp_client_app.runtime.environment import refuse_unsuitable
from mcp_client_app.runtime.options import input_handlers, manager_options, with_database_closed
from mcp_client_app.runtime.row_source import RowSource

if TYPE_CHECKING:
    from mcp_client_app.client.manager import MCPClientManager

__all__ = [
    "aclose_mcp_manager",
    "after_close",
    "before_close",
    "close_mcp_manager",
    "end_callers",
    "get_mcp_manager",
    "set_mcp_manager",
    "started_manager",
]

_lock = threading.Lock()
_manager: MCPClientManager | None = None
_before_close: list[Callable[[], None]] = []
_after_close: list[Callable[[], None]] = []
row_source = RowSource()


def get_mcp_manager() -> MCPClientManager:
    """Return this process's manager; made on first use, and made anew after it was closed.

    Raises:
        ConfigurationError: Nothing of this kind can work here (gevent, eventlet, uWSGI without threads).
    """
    global _manager
    manager = _manager
    if manager is None or manager.is_closed:
        with _lock:
            if _manager is None or _manager.is_closed:
                _manager = _build()
            manager = _manager
    return manager


def started_manager() -> MCPClientManager | None:
    """Return this process's manager if there is one already; never makes one."""
    manager = _manager
    return None if manager is None or manager.is_closed else manager


def set_mcp_manager(manager: MCPClientManager | None) -> MCPClientManager | None:
    """Put another manager in place, for tests; returns the one before. Neither is closed."""
    global _manager
    with _lock:
        before, _manager = _manager, manager
    return before


def before_close(callback: Callable[[], None]) -> None:
    """Have something done before the manager is closed, by what makes calls on threads of its own."""
    _before_close.append(callback)


def after_close(callback: Callable[[], None]) -> None:
    """Have something done whenever the manager was closed, before ``close_mcp_manager`` returns."""
    _after_close.append(callback)


def close_mcp_manager() -> None:
    """Close this process's manager, if there is one: connections, threads, processes; write what waits.

    Blocks until that is done. On an event loop await ``aclose_mcp_manager`` instead.
    """
    try:
        end_callers()
    finally:
        _close_manager()


def end_callers() -> None:
    """End what makes calls on threads of its own: the agents' loop, if there is one."""
    for callback in _before_close:
        callback()


def _close_manager() -> None:
    manager = set_mcp_manager(None)
    try:
        if manager is not None:
            manager.close()
    finally:
        for callback in _after_close:
            callback()


async def aclose_mcp_manager() -> None:
    """Async twin of ``close_mcp_manager``, for an ASGI application's lifespan."""
    # A thread of its own: the one for thread-sensitive work may be gone when an application ends.
    await sync_to_async(with_database_closed, thread_sensitive=False)(close_mcp_manager)


def _build() -> MCPClientManager:
    refuse_unsuitable()
    # The one sanctioned lazy import: the SDK costs most of a second and 57 MB, which
    # "manage.py migrate" and processes that call no tool must not pay.
    from mcp_client_app.client.manager import MCPClientManager
    from mcp_client_app.runtime.observer import DjangoObserver

    manager = MCPClientManager(row_source, manager_options(), [DjangoObserver()])
    manager.input_handlers.update(input_handlers())
    return manager


def _after_fork() -> None:
    """In a forked child: a thread of the parent may have held the locks. The manager forgets by itself."""
    global _lock
    _lock = threading.Lock()
    row_source.forget()


os.register_at_fork(after_in_child=_after_fork)
