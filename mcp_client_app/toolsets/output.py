"""Output filters: a tool's result is cut, reduced or rewritten before a model reads it.

A filter that fails never lets the unfiltered result through: what stands in its place says so.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mcp_client_app import json_codec
from mcp_client_app.configuration.output_filters import (
    Cut,
    DropBinary,
    Every,
    Named,
    OutputFilter,
    Pick,
    parse_filter_list,
    parse_output_filters,
)
from mcp_client_app.datatypes import ToolFilter, ToolInfo, ToolResult
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.naming import normalise_tool_name
from mcp_client_app.toolsets.binary import Binary

__all__ = ["Resolve", "apply_filters", "best_pattern", "output_filters_for", "parse_output_filters"]

Resolve = Callable[[str], Callable[..., Any]]
"""Finds the callable of a name: ``callable(result: ToolResult, tool: ToolInfo) -> ToolResult | str``."""

Block = Mapping[str, Any]


class _FilterError(Exception):
    """Why a filter could not do its work; holds nothing of the result."""


def best_pattern(patterns: Iterable[str], tool: ToolInfo) -> str | None:
    """Return which of several names and patterns says what holds for a tool, or None.

    A name beats patterns, and the longest pattern the shorter ones: databases do not keep the
    order of an object's keys.
    """
    names = {normalise_tool_name(tool.name), normalise_tool_name(tool.public_name)}
    fitting = [
        pattern
        for pattern in patterns
        if normalise_tool_name(pattern) in names or ToolFilter((pattern,)).allows(tool.name, tool.public_name)
    ]
    return max(
        fitting,
        key=lambda pattern: (normalise_tool_name(pattern) in names, len(pattern), pattern),
        default=None,
    )


def output_filters_for(tool: ToolInfo, *levels: Mapping[str, Sequence[Any]]) -> tuple[OutputFilter, ...]:
    """Return the filters of a tool: those of the first level that says anything about it.

    Raises:
        ConfigurationError: What is written down there are no filters.
    """
    for level in levels:
        pattern = best_pattern(level, tool)
        if pattern is not None:
            return parse_filter_list(level[pattern], field=f"output_filters.{pattern}")
    return ()


def apply_filters(
    filters: Sequence[OutputFilter], result: ToolResult, *, tool: ToolInfo, resolve: Resolve
) -> ToolResult:
    """Return the result as the filters leave it, one after the other; without any, as it is.

    Nothing else of the original is left in it: ``raw`` is empty, and so are warnings, which may quote
    it, where more was done than to cut or to drop. If a filter fails, the result holds a text that
    says which one and why, and a warning.
    """
    for number, each in enumerate(filters, 1):
        try:
            result = replace(_applied(each, result, tool, resolve), raw={})
        except _FilterError as error:
            text = (
                f"[The tool has run, but its result is not shown: output filter {number} ({each}) "
                f"failed: {error}.]"
            )
            return replace(
                result,
                content=({"type": "text", "text": text},),
                structured=None,
                raw={},
                warnings=(text.strip("[]"),),
            )
    return result


def _applied(each: OutputFilter, result: ToolResult, tool: ToolInfo, resolve: Resolve) -> ToolResult:
    match each:
        case Cut():
            return _cut(result, each.characters)
        case Pick():
            # The words of a failure are no JSON, and no such thing was to be picked from them.
            return result if result.is_error else _picked(result, each)
        case DropBinary():
            return replace(result, content=tuple(_without_binary(block) for block in result.content))
        case Named():
            return _called(each, result, tool, resolve)


# cut ----------------------------------------------------------------------------------


def _cut(result: ToolResult, limit: int) -> ToolResult:
    content = result.content
    structured = result.structured
    if structured is not None:
        written = _json(structured)
        if len(written) > limit:
            structured = None
            if not any(_text_of(block).strip() for block in content):
                content = ({"type": "text", "text": written}, *content)
    missing = sum(len(_text_of(block)) for block in content) - limit
    if missing <= 0:
        return replace(
            result,
            content=content,
            structured=structured,
            truncated=result.truncated or structured is not result.structured,
        )
    kept: list[Block] = []
    left = limit
    for block in content:
        text = _text_of(block)
        if not text:
            kept.append(block)
        elif left > 0:
            shown = text[:left]
            left -= len(text)
            kept.append(
                _with_text(block, shown if left > 0 else f"{shown}\n[cut: {missing} more characters]")
            )
    return replace(result, content=tuple(kept), structured=structured, truncated=True)


def _text_of(block: Block) -> str:
    inner = block.get("resource")
    text = inner.get("text") if isinstance(inner, Mapping) else block.get("text")
    return text if isinstance(text, str) else ""


def _with_text(block: Block, text: str) -> Block:
    inner = block.get("resource")
    if isinstance(inner, Mapping):
        return {**block, "resource": {**inner, "text": text}}
    return {**block, "text": text}


# pick ---------------------------------------------------------------------------------


def _picked(result: ToolResult, pick: Pick) -> ToolResult:
    value = _at(_data(result), pick)
    text = value if isinstance(value, str) else _json(value)
    return replace(result, content=({"type": "text", "text": text},), structured=value, warnings=())


def _data(result: ToolResult) -> Any:
    if result.structured is not None:
        return result.structured
    try:
        return json_codec.loads(result.text.encode("utf-8", "replace"))
    except ValueError:
        raise _FilterError("the result is no JSON") from None


def _at(data: Any, pick: Pick) -> Any:
    """Follow the path; after a ``[*]``, to all that it leads to: a list, perhaps an empty one."""
    found = [data]
    for step in pick.steps:
        found = [item for node in found for item in _children(node, step)]
    if Every in pick.steps:
        return found
    if not found:
        raise _FilterError("there is nothing at its path")
    return found[0]


def _children(node: Any, step: str | int | type[Every]) -> Iterable[Any]:
    if isinstance(node, Mapping):
        if isinstance(step, str):
            return (node[step],) if step in node else ()
        return tuple(node.values()) if step is Every else ()
    if isinstance(node, list | tuple):
        if step is Every:
            return node
        if isinstance(step, int) and -len(node) <= step < len(node):
            return (node[step],)
    return ()


# drop_binary --------------------------------------------------------------------------


def _without_binary(block: Block) -> Block:
    inner = block.get("resource")
    if isinstance(inner, Mapping):
        if not isinstance(inner.get("blob"), str):
            return block
        if isinstance(inner.get("text"), str):
            return {**block, "resource": {key: value for key, value in inner.items() if key != "blob"}}
        content = Binary("file", inner["blob"], str(inner.get("mimeType") or ""), str(inner.get("uri") or ""))
    elif block.get("type") != "text" and isinstance(block.get("data"), str):
        content = Binary(str(block.get("type")), block["data"], str(block.get("mimeType") or ""))
    else:
        return block
    return {"type": "text", "text": content.note()}


# callables ----------------------------------------------------------------------------


def _called(named: Named, result: ToolResult, tool: ToolInfo, resolve: Resolve) -> ToolResult:
    try:
        function = named.function or resolve(named.name)
        returned = function(result, tool)
    except MCPClientError as error:
        raise _FilterError(str(error).rstrip(".")) from error
    except Exception as error:
        # Its text may quote the result.
        raise _FilterError(f"{type(error).__name__}") from error
    if isinstance(returned, ToolResult):
        return returned
    if isinstance(returned, str):
        return replace(result, content=({"type": "text", "text": returned},), structured=None, warnings=())
    if inspect.iscoroutine(returned):
        returned.close()
    raise _FilterError(f"it returned {type(returned).__name__} instead of a ToolResult or text")


def _json(value: Any) -> str:
    try:
        return json_codec.dumps(value).decode("utf-8", "replace")
    except (TypeError, ValueError):
        raise _FilterError("the result cannot be written as JSON") from None
