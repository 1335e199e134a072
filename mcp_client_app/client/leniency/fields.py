"""Optional fields that are dropped when they are of the wrong type, in results of every kind."""

from __future__ import annotations

from typing import Any

__all__ = ["block_annotations", "drop", "drop_bad_cache_hints", "icons"]


def drop(item: dict[str, Any], label: str, notes: list[str], **kinds: type) -> None:
    """Remove optional fields of a wrong type; null means absent."""
    for name, kind in kinds.items():
        if name not in item:
            continue
        value = item[name]
        if value is None:
            del item[name]
        elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            del item[name]
            notes.append(f"{label}: its {name} is no {_KINDS[kind]} and was left out")


_KINDS = {str: "string", dict: "object", list: "list", bool: "boolean", int: "integer"}


def icons(item: dict[str, Any], label: str, notes: list[str]) -> None:
    """Drop icons without a source."""
    icons = item.get("icons")
    if icons is None:
        return
    good = [icon for icon in icons if isinstance(icon, dict) and isinstance(icon.get("src"), str)]
    if len(good) < len(icons):
        notes.append(f"{label}: an icon without src was left out")
    item["icons"] = good


def block_annotations(item: dict[str, Any]) -> None:
    """Drop annotations of content that the typed layer would refuse; they are hints only."""
    annotations = item.get("annotations")
    if not isinstance(annotations, dict):
        return
    audience, priority = annotations.get("audience"), annotations.get("priority")
    good = dict(annotations)
    if audience is not None and not (
        isinstance(audience, list) and all(role in ("user", "assistant") for role in audience)
    ):
        del good["audience"]
    if priority is not None and not (
        isinstance(priority, int | float) and not isinstance(priority, bool) and 0 <= priority <= 1
    ):
        del good["priority"]
    if not isinstance(good.get("lastModified", ""), str):
        del good["lastModified"]
    item["annotations"] = good


def drop_bad_cache_hints(result: dict[str, Any]) -> None:
    """Drop hints of 2026-07-28 that the typed layer would refuse a whole result for."""
    ttl = result.get("ttlMs")
    if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl < 0):
        result["ttlMs"] = 0
    if result.get("cacheScope", "private") not in ("private", "public"):
        del result["cacheScope"]
