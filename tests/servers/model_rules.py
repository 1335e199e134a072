"""What the providers' APIs demand of conversations, as far as public reports of their refusals tell.

Each function checks the body of one request and returns what a script wants to know of it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.servers.model_schemas import (
    ANTHROPIC_NAME,
    OPENAI_NAME,
    anthropic_schema,
    demand,
    openai_function,
    tools_of,
)

Body = Mapping[str, Any]

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
CHAT_ROLES = ("system", "developer", "user", "assistant", "tool")
RESPONSES_ROLES = ("system", "developer", "user", "assistant")
_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")


@dataclass(frozen=True)
class Asked:
    """What a request asks, whichever API it came over."""

    rounds: int
    """Turns of the model that asked for tools since the last word of the user."""
    turns: int
    """All turns of the model."""
    prompt: str
    """The user's last text."""
    instructions: str = ""
    tools: tuple[str, ...] = ()
    results: Mapping[str, str] = field(default_factory=dict)
    """Results of the last round: id of the call to text, in the order in which they came."""
    failed: tuple[str, ...] = ()
    """Ids whose result says that it is a failure, where the API can say so."""
    images: int = 0
    streamed: bool = False


# Chat Completions ----------------------------------------------------------------------


def check_chat(body: Body) -> Asked:
    """Check a request for ``/v1/chat/completions``."""
    demand(isinstance(body.get("model"), str), "you must provide a model parameter", "model")
    demand(body.get("messages"), "[] is too short - 'messages'", "messages")
    demand(body.get("stream") or "stream_options" not in body, "'stream_options' needs 'stream'.")
    names = []
    for number, tool in enumerate(body.get("tools", ())):
        place = f"tools[{number}]"
        demand(tool.get("type") == "function", f"Invalid value: {tool.get('type')!r}.", f"{place}.type")
        names.append(openai_function(tool["function"], f"{place}.function"))
    tools_of(body, names)
    demand(len(names) <= 128, "Invalid 'tools': array too long. Expected at most 128 items.", "tools")
    return _chat_messages(body, tuple(names))


def _chat_messages(body: Body, tools: tuple[str, ...]) -> Asked:
    open_ids: list[str] = []
    results: dict[str, str] = {}
    rounds = turns = images = 0
    prompt = instructions = ""
    for number, message in enumerate(body["messages"]):
        place = f"messages[{number}]"
        role = message.get("role")
        demand(role in CHAT_ROLES, f"Invalid value: {role!r}.", f"{place}.role")
        if role == "tool":
            _chat_result(message, open_ids, results, place)
            continue
        demand(
            not open_ids,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(open_ids),
            f"{place}.role",
        )
        if role == "assistant":
            open_ids = _chat_calls(message, place)
            results, turns, rounds = {}, turns + 1, rounds + bool(open_ids)
        elif role == "user":
            text, seen = _chat_content(message.get("content"), place)
            images += seen
            # Images of results come as words of the user, in a frame: tool messages hold text alone.
            if not results or "<pyai:" not in text:
                prompt, rounds, results = text, 0, {}
        else:
            instructions += _chat_content(message.get("content"), place)[0]
    demand(not open_ids, f"tool_call_ids did not have response messages: {', '.join(open_ids)}", "messages")
    return Asked(
        rounds, turns, prompt, instructions, tools, results, images=images, streamed=bool(body.get("stream"))
    )


def _chat_result(message: Body, open_ids: list[str], results: dict[str, str], place: str) -> None:
    call: Any = message.get("tool_call_id")
    demand(
        call in open_ids,
        "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
        f"'tool_calls' (id {call!r}).",
        place,
    )
    open_ids.remove(call)
    content: Any = message.get("content")
    if isinstance(content, list):
        demand(content and all(part.get("type") == "text" for part in content), "Only text.", place)
        content = "".join(part["text"] for part in content)
    demand(
        isinstance(content, str), f"Invalid value for 'content': expected a string, got {content!r}.", place
    )
    results[call] = content


