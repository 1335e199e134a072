"""Optional fields that are dropped when they are of the wrong type, in results of every kind."""

from __future__ import annotations

from typing import Any

from mcp_client_app.client.leniency.terms import Terms

__all__ = ["about", "block_annotations", "drop", "icons", "mend_envelope", "only_texts"]

CACHED = frozenset(
    {
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
    }
)
"""Methods whose results bear cache hints in 2026-07-28."""

LATER = ("resultType", "ttlMs", "cacheScope")
"""What only 2026-07-28 gives a meaning to: said in a handshake era, it means nothing."""


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
    """Drop icons without a source, and what is wrong with the others."""
    found = item.get("icons")
    if found is None:
        return
    good = [dict(icon) for icon in found if isinstance(icon, dict) and isinstance(icon.get("src"), str)]
    if len(good) < len(found):
        notes.append(f"{label}: an icon without src was left out")
    for icon in good:
        drop(icon, f"{label}: an icon", notes, mimeType=str, sizes=list, theme=str)
        if "sizes" in icon:
            icon["sizes"] = only_texts(icon["sizes"])
        if icon.get("theme", "light") not in ("light", "dark"):
            del icon["theme"]
    item["icons"] = good


def about(item: dict[str, Any], label: str, notes: list[str]) -> None:
    """Mend what describes a resource, in a listing or in a link to it."""
    drop(item, label, notes, title=str, description=str, mimeType=str, size=int)
    drop(item, label, notes, annotations=dict, icons=list, _meta=dict)
    block_annotations(item)
    icons(item, label, notes)


def only_texts(items: list[Any]) -> list[str]:
    """Return the strings among the items."""
    return [item for item in items if isinstance(item, str)]


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


def mend_envelope(terms: Terms, method: str, result: dict[str, Any], notes: list[str]) -> None:
    """Mend what surrounds a result: metadata, and in 2026-07-28 its type and cache hints.

    Hints are only hints: one that is missing or wrong means that nothing may be cached.
    """
    if "_meta" in result and not isinstance(result["_meta"], dict):
        del result["_meta"]
        notes.append("_meta was no object")
    if not terms.modern and method != "server/discover":  # the question by which the era is found
        for name in LATER:
            result.pop(name, None)
        return
    if not isinstance(result.get("resultType"), str):
        result["resultType"] = "complete"
    if method in CACHED and result["resultType"] != "input_required":
        ttl, scope = result.get("ttlMs"), result.get("cacheScope")
        good = isinstance(ttl, int | float) and not isinstance(ttl, bool) and ttl >= 0
        result["ttlMs"] = int(ttl) if good and ttl is not None else 0
        result["cacheScope"] = scope if isinstance(scope, str) and scope in _SCOPES else "private"


_SCOPES = ("private", "public")
