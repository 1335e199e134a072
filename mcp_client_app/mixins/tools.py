"""A tool in the form in which agents keep it, and results in the form in which models read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["MCPTool", "validation_message", "wrapped"]

INSTRUCTION = (
    "Parse this JSON data and provide a human-readable summary. "
    "Your answer must be a plain text string, not a JSON object."
)


@dataclass
class MCPTool:
    """A tool with its schema."""

    name: str
    """The name on the server."""
    description: str
    input_schema: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, tool: Mapping[str, Any]) -> MCPTool:
        """Read an entry of an answer to ``tools/list``."""
        schema = tool.get("inputSchema")
        return cls(
            name=str(tool["name"]),
            description=str(tool.get("description") or ""),
            input_schema=dict(schema) if isinstance(schema, Mapping) else {},
        )

    def to_gaia_format(self, server_name: str) -> dict[str, Any]:
        """Return the entry of an agent's registry, without its ``function``.

        ``parameters`` has an object with ``type``, ``required`` and ``description`` for each parameter.
        """
        properties = self.input_schema.get("properties")
        required = self.input_schema.get("required")
        named = required if isinstance(required, list) else []
        return {
            "name": f"mcp_{server_name}_{self.name}",
            "description": f"[MCP:{server_name}] {self.description}",
            "parameters": {
                name: {
                    "type": _type_of(schema),
                    "required": name in named,
                    "description": str(schema.get("description", "")) if isinstance(schema, Mapping) else "",
                }
                for name, schema in (properties.items() if isinstance(properties, Mapping) else ())
            },
            "atomic": True,
            "_mcp_server": server_name,
            "_mcp_tool_name": self.name,
        }


def _type_of(schema: object) -> str:
    """Return the one type that tells a model most; the registry has no room for unions."""
    if not isinstance(schema, Mapping):
        return "string"
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        return next((str(item) for item in kind if item != "null"), "string")
    for union in ("anyOf", "oneOf"):
        choices = schema.get(union)
        kinds = [_type_of(choice) for choice in choices] if isinstance(choices, list) else []
        if found := next((item for item in kinds if item != "null"), None):
            return found
    return "object" if "$ref" in schema or "properties" in schema or "allOf" in schema else "string"


def wrapped(tool_name: str, response: Any) -> Any:
    """Say around a response what it is and what to do with it; what is no object comes back unchanged."""
    if not isinstance(response, dict):
        return response
    if "error" in response:
        return {"status": "error", "error": response["error"], "data": response}
    return {
        "status": "success",
        "message": f"Tool '{tool_name}' returned data",
        "data": response,
        "instruction": INSTRUCTION,
    }


def validation_message(tool: str, problem: str, schema: Any, arguments: Any) -> str:
    """Return an error that lets a model correct itself: what is wrong, what is expected, what was given."""
    return (
        f"MCP tool '{tool}' input validation failed.\n\n"
        f"Error details:\n{problem}\n\n"
        f"Expected tool schema:\n{_shown(schema)}\n\n"
        f"Your arguments:\n{_shown(arguments)}"
    )


def _shown(value: Any) -> str:
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError):  # keys that JSON cannot have, circles
        return repr(value)
