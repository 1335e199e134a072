"""Settings → what the core is told at its start."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from asgiref.sync import async_to_sync
from django.db import connections
from django.utils.module_loading import import_string

from mcp_client_app import __version__
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import InputHandler, ManagerOptions, UrlPolicy
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.runtime.fork_gate import no_fork

__all__ = ["input_handlers", "manager_options", "with_database_closed"]


def manager_options() -> ManagerOptions:
    """Read the settings.

    Raises:
        ImproperlyConfigured: One of them has a wrong value.
    """
    info = app_settings.CLIENT_INFO or {}
    hosts = app_settings.ALLOWED_HOSTS
    return ManagerOptions(
        client_name=info.get("name", "django-mcp-client-app"),
        client_version=info.get("version", "" if info else __version__),
        default_link=app_settings.LINK,
        max_starts=app_settings.MAX_STARTS,
        url_policy=UrlPolicy(
            blocked_networks=tuple(app_settings.BLOCKED_NETWORKS),
            allowed_hosts=None if hosts is None else tuple(hosts),
        ),
        trust_env=app_settings.TRUST_ENV,
        allow_stdio=app_settings.ALLOW_STDIO,
        debug=app_settings.DEBUG,
        use_uvloop=app_settings.UVLOOP,
        max_frame_size=app_settings.MAX_FRAME_SIZE,
        stderr_lines=app_settings.STDERR_LINES,
        queue_size=app_settings.QUEUE_SIZE,
        callback_threads=app_settings.CALLBACK_THREADS,
        reaper=app_settings.REAPER,
        around_callback=with_database_closed,
        run_coroutine=_run_coroutine,
    )


def input_handlers() -> dict[str, InputHandler]:
    """Load the handlers that the settings name, by kind.

    Raises:
        ImproperlyConfigured: The setting has a wrong value.
        ConfigurationError: One of them cannot be imported, or cannot be called.
    """
    setting = "MCP_CLIENT_INPUT_HANDLERS"
    loaded: dict[str, InputHandler] = {}
    for kind, path in app_settings.INPUT_HANDLERS.items():
        try:
            handler = import_string(path.replace(":", "."))
        except ImportError as error:
            raise ConfigurationError(
                f"{setting} names {path!r} for {kind!r}, which cannot be imported: {error}.", field=setting
            ) from error
        if not callable(handler):
            raise ConfigurationError(
                f"{setting} names {path!r} for {kind!r}, which cannot be called.", field=setting
            )
        loaded[kind] = handler
    return loaded


def _run_coroutine(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on a loop of its own; what it hands over as thread-sensitive runs in this thread."""

    async def run() -> Any:
        return await work

    return async_to_sync(run)()


def with_database_closed(callback: Callable[[], None]) -> None:
    """Run a callback and close the database connections that it opened in this thread."""
    with no_fork():
        try:
            callback()
        finally:
            connections.close_all()
