"""Repairs of listings: a bad entry is quarantined, the good ones stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp_client_app.client.leniency.fields import about, drop, icons
from mcp_client_app.client.leniency.schemas import mended_schema
from mcp_client_app.client.leniency.terms import Terms
from mcp_client_app.naming import has_control_characters

__all__ = ["prompts", "resources", "templates", "tools"]


def tools(terms: Terms, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Mend ``tools/list``."""
    return _listing(result, "tools", notes, lambda item: _tool(terms, item, notes))


def _tool(terms: Terms, item: dict[str, Any], notes: list[str]) -> str | None:
    name = item.get("name")
    if problem := _bad_name(name):
        return problem
    label = f"tool {name!r}"
    schema = item.get("inputSchema")
    if not isinstance(schema, dict):
        return f"{label}: its inputSchema is no object"
    if schema.get("type") != "object":
        return f"{label}: its inputSchema is not of type object"
    item["inputSchema"] = mended_schema(schema, f"{label}: its inputSchema", notes)
    output = item.get("outputSchema")
    if "outputSchema" in item and (
        not isinstance(output, dict) or (not terms.modern and output.get("type") != "object")
    ):
        del item["outputSchema"]
        notes.append(f"{label}: its outputSchema is unusable and was left out")
    elif "outputSchema" in item:
        item["outputSchema"] = mended_schema(item["outputSchema"], f"{label}: its outputSchema", notes)
    drop(item, label, notes, **_TOOL)
    if "execution" in item and item["execution"].get("taskSupport") not in _TASK_SUPPORT:
        del item["execution"]
        notes.append(f"{label}: its execution is unusable and was left out")
    annotations = item.get("annotations")
    if annotations is not None:
        item["annotations"] = hints = dict(annotations)
        drop(hints, label, notes, **_HINTS)
    icons(item, label, notes)
    return None


_TASK_SUPPORT = (None, "forbidden", "optional", "required")
_TOOL: dict[str, type] = {
    "description": str,
    "title": str,
    "annotations": dict,
    "_meta": dict,
    "icons": list,
    "execution": dict,
}
_HINTS: dict[str, type] = {
    "title": str,
    "readOnlyHint": bool,
    "destructiveHint": bool,
    "idempotentHint": bool,
    "openWorldHint": bool,
}


def resources(_: Terms, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Mend ``resources/list``."""
    return _listing(result, "resources", notes, lambda item: _resource(item, "uri", notes))


def templates(_: Terms, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Mend ``resources/templates/list``."""
    return _listing(result, "resourceTemplates", notes, lambda item: _resource(item, "uriTemplate", notes))


def _resource(item: dict[str, Any], key: str, notes: list[str]) -> str | None:
    if not isinstance(item.get(key), str) or not item[key]:
        return f"a resource without {key}"
    label = f"resource {item[key]!r}"
    if not isinstance(item.get("name"), str):
        item["name"] = item[key]
    about(item, label, notes)
    return None


def prompts(_: Terms, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Mend ``prompts/list``."""
    return _listing(result, "prompts", notes, lambda item: _prompt(item, notes))


def _prompt(item: dict[str, Any], notes: list[str]) -> str | None:
    if problem := _bad_name(item.get("name")):
        return problem.replace("tool", "prompt", 1)
    label = f"prompt {item['name']!r}"
    drop(item, label, notes, description=str, title=str, arguments=list, _meta=dict, icons=list)
    arguments = []
    for argument in item.get("arguments") or []:
        if isinstance(argument, dict) and isinstance(argument.get("name"), str):
            argument = dict(argument)
            drop(argument, label, notes, description=str, title=str, required=bool)
            arguments.append(argument)
        else:
            notes.append(f"{label}: an argument without a name was left out")
    if "arguments" in item:
        item["arguments"] = arguments
    icons(item, label, notes)
    return None


def _listing(
    result: dict[str, Any], key: str, notes: list[str], mend: Callable[[dict[str, Any]], str | None]
) -> dict[str, Any]:
    items = result.get(key)
    if not isinstance(items, list):
        notes.append(f"{key} was no list")
        items = []
    kept = []
    for item in items:
        if not isinstance(item, dict):
            notes.append(f"an entry of {key} is no object")
            continue
        item = {name: value for name, value in item.items() if value is not None or name == "inputSchema"}
        if problem := mend(item):
            notes.append(problem)
        else:
            kept.append(item)
    result[key] = kept
    cursor = result.get("nextCursor")
    if cursor is not None and not isinstance(cursor, str):
        notes.append("nextCursor was no string")
    if not isinstance(cursor, str) or not cursor:
        result.pop("nextCursor", None)
    return result


def _bad_name(name: Any) -> str | None:
    if not isinstance(name, str) or not name.strip():
        return "a tool without a name"
    if has_control_characters(name):
        return f"tool {name!r}: its name holds control characters"
    return None
