"""Notices a model that makes the same call over and over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart

from mcp_client_app import json_codec

__all__ = ["times_in_a_row"]


def times_in_a_row(messages: Sequence[ModelMessage], call_id: str) -> int:
    """Return how often a call was made in a row, up to and with the one of this id."""
    calls = _backwards(messages)
    this = next((call for call in calls if call.tool_call_id == call_id), None)
    if this is None:
        return 0
    times, wanted = 1, _key(this)
    for call in calls:
        if _key(call) != wanted:
            break
        times += 1
    return times


def _backwards(messages: Sequence[ModelMessage]) -> Iterator[ToolCallPart]:
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            yield from reversed(message.tool_calls)


def _key(call: ToolCallPart) -> tuple[str, Any]:
    if not isinstance(call.args, str):
        return call.tool_name, json_codec.canonical(call.args or {})
    try:
        return call.tool_name, json_codec.canonical(json_codec.loads(call.args.encode("utf-8", "replace")))
    except (ValueError, TypeError):
        return call.tool_name, call.args
