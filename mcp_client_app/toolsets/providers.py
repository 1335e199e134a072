"""Lists of tools in the form of the model providers and of MCP; what a provider would refuse is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.json_schema import SchemaChecker, schema_problem
from mcp_client_app.naming import MAX_PUBLIC_NAME
from mcp_client_app.toolsets.expression import express, has_combinators, wrap
from mcp_client_app.toolsets.schema_tree import (
    Schema,
    SchemaTooLargeError,
    follow,
    references,
)

__all__ = ["ProviderTools", "Shown", "for_anthropic", "for_mcp", "for_openai"]

OPENAI_MOST = 128
"""Tools in one request."""
OPENAI_DESCRIPTION = 1024
"""Characters."""

_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_PUBLIC_NAME}}}\Z")
_ANTHROPIC_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")


class Shown(Protocol):
    """A tool as a model sees it."""

    @property
    def tool(self) -> ToolInfo: ...
    @property
    def schema(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class ProviderTools:
    """Tools in a provider's form.

    Their schemas are shared with the catalogue: read them, do not change them.
    """

    tools: list[dict[str, Any]] = field(default_factory=list)
    warnings: tuple[str, ...] = ()
    """Which tools were left out or changed, and why."""

    def request(self) -> dict[str, Any]:
        """Return ``{"tools": [...]}``, or ``{}``: providers refuse an empty list."""
        return {"tools": self.tools} if self.tools else {}


class _NotExpressibleError(ValueError):
    """This provider would refuse the tool."""


def for_openai(shown: Iterable[Shown], *, api: Literal["chat", "responses"] = "chat") -> ProviderTools:
    """Return the tools for OpenAI's Chat Completions or Responses, and for servers compatible with these."""
    warnings: list[str] = []

    def entry(item: Shown) -> dict[str, Any]:
        schema = express(item.schema)
        parameters = _checked(wrap(schema) if has_combinators(schema) else schema)
        function: dict[str, Any] = {"name": item.tool.public_name}
        description = _described(item.tool)
        if len(description) > OPENAI_DESCRIPTION:
            description = f"{description[: OPENAI_DESCRIPTION - 3]}..."
            warnings.append(f"The description of {item.tool.public_name!r} is cut for OpenAI.")
        if description:
            function["description"] = description
        function["parameters"] = parameters
        # Strict mode allows only a part of JSON Schema; Responses would take it for granted.
        return (
            {"type": "function", **function, "strict": False}
            if api == "responses"
            else {"type": "function", "function": function}
        )

    tools = _gate(shown, entry, "OpenAI", warnings)
    if len(tools) > OPENAI_MOST:
        warnings.append(
            f"OpenAI takes {OPENAI_MOST} tools at most: {len(tools) - OPENAI_MOST} are left out. "
            "Allow fewer tools."
        )
    return ProviderTools(tools[:OPENAI_MOST], tuple(warnings))


def for_anthropic(shown: Iterable[Shown]) -> ProviderTools:
    """Return the tools for Anthropic's Messages."""
    warnings: list[str] = []

    def entry(item: Shown) -> dict[str, Any]:
        schema = express(item.schema)
        odd_keys = not all(_ANTHROPIC_KEY.match(key) for key in _mapping(schema["properties"]))
        described: dict[str, Any] = {"name": item.tool.public_name}
        if description := _described(item.tool):
            described["description"] = description
        wrapped = wrap(schema) if odd_keys or has_combinators(schema) else schema
        return {**described, "input_schema": _checked(wrapped)}

    return ProviderTools(_gate(shown, entry, "Anthropic", warnings), tuple(warnings))


def for_mcp(shown: Iterable[Shown]) -> ProviderTools:
    """Return the tools in the form of MCP's ``tools/list``, under their public names, schemas as they are."""

    def entry(item: Shown) -> dict[str, Any]:
        tool = item.tool
        schema = item.schema if item.schema.get("type") == "object" else {**item.schema, "type": "object"}
        listed: dict[str, Any] = {"name": tool.public_name}
        listed |= {"title": tool.title} if tool.title else {}
        listed |= {"description": tool.description} if tool.description else {}
        listed["inputSchema"] = schema
        if tool.output_schema is not None:
            listed["outputSchema"] = tool.output_schema
        hints = {
            "title": tool.annotations.title,
            "readOnlyHint": tool.annotations.read_only,
            "destructiveHint": tool.annotations.destructive,
            "idempotentHint": tool.annotations.idempotent,
            "openWorldHint": tool.annotations.open_world,
        }
        if hints := {name: value for name, value in hints.items() if value is not None}:
            listed["annotations"] = hints
        return listed

    return ProviderTools([entry(item) for item in shown])


def _gate(
    shown: Iterable[Shown],
    entry: Callable[[Shown], dict[str, Any]],
    provider: str,
    warnings: list[str],
) -> list[dict[str, Any]]:
    tools = []
    for item in shown:
        name = item.tool.public_name
        try:
            if not _NAME.match(name):
                raise _NotExpressibleError("its name is too long or holds characters that are not allowed")
            tools.append(entry(item))
        except (_NotExpressibleError, SchemaTooLargeError) as error:
            warnings.append(f"The tool {name!r} is left out for {provider}: {error}.")
    return tools


def _described(tool: ToolInfo) -> str:
    return (tool.description or tool.title or tool.annotations.title or "").strip()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _checked(schema: Schema) -> Schema:
    """Return the schema if it is one that a provider can take.

    Raises:
        _NotExpressibleError: It has mistakes, is no object, or refers to what is not there.
    """
    problem = schema_problem(schema)
    if problem is None and schema["type"] != "object":
        problem = f"its root is of type {schema['type']!r}, not an object"
    for reference in references(schema) if problem is None else ():
        if not reference.startswith("#"):
            problem = f"it refers to {reference[:100]!r}, which lies elsewhere"
        elif _is_endless(schema, reference):
            problem = f"the reference {reference[:100]!r} leads to itself"
    problem = problem or SchemaChecker(schema).problem
    if problem is not None:
        raise _NotExpressibleError(f"its schema cannot be used ({problem.rstrip('.')})")
    return schema


def _is_endless(schema: Schema, reference: str) -> bool:
    seen: set[str] = set()
    while reference not in seen:
        seen.add(reference)
        target = follow(schema, reference)
        if not isinstance(target, Mapping) or not isinstance(target.get("$ref"), str):
            return False
        reference = target["$ref"]
    return True
