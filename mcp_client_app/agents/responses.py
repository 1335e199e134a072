"""Puts a model's response in order before it is acted on, and kept.

Names become those of tools where it is clear what is meant; ids become unique in the run, since the
ledger knows calls by them; what no provider would take back is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart

from mcp_client_app.agents.history import call_ids, fitting_id
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.toolsets import ToolSelection

__all__ = ["ordered"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def ordered(
    response: ModelResponse, before: Sequence[ModelMessage], selection: ToolSelection | None
) -> ModelResponse:
    """Return the response with its calls put in order; the same object if there is nothing to do."""
    if not response.tool_calls:
        return response
    used = set(call_ids(message for message in before if message is not response))
    parts = [
        _ordered(part, used, selection) if isinstance(part, ToolCallPart) else part for part in response.parts
    ]
    if all(one is other for one, other in zip(parts, response.parts, strict=True)):
        return response
    return replace(response, parts=parts)


def _ordered(call: ToolCallPart, used: set[str], selection: ToolSelection | None) -> ToolCallPart:
    name, call_id = _name(call.tool_name, selection), fitting_id(call.tool_call_id, used)
    if (name, call_id) == (call.tool_name, call.tool_call_id):
        return call
    return replace(call, tool_name=name, tool_call_id=call_id)


def _name(said: str, selection: ToolSelection | None) -> str:
    if selection is not None:
        try:
            return selection.find(said).name
        except MCPClientError:
            pass  # the model is told when the call is to be made
    return said if _NAME.match(said) else (_NOT_IN_NAMES.sub("_", said)[:64] or "unnamed")
