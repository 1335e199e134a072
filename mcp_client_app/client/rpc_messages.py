"""Reads raw JSON-RPC messages: which kind one is, whom it answers, what its typed form is. Pure."""

from __future__ import annotations

import re
from typing import Any

from mcp.shared.dispatcher import as_request_id, coerce_request_id
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from mcp_client_app import json_codec

__all__ = [
    "LISTEN",
    "LIST_CHANGED",
    "TypedMessage",
    "broken_answer_id",
    "has_id",
    "is_answer",
    "is_batch",
    "named_id",
    "pick_answer",
    "rpc_error",
    "skipped_id",
    "typed_message",
]

LISTEN = "subscriptions/listen"
"""The one request that stays open."""
LIST_CHANGED = frozenset(
    {
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
    }
)

_VALUE = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")'
_FIRST_ID = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _VALUE)
_LAST_ID = re.compile(_VALUE + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
"""The id of an answer, before or after its result: an id inside the result is another thing's."""

TypedMessage = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError


def is_answer(item: Any) -> bool:
    """Say whether this is a result or an error."""
    return isinstance(item, dict) and "method" not in item and ("result" in item or "error" in item)


def is_batch(message: Any) -> bool:
    """Say whether this is several messages at once, as 2025-03-26 allows."""
    return isinstance(message, list) and bool(message) and all(isinstance(item, dict) for item in message)


def named_id(answer: dict[str, Any]) -> RequestId | None:
    """Return the id that an answer names, in the form for looking it up; None if it names none.

    Servers may turn a number into a string, or into one with a fraction.
    """
    found = answer.get("id")
    named = as_request_id(int(found) if isinstance(found, float) and found.is_integer() else found)
    return None if named is None else coerce_request_id(named)


def has_id(answer: dict[str, Any], request_id: RequestId) -> bool:
    """Say whether the answer names this request."""
    return named_id(answer) == coerce_request_id(request_id)


def pick_answer(message: Any, request_id: RequestId) -> tuple[dict[str, Any] | None, list[Any]]:
    """Return what answers a request on its own stream or in its own body, and all the rest.

    ``message`` may be a batch (2025-03-26). An answer there is meant for that request, whatever id
    it bears; the one with the right id is taken first.
    """
    items = message if isinstance(message, list) else [message]
    answers = [item for item in items if is_answer(item)]
    chosen = next((item for item in answers if has_id(item, request_id)), answers[0] if answers else None)
    return chosen, [item for item in items if not is_answer(item)]


def rpc_error(error: Any) -> ErrorData:
    """Return the error that a server sent, whatever its form."""
    if not isinstance(error, dict):
        return ErrorData(code=INTERNAL_ERROR, message=str(error)[:500])
    code, message = error.get("code"), error.get("message")
    return ErrorData(
        code=code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR,
        message=message if isinstance(message, str) else "The server gave no message.",
        data=error.get("data"),
    )


def typed_message(message: Any) -> TypedMessage | None:
    """Return the SDK's form of a message; None if it is none, or a result that is no object."""
    if not isinstance(message, dict):
        return None
    request_id = as_request_id(message.get("id"))
    method, params = message.get("method"), message.get("params")
    if isinstance(method, str):
        fields: dict[str, Any] = {"params": params} if isinstance(params, dict) else {}
        if request_id is not None:
            return JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, **fields)
        return JSONRPCNotification(jsonrpc="2.0", method=method, **fields)
    if message.get("error") is not None:
        return JSONRPCError(jsonrpc="2.0", id=request_id, error=rpc_error(message["error"]))
    result = message.get("result")
    if request_id is not None and isinstance(result, dict):
        return JSONRPCResponse(jsonrpc="2.0", id=request_id, result=result)
    return None


def skipped_id(edges: bytes) -> RequestId | None:
    """Return the id, in the form for looking it up, of an answer of which only both ends are known."""
    match = _FIRST_ID.match(edges) or _LAST_ID.search(edges)
    return None if match is None else coerce_request_id(json_codec.loads(match.group(1)))


def broken_answer_id(edges: bytes) -> RequestId | None:
    """Return the id, in the form for looking it up, of an answer that cannot be read; None for mere noise."""
    is_meant_as_one = b'"jsonrpc"' in edges and (b'"result"' in edges or b'"error"' in edges)
    return skipped_id(edges) if is_meant_as_one else None
