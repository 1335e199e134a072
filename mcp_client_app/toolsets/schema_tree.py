"""JSON Schemas as trees: walked, and changed in copies that share what is unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

__all__ = [
    "Schema",
    "SchemaTooLargeError",
    "follow",
    "move_references",
    "references",
    "resolved",
    "rewritten",
    "schemas",
]

Schema = dict[str, Any]

DEEPEST = 100
"""Schemas within each other: deeper ones would break whatever else walks them."""
MOST = 20_000
"""Schemas in one: what refers to itself as a Python object would be walked without end."""

_ONE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_LISTS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_MAPS = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


class SchemaTooLargeError(ValueError):
    """The schema is nested too deeply, or holds too many schemas."""


def schemas(root: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all within it that are objects; references are not followed.

    Raises:
        SchemaTooLargeError: At the limits ``DEEPEST`` and ``MOST``.
    """
    left = [(root, 0)]
    seen = 0
    while left:
        node, depth = left.pop()
        if not isinstance(node, Mapping):
            continue
        seen += 1
        if depth > DEEPEST or seen > MOST:
            raise SchemaTooLargeError("it is nested too deeply or too large")
        yield node
        for key, value in node.items():
            left.extend((child, depth + 1) for child in _children(key, value))


def _children(key: str, value: Any) -> Iterator[Any]:
    if key in _LISTS and isinstance(value, list):
        yield from value
    elif key in _MAPS and isinstance(value, Mapping):
        yield from value.values()
    elif key in _ONE:
        yield value


def rewritten(root: Any, change: Callable[[Schema], Schema]) -> Any:
    """Return the schema with ``change`` applied to all schemas in it, the innermost first.

    ``change`` returns its argument if it has nothing to change, and never alters it.

    Raises:
        SchemaTooLargeError: As for ``schemas``.
    """
    for _ in schemas(root):
        pass  # the limits hold: the recursion below ends
    return _rewritten(root, change)


def _rewritten(node: Any, change: Callable[[Schema], Schema]) -> Any:
    if not isinstance(node, Mapping):
        return node
    changed: Schema = {}
    for key, value in node.items():
        new = _rewritten_value(key, value, change)
        if new is not value:
            changed[key] = new
    if changed:
        return change({**node, **changed})
    return change(node if isinstance(node, dict) else dict(node))


def _rewritten_value(key: str, value: Any, change: Callable[[Schema], Schema]) -> Any:
    if key in _LISTS and isinstance(value, list):
        items = [_rewritten(item, change) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if key in _MAPS and isinstance(value, Mapping):
        members = {name: _rewritten(item, change) for name, item in value.items()}
        return value if all(members[name] is value[name] for name in members) else members
    return _rewritten(value, change) if key in _ONE else value


def references(root: Any) -> Iterator[str]:
    """Yield all references in a schema."""
    for node in schemas(root):
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(node.get(key), str):
                yield node[key]


def follow(root: Mapping[str, Any], reference: str) -> Any:
    """Return what a reference within ``root`` points at, or None; one step only."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    node: Any = root
    for part in reference[2:].split("/"):
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping):
            node = node.get(name)
        elif isinstance(node, list) and name.isdecimal() and int(name) < len(node):
            node = node[int(name)]
        else:
            return None
    return node


def resolved(node: Mapping[str, Any], root: Mapping[str, Any]) -> Schema:
    """Return ``node`` with what its reference points at in place of the reference.

    A reference that leads nowhere or to itself stays.
    """
    found = dict(node)
    seen: set[str] = set()
    while isinstance(reference := found.get("$ref"), str) and reference not in seen:
        seen.add(reference)
        target = follow(root, reference)
        if not isinstance(target, Mapping):
            break
        found = {**target, **{key: value for key, value in found.items() if key != "$ref"}}
    return found


def move_references(root: Schema, moves: Callable[[str], str]) -> Schema:
    """Return the schema with each reference replaced by what ``moves`` makes of it."""

    def change(node: Schema) -> Schema:
        reference = node.get("$ref")
        if not isinstance(reference, str) or (moved := moves(reference)) == reference:
            return node
        return {**node, "$ref": moved}

    moved: Schema = rewritten(root, change)
    return moved
