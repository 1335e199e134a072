"""Repairs of notifications.

One that says nothing is left out: the typed layer would log it at length, and quote what the server sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.shared.dispatcher import as_request_id

__all__ = ["KNOWN", "notification"]

LEVELS = frozenset({"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"})
OTHER_LEVELS = {"trace": "debug", "verbose": "debug", "warn": "warning", "err": "error", "fatal": "critical"}
"""What other logging systems call them."""


def notification(method: str, params: Any) -> dict[str, Any] | None:
    """Return the params of a ``KNOWN`` notification fit for the typed layer, or None if it says nothing."""
    mended = dict(params) if isinstance(params, dict) else {}
    if not isinstance(mended.get("_meta", {}), dict):
        del mended["_meta"]
    return mended if _MENDS[method](mended) else None


def _list_changed(params: dict[str, Any]) -> bool:
    return True


def _message(params: dict[str, Any]) -> bool:
    level = params.get("level")
    name = level.lower() if isinstance(level, str) else ""
    params["level"] = name if name in LEVELS else OTHER_LEVELS.get(name, "info")
    params.setdefault("data", None)
    _keep(params, logger=str)
    return True


def _progress(params: dict[str, Any]) -> bool:
    for name in ("progress", "total"):
        if name in params and not _is_number(params[name]):
            del params[name]
    _keep(params, message=str)
    return "progress" in params and as_request_id(params.get("progressToken")) is not None


def _cancelled(params: dict[str, Any]) -> bool:
    _keep(params, reason=str)
    return as_request_id(params.get("requestId")) is not None


def _updated(params: dict[str, Any]) -> bool:
    return isinstance(params.get("uri"), str)


def _elicited(params: dict[str, Any]) -> bool:
    return isinstance(params.get("elicitationId"), str)


def _acknowledged(params: dict[str, Any]) -> bool:
    honoured = params.get("notifications")
    if not isinstance(honoured, dict):
        return False
    params["notifications"] = {
        name: value
        for name, value in honoured.items()
        if isinstance(value, bool if name.endswith("ListChanged") else list)
    }
    return True


def _keep(params: dict[str, Any], **kinds: type) -> None:
    for name, kind in kinds.items():
        if name in params and not isinstance(params[name], kind):
            del params[name]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_MENDS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "notifications/tools/list_changed": _list_changed,
    "notifications/resources/list_changed": _list_changed,
    "notifications/prompts/list_changed": _list_changed,
    "notifications/resources/updated": _updated,
    "notifications/elicitation/complete": _elicited,
    "notifications/message": _message,
    "notifications/progress": _progress,
    "notifications/cancelled": _cancelled,
    "notifications/subscriptions/acknowledged": _acknowledged,
}

KNOWN = frozenset(_MENDS)
"""Others have no form that could be broken: the session drops them."""
