"""Settings → what the core is told at its start."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connections

from mcp_client_app import __version__
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import ManagerOptions, UrlPolicy

__all__ = ["manager_options"]


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
    )


def with_database_closed(callback: Callable[[], None]) -> None:
    """Run a callback and close the database connections that it opened in this thread."""
    try:
        callback()
    finally:
        connections.close_all()
