"""Says a tool's schema so that model providers take it: what can be said otherwise is, meaning the same."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mcp_client_app.json_schema import SchemaChecker
from mcp_client_app.toolsets.schema_tree import Schema, move_references, resolved, rewritten

__all__ = ["express", "has_combinators", "wrap", "wrapper_name"]

WRAPPER = "tool_arguments"
"""The one argument of a tool whose real arguments cannot stand at the root."""

_COMBINATORS = ("allOf", "anyOf", "enum", "not", "oneOf")
_MAY_BE_NULL = frozenset({"const", "default"})
_TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int, float),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def express(schema: Mapping[str, Any]) -> Schema:
    """Return the schema with an object at its root, in the terms of draft 2020-12.

    Sub-schemas that need no change are shared with ``schema``, which is never altered.

    Raises:
        SchemaTooLargeError: It is too deep to be walked.
    """
    shown: Schema = rewritten(schema, _mended)
    shown = resolved(shown, shown)
    for key in ("$schema", "$id", "id"):
        shown.pop(key, None)
    kind = shown.get("type", "object")
    if isinstance(kind, list) and "object" in kind:
        kind = "object"
    return {**shown, "type": kind, "properties": shown.get("properties", {})}


def wrapper_name(schema: Mapping[str, Any]) -> str:
    """Return the name of the argument that wraps all others: no argument of the tool itself."""
    taken = {WRAPPER} & _names_at_root(schema)
    return f"{WRAPPER}_object" if taken else WRAPPER


def _names_at_root(schema: Mapping[str, Any]) -> set[str]:
    names: set[str] = set()
    for node in (schema, *(item for key in ("allOf", "anyOf", "oneOf") for item in _list(schema.get(key)))):
        found = resolved(node, schema) if isinstance(node, Mapping) else {}
        if isinstance(found.get("properties"), Mapping):
            names |= set(found["properties"])
    return names


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def wrap(shown: Schema) -> Schema:
    """Return a schema with one argument that holds all others, for what may not stand at a root.

    Definitions stay at the root, so that references to them hold; the other references move along.
    """
    name = wrapper_name(shown)
    definitions: Schema = {key: shown[key] for key in ("$defs", "definitions") if key in shown}

    def move(reference: str) -> str:
        if reference.startswith(("#/$defs/", "#/definitions/")) or not reference.startswith("#"):
            return reference
        if reference == "#" or reference.startswith("#/"):
            return f"#/properties/{name}{reference[1:]}"
        return reference  # an anchor

    moved = move_references(shown, move)
    definitions = {key: moved[key] for key in definitions}
    inner = {key: value for key, value in moved.items() if key not in definitions}
    if not inner.get("properties"):
        del inner["properties"]
    return {
        "type": "object",
        "properties": {name: inner},
        "required": [name],
        "additionalProperties": False,
        **definitions,
    }


def has_combinators(shown: Mapping[str, Any]) -> bool:
    """Say whether the root holds what providers refuse there."""
    return any(key in shown for key in _COMBINATORS)


def _mended(node: Schema) -> Schema:
    """Say one schema otherwise, or return it."""
    nulls = [key for key, value in node.items() if value is None and key not in _MAY_BE_NULL]
    new = {key: value for key, value in node.items() if key not in nulls} if nulls else node
    for mend in (_tuple, _bounds, _choices, _pattern, _parts):
        new = mend(new)
    return new


def _tuple(node: Schema) -> Schema:
    """Older drafts list the items of a tuple in ``items``."""
    items = node.get("items")
    if not isinstance(items, list) or "prefixItems" in node:
        return node
    new = {key: value for key, value in node.items() if key not in ("items", "additionalItems")}
    rest = node.get("additionalItems", {})
    if items:
        new["prefixItems"] = items
        if rest is False:
            new.setdefault("maxItems", len(items))
    new["items"] = rest if isinstance(rest, Mapping) else {}
    return new


def _bounds(node: Schema) -> Schema:
    """In draft 4, ``exclusiveMinimum`` is a flag beside ``minimum``."""
    new = node
    for flag, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(node.get(flag), bool):
            new = {key: value for key, value in new.items() if key != flag}
            if node[flag] and bound in new:
                new[flag] = new.pop(bound)
    return new


def _choices(node: Schema) -> Schema:
    """Drop choices that the type forbids anyway: providers compare the two."""
    choices = node.get("enum")
    if not isinstance(choices, list):
        return node
    kinds = node.get("type")
    named = [kinds] if isinstance(kinds, str) else _list(kinds)
    kept = [value for value in choices if not named or any(_is_a(value, kind) for kind in named)]
    if kept and len(kept) == len(choices):
        return node
    rest = {key: value for key, value in node.items() if key != "enum"}
    return {**rest, "enum": kept} if kept else rest


def _is_a(value: Any, kind: Any) -> bool:
    types: tuple[type, ...] | None = _TYPES.get(kind) if isinstance(kind, str) else None
    if types is None:
        return True  # a mistake, which is found elsewhere
    if isinstance(value, bool):
        return bool(kind == "boolean")
    if kind == "integer" and isinstance(value, float):
        return bool(value.is_integer())
    return isinstance(value, types)


def _pattern(node: Schema) -> Schema:
    """Drop patterns that are no regular expressions: they say nothing to anybody."""
    new = node
    pattern = node.get("pattern")
    if isinstance(pattern, str) and not _is_pattern(pattern):
        new = {key: value for key, value in node.items() if key != "pattern"}
    patterns = node.get("patternProperties")
    if isinstance(patterns, Mapping) and not all(_is_pattern(key) for key in patterns):
        new = {**new, "patternProperties": {key: patterns[key] for key in patterns if _is_pattern(key)}}
    return new


@lru_cache(maxsize=1024)
def _is_pattern(pattern: str) -> bool:
    return SchemaChecker({"type": "string", "pattern": pattern}).problem is None


def _parts(node: Schema) -> Schema:
    """Add what providers want to see: ``properties`` of objects, ``items`` of arrays."""
    kind = node.get("type")
    if (kind == "object" or (isinstance(kind, list) and "object" in kind)) and "properties" not in node:
        node = {**node, "properties": {}}
    if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and "items" not in node:
        node = {**node, "items": {}}
    return node
