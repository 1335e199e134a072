"""Refuses places where a thread with an event loop cannot work, naming the cure."""

from __future__ import annotations

import sys

from mcp_client_app.exceptions import ConfigurationError

__all__ = ["refuse_unsuitable"]

_THREADS = "use gunicorn's gthread or uvicorn workers, and in Celery the pools prefork or threads"


def refuse_unsuitable() -> None:
    """Look at what this process has loaded.

    Raises:
        ConfigurationError: gevent or eventlet have replaced threads, or uWSGI runs without them.
    """
    if _patched_by_gevent():
        raise _refusal("gevent", _THREADS)
    if _patched_by_eventlet():
        raise _refusal("eventlet", _THREADS)
    if _is_uwsgi_without_threads():
        raise _refusal("uWSGI without threads", "add 'enable-threads = true' to its configuration")


def _patched_by_gevent() -> bool:
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


def _patched_by_eventlet() -> bool:
    patcher = sys.modules.get("eventlet.patcher")
    return patcher is not None and bool(patcher.is_monkey_patched("thread"))


def _is_uwsgi_without_threads() -> bool:
    uwsgi = sys.modules.get("uwsgi")
    # Newer releases have threads unless told otherwise, whatever their options say.
    has_threads = getattr(uwsgi, "has_threads", None)
    if has_threads is not None:
        return not has_threads
    options = getattr(uwsgi, "opt", None)
    if not isinstance(options, dict):
        return False
    return not {"enable-threads", b"enable-threads", "threads", b"threads"} & set(options)


def _refusal(what: str, cure: str) -> ConfigurationError:
    return ConfigurationError(
        f"MCP connections need real threads, which {what} does not give; {cure}.", field="MCP_CLIENT"
    )