def _chat_calls(message: Body, place: str) -> list[str]:
    calls = message.get("tool_calls")
    demand(calls is None or calls, "[] is too short - 'messages.tool_calls'", f"{place}.tool_calls")
    content = message.get("content")
    demand(calls or content, "Invalid value for 'content': expected a string, got null.", f"{place}.content")
    if content is not None:
        _chat_content(content, place)
    found: list[str] = []
    for call in calls or ():
        demand(call.get("type") == "function", "Invalid value for 'type'.", place)
        demand(
            isinstance(call.get("id"), str) and 0 < len(call["id"]) <= 40,
            f"Invalid '{place}.tool_calls[{len(found)}].id': string too long. "
            "Expected a string with maximum length 40.",
            place,
        )
        demand(call["id"] not in found, f"Duplicate value for 'tool_call_id' of {call['id']!r}.", place)
        demand(OPENAI_NAME.match(call["function"]["name"]), "'function.name' does not match.", place)
        arguments = call["function"].get("arguments")
        demand(isinstance(arguments, str), f"Invalid type for 'arguments': {arguments!r}.", place)
        found.append(call["id"])
    return found


def _chat_content(content: Any, place: str) -> tuple[str, int]:
    if isinstance(content, str):
        return content, 0
    demand(isinstance(content, list) and content, "Invalid value for 'content'.", f"{place}.content")
    texts, images = [], 0
    for part in content:
        if part.get("type") == "text":
            texts.append(part["text"])
            continue
        demand(
            part.get("type") in ("image_url", "file", "input_audio", "refusal"),
            f"{part.get('type')!r}.",
            place,
        )
        if part["type"] == "image_url":
            _data_url(part["image_url"]["url"])
            images += 1
    return "\n".join(texts), images


def _data_url(url: str) -> None:
    head, _, data = url.partition(",")
    if head.startswith("data:"):
        demand(head.removeprefix("data:").partition(";")[0] in IMAGES, f"Unsupported image: {head}.")
        _base64(data)


def _base64(data: str) -> None:
    try:
        demand(base64.b64decode(data, validate=True), "The image is empty.")
    except binascii.Error:
        demand(False, "Invalid base64 data")


# Responses -----------------------------------------------------------------------------


