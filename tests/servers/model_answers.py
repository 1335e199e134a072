"""What the fakes of the providers' APIs answer: one turn of a model, whole and as events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Event = tuple[str | None, dict[str, Any]]
"""The name of a server-sent event, if it has one, and its data."""


@dataclass(frozen=True)
class Call:
    """The model asks for a tool."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    """A text is sent as it is, where the API sends arguments as text."""
    id: str = ""
    """Empty: made from round and position, in the API's own form."""

    @property
    def text(self) -> str:
        """The arguments as JSON text."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Turn:
    """What the model says in one turn."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    hold: bool = False
    """Stop in the middle of a streamed text until the fake's ``resume`` is set."""


@dataclass(frozen=True)
class Failure:
    """The provider fails instead."""

    status: int
    message: str = "made to fail"
    headers: dict[str, str] = field(default_factory=dict)


USAGE = (11, 5)
"""Tokens in and out of every turn."""


def pieces(text: str) -> list[str]:
    """Cut a text as a model streams it; joined, they are the text."""
    return re.findall(r"\S*\s*", text)[:-1] or ([text] if text else [])


def _ids(turn: Turn, number: int, prefix: str) -> list[str]:
    return [call.id or f"{prefix}{number}_{place}" for place, call in enumerate(turn.calls)]


# Chat Completions ----------------------------------------------------------------------


def chat(turn: Turn, number: int, model: str) -> dict[str, Any]:
    """Return a ``chat.completion``."""
    calls = [
        {"id": given, "type": "function", "function": {"name": call.name, "arguments": call.text}}
        for given, call in zip(_ids(turn, number, "call_"), turn.calls, strict=True)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": _finish(turn), "logprobs": None}
    return {**_chat_head(number, model, "chat.completion"), "choices": [choice], "usage": _chat_usage()}


def chat_events(turn: Turn, number: int, model: str, *, usage: bool) -> Iterator[Event]:
    """Yield the chunks; the final ``[DONE]`` is the server's."""
    head = _chat_head(number, model, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        return None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(turn.text):
        yield chunk({"content": piece})
    for place, (given, call) in enumerate(zip(_ids(turn, number, "call_"), turn.calls, strict=True)):
        function = {"name": call.name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": place, "id": given, "type": "function", "function": function}]})
        for piece in _sevens(call.text):
            yield chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(turn))
    if usage:
        yield None, {**head, "choices": [], "usage": _chat_usage()}


def _chat_head(number: int, model: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 1_790_000_000, "model": model}


def _chat_usage() -> dict[str, int]:
    return {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)}


def _finish(turn: Turn) -> str:
    return "tool_calls" if turn.calls else "stop"


def _sevens(text: str) -> list[str]:
    return [text[start : start + 7] for start in range(0, len(text), 7)]


# Responses -----------------------------------------------------------------------------


def responses(turn: Turn, number: int, model: str) -> dict[str, Any]:
    """Return a ``response``."""
    return _response(number, model, "completed", _items(turn, number), usage=True)


def responses_events(turn: Turn, number: int, model: str) -> Iterator[Event]:
    """Yield the events of a streamed response."""
    for order, (name, data) in enumerate(_responses_events(turn, number, model)):
        yield name, {"type": name, "sequence_number": order, **data}


def _responses_events(turn: Turn, number: int, model: str) -> Iterator[tuple[str, dict[str, Any]]]:
    items = _items(turn, number)
    begun = _response(number, model, "in_progress", [], usage=False)
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for place, item in enumerate(items):
        where = {"output_index": place, "item_id": item["id"]}
        if item["type"] == "message":
            yield from _streamed_text(item, where)
        else:
            empty = {**item, "status": "in_progress", "arguments": ""}
            yield "response.output_item.added", {"output_index": place, "item": empty}
            for piece in _sevens(item["arguments"]):
                yield "response.function_call_arguments.delta", {**where, "delta": piece}
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield "response.function_call_arguments.done", {**where, **done}
        yield "response.output_item.done", {"output_index": place, "item": item}
    yield "response.completed", {"response": _response(number, model, "completed", items, usage=True)}


def _streamed_text(item: dict[str, Any], where: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    (part,) = item["content"]
    empty = {**item, "status": "in_progress", "content": []}
    yield "response.output_item.added", {"output_index": where["output_index"], "item": empty}
    where = {**where, "content_index": 0}
    yield "response.content_part.added", {**where, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.output_text.delta", {**where, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**where, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**where, "part": part}


def _items(turn: Turn, number: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if turn.text:
        part = {"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}
        items.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for given, call in zip(_ids(turn, number, "call_"), turn.calls, strict=True):
        item = {"type": "function_call", "id": f"fc_{given}"[:64], "call_id": given, "name": call.name}
        items.append({**item, "arguments": call.text, "status": "completed"})
    return items


def _response(
    number: int, model: str, status: str, output: list[dict[str, Any]], *, usage: bool
) -> dict[str, Any]:
    counted = {
        "input_tokens": USAGE[0],
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": USAGE[1],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sum(USAGE),
    }
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": status,
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": counted if usage else None,
    }


# Messages ------------------------------------------------------------------------------


def messages(turn: Turn, number: int, model: str) -> dict[str, Any]:
    """Return a ``message``."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
    for given, call in zip(_ids(turn, number, "toolu_"), turn.calls, strict=True):
        blocks.append({"type": "tool_use", "id": given, "name": call.name, "input": _input(call)})
    return {**_message(number, model), "content": blocks, "stop_reason": _stop(turn)}


def messages_events(turn: Turn, number: int, model: str) -> Iterator[Event]:
    """Yield the events of a streamed message."""
    for name, data in _messages_events(turn, number, model):
        yield name, {"type": name, **data}


def _messages_events(turn: Turn, number: int, model: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "message_start", {"message": _message(number, model)}
    yield "ping", {}
    place = 0
    if turn.text:
        yield "content_block_start", {"index": place, "content_block": {"type": "text", "text": ""}}
        for piece in pieces(turn.text):
            yield "content_block_delta", {"index": place, "delta": {"type": "text_delta", "text": piece}}
        yield "content_block_stop", {"index": place}
        place += 1
    for given, call in zip(_ids(turn, number, "toolu_"), turn.calls, strict=True):
        block = {"type": "tool_use", "id": given, "name": call.name, "input": {}}
        yield "content_block_start", {"index": place, "content_block": block}
        for piece in _sevens(call.text):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield "content_block_delta", {"index": place, "delta": delta}
        yield "content_block_stop", {"index": place}
        place += 1
    yield (
        "message_delta",
        {
            "delta": {"stop_reason": _stop(turn), "stop_sequence": None},
            "usage": {"output_tokens": USAGE[1]},
        },
    )
    yield "message_stop", {}


def _message(number: int, model: str) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": USAGE[0], "output_tokens": USAGE[1]},
    }


def _input(call: Call) -> Any:
    return json.loads(call.text) if isinstance(call.arguments, str) else call.arguments


def _stop(turn: Turn) -> str:
    return "tool_use" if turn.calls else "end_turn"
