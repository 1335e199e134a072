"""Refuses places where a thread with an event loop cannot work, naming the cure."""

from __future__ import annotations

import sys

from mcp_client_app.exceptions import ConfigurationError

__all__ = ["refuse_unsuitable"]


def refuse_unsuitable() -> None:
    """Look at what this process has loaded.

    Raises:
        ConfigurationError: gevent or eventlet have replaced threads, or uWSGI runs without them.
    """
    if _patched_by_gevent():
        raise _refusal("gevent", "use gunicorn's gthread or uvicorn workers")
    if _patched_by_eventlet():
        raise _refusal("eventlet", "use gunicorn's gthread or uvicorn workers")
    uwsgi = sys.modules.get("uwsgi")
    options = getattr(uwsgi, "opt", None)
    if isinstance(options, dict) and not (
        {"enable-threads", b"enable-threads", "threads", b"threads"} & set(options)
    ):
        raise _refusal("uWSGI without threads", "add 'enable-threads = true' to its configuration")


def _patched_by_gevent() -> bool:
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


def _patched_by_eventlet() -> bool:
    patcher = sys.modules.get("eventlet.patcher")
    return patcher is not None and bool(patcher.is_monkey_patched("thread"))


def _refusal(what: str, cure: str) -> ConfigurationError:
    return ConfigurationError(
        f"MCP connections need real threads, which {what} does not give; {cure}.", field="MCP_CLIENT"
    )
