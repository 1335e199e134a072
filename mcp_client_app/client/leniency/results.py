"""Repairs of results: what is known is kept, what is unknown becomes text."""

from __future__ import annotations

from typing import Any

from mcp_client_app import json_codec
from mcp_client_app.client.leniency.fields import about, block_annotations, drop
from mcp_client_app.client.leniency.terms import Terms
from mcp_client_app.exceptions import ProtocolError

__all__ = ["call", "complete", "get_prompt", "placeholder", "read"]


def placeholder(block: Any) -> dict[str, Any]:
    """Stand in for a content block that is unknown or malformed: its JSON, as text."""
    try:
        text = json_codec.dumps(block).decode()
    except TypeError:
        text = repr(block)
    return {"type": "text", "text": text}


def call(terms: Terms, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Mend ``tools/call``."""
    if result.get("resultType") == "input_required":
        return result
    content = result.get("content")
    if content is None:
        if terms.strict.result_content:
            raise ProtocolError(
                f"The server {terms.server!r} sent a tool result without content.", server=terms.server
            )
        content = []
        if "structuredContent" not in result:
            notes.append("the result has no content")
    elif not isinstance(content, list):
        notes.append("content was no list")
        content = [content if isinstance(content, dict) else {"type": "text", "text": str(content)}]
    result["content"] = [_block(block, notes) for block in content]
    if not isinstance(result.get("isError", False), bool):
        result["isError"] = bool(result["isError"])
        notes.append("isError was no boolean")
    structured = result.get("structuredContent")
    if "structuredContent" in result and not terms.modern and not isinstance(structured, dict):
        del result["structuredContent"]
        if structured is not None:
            notes.append("structuredContent was no object")
    return result


def read(_: Terms, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Mend ``resources/read``."""
    if result.get("resultType") == "input_required":
        return result
    contents = result.get("contents")
    kept = []
    for item in contents if isinstance(contents, list) else []:
        if not isinstance(item, dict) or not isinstance(item.get("uri"), str):
            notes.append("a content without uri was left out")
            continue
        item = dict(item)
        if not isinstance(item.get("blob"), str) and not isinstance(item.get("text"), str):
            item["text"] = "" if item.get("text") is None else str(item["text"])
            item.pop("blob", None)
            notes.append("a content had neither text nor blob")
        kept.append(_contents(item, notes))
    if not isinstance(contents, list):
        notes.append("contents was no list")
    result["contents"] = kept
    return result


def get_prompt(_: Terms, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Mend ``prompts/get``."""
    if result.get("resultType") == "input_required":
        return result
    messages = result.get("messages")
    kept = []
    for message in messages if isinstance(messages, list) else []:
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            notes.append("a message without a known role was left out")
            continue
        content = message.get("content")
        if isinstance(content, str):
            content = {"type": "text", "text": content}
        kept.append({**message, "content": _block(content, notes)})
    if not isinstance(messages, list):
        notes.append("messages was no list")
    result["messages"] = kept
    drop(result, "prompt", notes, description=str)
    return result


def complete(_: Terms, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Mend ``completion/complete``."""
    completion = result.get("completion")
    if not isinstance(completion, dict):
        notes.append("completion was no object")
        completion = {}
    completion = dict(completion)
    values = completion.get("values")
    strings = [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
    completion["values"] = strings[:100]
    drop(completion, "completion", notes, total=int, hasMore=bool)
    result["completion"] = completion
    return result


def _block(block: Any, notes: list[str]) -> dict[str, Any]:
    """Return the block if the typed layer takes it, else its placeholder."""
    if not isinstance(block, dict):
        notes.append("a content block was no object")
        return {"type": "text", "text": block} if isinstance(block, str) else placeholder(block)
    if len(block) == 2 and block.get("type") == "text" and isinstance(block.get("text"), str):
        return block  # what nearly every block is
    required = _BLOCKS.get(str(block.get("type")))
    if required is None:
        notes.append(f"a content block of unknown type {str(block.get('type'))[:40]!r}")
        return placeholder(block)
    mended: dict[str, Any] = dict(block)
    if "text" in required and isinstance(mended.get("text"), int | float):
        mended["text"] = str(mended["text"])
    for name in required:
        fits = _is_resource(mended.get(name)) if name == "resource" else isinstance(mended.get(name), str)
        if not fits:
            notes.append(f"a content block of type {mended['type']!r} without {name}")
            return placeholder(mended)
    if mended["type"] == "resource_link":
        about(mended, "content", notes)
        return mended
    if mended["type"] == "resource":
        mended["resource"] = _contents(dict(mended["resource"]), notes)
    drop(mended, "content", notes, annotations=dict, _meta=dict)
    block_annotations(mended)
    return mended


def _contents(item: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Mend the contents of a resource, which have text or a blob: one that is no string is left out."""
    drop(item, "content", notes, text=str, blob=str, mimeType=str, _meta=dict)
    return item


def _is_resource(inner: Any) -> bool:
    return (
        isinstance(inner, dict)
        and isinstance(inner.get("uri"), str)
        and (isinstance(inner.get("text"), str) or isinstance(inner.get("blob"), str))
    )


_BLOCKS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": ("resource",),
}
