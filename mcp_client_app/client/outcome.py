"""Gives a tool's result the form that the caller asked for, in the caller's own thread. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mcp_client_app import json_codec
from mcp_client_app.datatypes import ToolResult
from mcp_client_app.exceptions import ToolError
from mcp_client_app.json_schema import SchemaChecker

__all__ = ["CallOptions", "blocks", "checked", "shaped"]

LONGEST_MESSAGE = 2000


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What a caller wants of a result; see ``call_tool``."""

    raise_on_error: bool = False
    structured: bool = False
    content: str | None = None

    def __post_init__(self) -> None:
        if self.content not in (None, "blocks"):
            raise ValueError(f"content must be None or 'blocks', not {self.content!r}.")


def shaped(result: ToolResult, checker: SchemaChecker | None, options: CallOptions) -> Any:
    """Return the result, or the part of it that was asked for.

    Raises:
        ToolError: The tool reported a failure, and the caller wants an exception or a bare value.
    """
    result = checked(result, checker)
    bare = options.structured or options.content is not None
    if result.is_error and (options.raise_on_error or bare):
        raise ToolError(
            result.text[:LONGEST_MESSAGE]
            or f"The tool {result.tool!r} reported a failure without a message.",
            server=result.server,
            tool=result.tool,
            result=result,
        )
    if options.structured:
        return result.structured
    if options.content == "blocks":
        return blocks(result)
    return result


def checked(result: ToolResult, checker: SchemaChecker | None) -> ToolResult:
    """Hold the structured content to the output schema; a mismatch is a warning, for the tool has run."""
    if checker is None:
        return result
    if checker.problem is not None:
        found = [f"the tool's output schema is unusable: {checker.problem}"]
    elif "structuredContent" not in result.raw:
        found = ["the tool declares an output schema but gave no structured content"]
    else:
        found = [
            f"the structured content does not fit the output schema: {error}"
            for error in checker.errors(result.structured)
        ]
    return replace(result, warnings=(*result.warnings, *found)) if found else result


def blocks(result: ToolResult) -> tuple[Any, ...]:
    """Merge content and structured content: structured content that is itself blocks, else its JSON as text.

    Structured content that only repeats the text is left out.
    """
    structured = result.structured
    if structured is None:
        return result.content
    items = structured if isinstance(structured, list) else [structured]
    if items and all(isinstance(item, dict) and isinstance(item.get("type"), str) for item in items):
        extra = tuple(item for item in items if item not in result.content)
        return (*result.content, *extra)
    text = json_codec.dumps(structured).decode()
    for block in result.content:
        if block.get("type") == "text" and _same_json(str(block.get("text")), structured):
            return result.content
    return (*result.content, {"type": "text", "text": text})


def _same_json(text: str, value: Any) -> bool:
    try:
        return bool(json_codec.loads(text.encode("utf-8", "surrogatepass")) == value)
    except ValueError:
        return False
