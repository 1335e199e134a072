"""Repairs of JSON schemas: only what the typed layer would refuse a whole listing for.

Everything else of a schema passes unchanged, recursion, odd keywords and mistakes included: what a schema
means is for whoever checks or shows it.
"""

from __future__ import annotations

from typing import Any

from mcp_client_app.client.leniency.fields import drop, only_texts

__all__ = ["mended_schema"]


def mended_schema(schema: dict[str, Any], label: str, notes: list[str]) -> dict[str, Any]:
    """Return the schema fit for the typed layer: the very same one if it is."""
    if _is_fit(schema):
        return schema
    mended = dict(schema)
    found: list[str] = []
    if mended.get("properties") == []:
        mended["properties"] = {}  # an empty object, as PHP writes it
    drop(mended, label, found, **_KINDS)
    if not all(isinstance(name, str) for name in mended.get("required") or ()):
        mended["required"] = only_texts(mended["required"])
        found.append(f"{label}: its required names something that is no string")
    properties = mended.get("properties") or {}
    bad = [name for name, value in properties.items() if not isinstance(value, dict | bool)]
    if bad:
        mended["properties"] = {**properties, **{name: {} for name in bad}}
        found.append(f"{label}: its property {bad[0]!r} is no schema; anything is allowed there now")
    notes += found
    return mended


_KINDS: dict[str, type] = {"$schema": str, "properties": dict, "required": list}


def _is_fit(schema: dict[str, Any]) -> bool:
    """Say whether nothing is to be mended, as in nearly all of them."""
    for name, kind in _KINDS.items():
        if name in schema and not isinstance(schema[name], kind):
            return False
    for name in schema.get("required", ()):
        if not isinstance(name, str):
            return False
    for value in schema.get("properties", {}).values():
        if not isinstance(value, dict) and not isinstance(value, bool):
            return False
    return True
