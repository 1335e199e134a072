"""Message histories: read from JSON, mended so that every provider takes them, written back.

A history that a caller hands in is not trusted: it may say what was said, but gives no system prompts,
no addresses to fetch, and no calls to make.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    FileUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    repair_messages,
    sanitize_messages,
)

from mcp_client_app.exceptions import InvalidHistoryError, RunStateError

__all__ = [
    "as_json",
    "call_ids",
    "closed",
    "fitting_id",
    "given_history",
    "is_open",
    "read",
    "said",
    "with_fitting_ids",
]

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")
"""What all providers take."""

M = TypeVar("M", ModelRequest, ModelResponse)


def as_json(messages: Sequence[ModelMessage]) -> list[Any]:
    """Return messages as JSON values."""
    found: list[Any] = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return found


def read(stored: Sequence[Any]) -> list[ModelMessage]:
    """Return stored messages.

    Raises:
        InvalidHistoryError: They are none.
    """
    try:
        return ModelMessagesTypeAdapter.validate_python(list(stored))
    except (ValidationError, UserError, TypeError) as error:
        raise InvalidHistoryError(_reason(error)) from None


def given_history(history: Sequence[Any] | None) -> list[Any]:
    """Return a caller's history in the form in which it is stored.

    Args:
        history: ``AgentResult.messages`` of an earlier run, or None.

    Raises:
        InvalidHistoryError: It is no such thing.
        RunStateError: It ends with calls that have no results yet.
    """
    if not history:
        return []
    if isinstance(history, str | bytes) or not isinstance(history, Sequence):
        raise InvalidHistoryError("history: give the list of messages of an earlier result.")
    messages = read(history)
    if is_open(messages):
        raise RunStateError(
            "The history ends with calls that wait for people: decide about these, or cancel that run, first."
        )
    messages = sanitize_messages([_without_orders(each) for each in messages], allowed_file_url_schemes=())
    return as_json(closed(with_fitting_ids(messages)))


def closed(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return a history in which every call has a result, so that something new may be said."""
    return repair_messages(messages)


def is_open(messages: Sequence[ModelMessage]) -> bool:
    """Say whether a history ends with calls that were not made yet."""
    return bool(messages) and isinstance(messages[-1], ModelResponse) and bool(messages[-1].tool_calls)


def said(messages: Iterable[ModelMessage]) -> str:
    """Return what a model has said in words."""
    texts = (
        part.content.strip()
        for message in messages
        if isinstance(message, ModelResponse)
        for part in message.parts
        if isinstance(part, TextPart)
    )
    return "\n\n".join(text for text in texts if text)


def with_fitting_ids(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Give calls new ids where a provider would refuse theirs, or two calls share one; results follow."""
    used: set[str] = set()
    new: dict[str, str] = {}
    found: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            new = {}
            for part in message.tool_calls:
                new[part.tool_call_id] = fitting_id(part.tool_call_id, used)
            found.append(_renamed(message, new))
        else:
            found.append(_renamed(message, new))
    return found


def fitting_id(call_id: str, used: set[str]) -> str:
    """Return the id, or another one if it is used already or no provider's; it counts as used then."""
    fits = _ID.match(call_id) and call_id not in used
    chosen = call_id if fits else f"call_{uuid.uuid4().hex[:24]}"
    used.add(chosen)
    return chosen


def call_ids(messages: Iterable[ModelMessage]) -> Iterator[str]:
    """Yield the ids of all calls."""
    for message in messages:
        if isinstance(message, ModelResponse):
            yield from (part.tool_call_id for part in message.tool_calls)


def _without_orders(message: ModelMessage) -> ModelMessage:
    """Leave out system prompts, addresses that somebody would fetch, and references to a provider's state."""
    if isinstance(message, ModelResponse):
        state = "complete" if message.state == "suspended" else message.state
        return replace(message, state=state, provider_response_id=None, provider_details=None)
    parts = [_plain(part) for part in message.parts if not isinstance(part, SystemPromptPart)]
    return replace(message, parts=parts, instructions=None)


def _plain(part: ModelRequestPart) -> ModelRequestPart:
    if not isinstance(part, UserPromptPart | ToolReturnPart) or not isinstance(part.content, list | tuple):
        return part
    content: Any = ["[a file, left out]" if isinstance(item, FileUrl) else item for item in part.content]
    return replace(part, content=content)


def _renamed(message: M, new: dict[str, str]) -> M:
    parts: Any = [
        replace(part, tool_call_id=new[part.tool_call_id])
        if isinstance(part, ToolCallPart | ToolReturnPart)
        and new.get(part.tool_call_id, part.tool_call_id) != part.tool_call_id
        else part
        for part in message.parts
    ]
    if all(one is other for one, other in zip(parts, message.parts, strict=True)):
        return message
    return replace(message, parts=parts)


def _reason(error: Exception) -> str:
    where = ""
    if isinstance(error, ValidationError):
        where = " at " + ".".join(str(step) for step in error.errors(include_input=False)[0]["loc"][:6])
    return f"history: this is no list of messages as earlier results have them{where}."