def check_responses(body: Body) -> Asked:
    """Check a request for ``/v1/responses``."""
    demand(isinstance(body.get("model"), str), "Missing required parameter: 'model'.", "model")
    names = []
    for number, tool in enumerate(body.get("tools", ())):
        demand(
            tool.get("type") == "function", f"Invalid value: {tool.get('type')!r}.", f"tools[{number}].type"
        )
        # Left out, it is on.
        names.append(openai_function({"strict": True, **tool}, f"tools[{number}]"))
    tools_of(body, names)
    given: Any = body.get("input")
    demand(given, "One of 'input' or 'prompt' must be provided.", "input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    return _responses_items(body, items, tuple(names))


def _responses_items(body: Body, items: Sequence[Body], tools: tuple[str, ...]) -> Asked:
    calls: list[str] = []
    answered: dict[str, str] = {}
    results: dict[str, str] = {}
    rounds = turns = images = 0
    prompt, before = "", ""
    for number, item in enumerate(items):
        place = f"input[{number}]"
        kind = item.get("type", "message")
        if kind == "function_call":
            calls.append(_responses_call(item, calls, place))
            if before != "call":
                results, rounds, turns = {}, rounds + 1, turns + (before != "assistant")
            before = "call"
        elif kind == "function_call_output":
            call = item.get("call_id")
            demand(
                call in calls and call not in answered,
                f"No tool call found for function call output with call_id {call}.",
                "input",
            )
            text, seen = _responses_content(item.get("output"), place)
            answered[str(call)] = results[str(call)] = text
            images += seen
            before = "result"
        elif kind == "message":
            demand(item.get("role") in RESPONSES_ROLES, f"Invalid value: {item.get('role')!r}.", place)
            text, seen = _responses_content(item.get("content"), place)
            images += seen
            turns += item["role"] == "assistant"
            before = item["role"]
            if item["role"] == "user":
                prompt, rounds, results = text, 0, {}
        elif kind == "additional_tools":
            tools += _additional(item, tools, place)
        else:
            demand(kind in ("reasoning", "item_reference"), f"Invalid value: {kind!r}.", f"{place}.type")
    for call in calls:
        demand(call in answered, f"No tool output found for function call {call}.", "input")
    return Asked(
        rounds,
        turns,
        prompt,
        body.get("instructions") or "",
        tools,
        results,
        images=images,
        streamed=bool(body.get("stream")),
    )


def _additional(item: Body, known: tuple[str, ...], place: str) -> tuple[str, ...]:
    """Tools that came in the course of the conversation."""
    demand(item.get("role") == "developer" and item.get("tools"), f"Invalid '{place}'.", place)
    names = tuple(
        openai_function({"strict": True, **tool}, f"{place}.tools[{number}]")
        for number, tool in enumerate(item["tools"])
    )
    demand(len({*known, *names}) == len(known) + len(names), "Tool names must be unique.", place)
    return names


def _responses_call(item: Body, calls: list[str], place: str) -> str:
    call, given = item.get("call_id"), item.get("id")
    demand(isinstance(call, str) and 0 < len(call) <= 64, f"Invalid '{place}.call_id'.", f"{place}.call_id")
    demand(call not in calls, f"Duplicate item found with id {call}.", place)
    demand(
        given is None or (given.startswith("fc") and len(given) <= 64),
        f"Invalid '{place}.id': '{given}'. Expected an ID that begins with 'fc'.",
        f"{place}.id",
    )
    demand(OPENAI_NAME.match(item.get("name", "")), f"Invalid '{place}.name'.", f"{place}.name")
    demand(isinstance(item.get("arguments"), str), f"Invalid type for '{place}.arguments'.", place)
    return str(call)


def _responses_content(content: Any, place: str) -> tuple[str, int]:
    if isinstance(content, str):
        return content, 0
    demand(isinstance(content, list) and content, f"Invalid type for '{place}'.", place)
    texts, images = [], 0
    for part in content:
        kind = part.get("type")
        if kind in ("input_text", "output_text"):
            texts.append(part["text"])
            continue
        demand(kind in ("input_image", "input_file", "refusal"), f"Invalid value: {kind!r}.", place)
        if kind == "input_image":
            _data_url(part["image_url"])
            images += 1
    return "\n".join(texts), images


# Messages ------------------------------------------------------------------------------


def check_messages(body: Body) -> Asked:
    """Check a request for Anthropic's ``/v1/messages``."""
    demand(isinstance(body.get("model"), str), "model: Field required")
    demand(type(body.get("max_tokens")) is int and body["max_tokens"] > 0, "max_tokens: Field required")
    demand(body.get("messages"), "messages: at least one message is required")
    names = []
    for number, tool in enumerate(body.get("tools", ())):
        place = f"tools.{number}.custom"
        demand(
            ANTHROPIC_NAME.match(tool.get("name", "")),
            f"{place}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'",
        )
        anthropic_schema(tool.get("input_schema"), place)
        names.append(tool["name"])
    tools_of(body, names)
    shown = [tool["name"] for tool in body.get("tools", ()) if not tool.get("defer_loading")]
    demand(shown or not names, "At least one tool must have defer_loading=false.")
    return _messages(body, (*shown, *_added(body, names)))


def _added(body: Body, declared: Sequence[str]) -> list[str]:
    """Tools that came in the course of the conversation: what the system says between its messages."""
    added: list[str] = []
    for message in body["messages"]:
        for block in message["content"] if message.get("role") == "system" else ():
            if block.get("type") in ("tool_addition", "tool_removal"):
                name = block["tool"]["name"]
                demand(name in declared, f"{block['type']} references unknown tool '{name}'")
                added += [name] if block["type"] == "tool_addition" else []
    return added


def _messages(body: Body, tools: tuple[str, ...]) -> Asked:
    messages = [message for message in body["messages"] if message.get("role") != "system"]
    for before, message in pairwise(body["messages"]):
        demand(
            message.get("role") != "system" or before.get("role") in ("user", "system"),
            "messages: a system message must follow a user message",
        )
    demand(
        messages and messages[0] is body["messages"][0] and messages[0].get("role") == "user",
        'messages: first message must use the "user" role',
    )
    demand(
        messages[-1].get("role") == "user",
        "This model does not support assistant message prefill. "
        "The conversation must end with a user message.",
    )
    open_ids: list[str] = []
    seen_ids: set[str] = set()
    results: dict[str, str] = {}
    failed: list[str] = []
    rounds = turns = images = 0
    prompt = ""
    for number, message in enumerate(messages):
        place = f"messages.{number}"
        blocks = _blocks(message.get("content"), f"{place}.content")
        if message.get("role") == "assistant":
            demand(not open_ids, f"{place}: `tool_use` ids were found without `tool_result` blocks")
            open_ids = _uses(blocks, seen_ids, place)
            turns, rounds = turns + 1, rounds + bool(open_ids)
            continue
        demand(message.get("role") == "user", f"{place}.role: Input should be 'user' or 'assistant'")
        given = _results(blocks, open_ids, place)
        open_ids = []
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        images += sum(block["type"] == "image" for block in blocks)
        results = {each["tool_use_id"]: _result_text(each, place) for each in given}
        failed = [each["tool_use_id"] for each in given if each.get("is_error")]
        images += sum(block["type"] == "image" for each in given for block in _inner(each))
        if texts:
            prompt, rounds = texts[-1], 0 if not given else rounds
    system = body.get("system", "")
    instructions = system if isinstance(system, str) else "".join(block["text"] for block in system)
    demand("system" not in body or instructions.strip(), "system: text content blocks must be non-empty")
    return Asked(
        rounds, turns, prompt, instructions, tools, results, tuple(failed), images, bool(body.get("stream"))
    )


def _blocks(content: Any, place: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    demand(isinstance(content, list) and content, f"{place}: content must be non-empty")
    kinds = ("text", "image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking")
    for block in content:
        demand(block.get("type") in kinds, f"{place}.0: Input tag {block.get('type')!r} found")
        if block["type"] == "text":
            demand(block["text"].strip(), f"{place}: text content blocks must contain non-whitespace text")
        if block["type"] == "image" and block["source"]["type"] == "base64":
            demand(block["source"]["media_type"] in IMAGES, f"{place}: media_type: Input should be an image")
            _base64(block["source"]["data"])
    return list(content)


def _uses(blocks: Iterable[Body], seen: set[str], place: str) -> list[str]:
    found = []
    for block in blocks:
        if block["type"] != "tool_use":
            continue
        demand(
            _ANTHROPIC_ID.match(block.get("id", "")),
            f"{place}.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        )
        demand(block["id"] not in seen, f"{place}: `tool_use` ids must be unique")
        demand(
            isinstance(block.get("input"), dict),
            f"{place}.tool_use.input: Input should be a valid dictionary",
        )
        demand(ANTHROPIC_NAME.match(block.get("name", "")), f"{place}.tool_use.name: does not match")
        seen.add(block["id"])
        found.append(block["id"])
    return found


def _results(blocks: list[dict[str, Any]], open_ids: list[str], place: str) -> list[dict[str, Any]]:
    given = [block for block in blocks if block["type"] == "tool_result"]
    ids: list[Any] = [block.get("tool_use_id") for block in given]
    for each in ids:
        demand(
            each in open_ids,
            f"{place}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {each}. Each "
            "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
        )
    demand(
        sorted(open_ids) == sorted(ids),
        f"{place}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(sorted(set(open_ids) - set(ids)))}. Each `tool_use` block must have a corresponding "
        "`tool_result` block in the next message.",
    )
    demand(blocks[: len(given)] == given, f"{place}: `tool_result` blocks must come first")
    return given


def _inner(result: Body) -> list[dict[str, Any]]:
    content = result.get("content")
    return [] if content is None else _blocks(content, "tool_result.content")


def _result_text(result: Body, place: str) -> str:
    blocks = _inner(result)
    if result.get("is_error"):
        demand(
            all(block["type"] == "text" for block in blocks),
            f'{place}.content.0.tool_result: all content must be type "text" if "is_error" is true',
        )
    return "\n".join(block["text"] if block["type"] == "text" else f"<{block['type']}>" for block in blocks)


def parsed(raw: bytes) -> Body:
    """Read the body of a request."""
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    demand(isinstance(body, dict), "We could not parse the JSON body of your request.")
    return dict(body)
