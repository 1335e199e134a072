"""Makes arguments that fit a tool's schema, from the schema alone: the fewest that are allowed, or all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

DEEPEST = 6
"""Levels down to which all properties are given, below only the required ones."""

TEXTS = (
    "text",
    "A1",
    "https://example.org/a",
    "2026-01-31",
    "2026-01-31T10:00:00Z",
    "2026-01-01to2026-01-31",
    "123e4567-e89b-42d3-a456-426614174000",
    "a.example",
    "a.png",
    "ABC",
    "ABC-1",
    "1-2",
    "=A1",
    "SlicerStyleLight1",
    "{}",
)
FORMATS = {
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "uri": "https://example.org/a",
    "date": "2026-01-31",
    "date-time": "2026-01-31T10:00:00Z",
}


def sample(schema: Any, root: Mapping[str, Any], *, full: bool, depth: int = 0) -> Any:
    """Return a value of the schema."""
    if not isinstance(schema, Mapping):
        return "text"
    if "$ref" in schema:
        return sample(_target(schema["$ref"], root), root, full=full, depth=depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            branch = {**{k: v for k, v in schema.items() if k != key}, **_plain(schema[key][0], root)}
            return sample(branch, root, full=full, depth=depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][-1 if full else 0]
    return _of_type(schema, root, full=full, depth=depth)


def _of_type(schema: Mapping[str, Any], root: Mapping[str, Any], *, full: bool, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        return _object(schema, root, full=full, depth=depth)
    if kind == "array":
        count = max(schema.get("minItems", 0), 1 if full and depth < DEEPEST else 0)
        return [sample(schema.get("items"), root, full=full, depth=depth + 1) for _ in range(count)]
    if kind in ("integer", "number"):
        return _number(schema)
    return {"boolean": full, "null": None}[kind] if kind in ("boolean", "null") else _text(schema)


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], *, full: bool, depth: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    required = schema.get("required") or []
    names = properties if full and depth < DEEPEST else required
    made = {
        name: sample(properties.get(name, {}), root, full=full, depth=depth + 1)
        for name in dict.fromkeys([*required, *names])
    }
    others = schema.get("additionalProperties")
    if full and isinstance(others, Mapping) and not properties:
        made["text"] = sample(others, root, full=full, depth=depth + 1)
    return made


def _number(schema: Mapping[str, Any]) -> int:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    return int(max(low, min(1, schema.get("maximum", 1))))


def _text(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minLength", 0), schema.get("maxLength", 10_000)
    pattern = schema.get("pattern", "")
    for text in (FORMATS.get(schema.get("format", ""), "text"), *TEXTS):
        text = text.ljust(least, "a")[:most]
        if re.search(pattern, text):
            return text
    raise AssertionError(f"no sample for {pattern!r}")


def _plain(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(schema, Mapping):
        return {}
    return _plain(_target(schema["$ref"], root), root) if "$ref" in schema else schema


def _target(reference: str, root: Mapping[str, Any]) -> Any:
    node: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        node = node[part.replace("~1", "/").replace("~0", "~")]
    return node


def spoiled(arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield arguments of which one is missing, one is of another type, or one is unknown."""
    for name, value in arguments.items():
        yield {key: each for key, each in arguments.items() if key != name}
        others: list[Any] = ["text", 7, True, None, [], {}]
        for other in others:
            if type(other) is not type(value):
                yield {**arguments, name: other}
    yield {**arguments, "no such argument": 1}
