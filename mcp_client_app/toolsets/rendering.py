"""What a model reads of a tool's result: text, images as parts of their own, never base64 as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_client_app import json_codec
from mcp_client_app.datatypes import ToolResult
from mcp_client_app.exceptions import (
    AmbiguousToolError,
    InvalidArgumentsError,
    MCPClientError,
    UnknownToolError,
)
from mcp_client_app.toolsets.binary import Binary, image_type
from mcp_client_app.toolsets.text import shorten

__all__ = ["ImagePart", "RenderedResult", "Store", "TextPart", "error_line", "render_result"]

NOTHING = "(The tool returned nothing.)"
LONGEST_REASON = 200
DEFAULT_LIMIT = 100_000

Store = Callable[[Binary], str | None]
"""Keeps binary content and returns how to refer to it, or None if it was not kept."""

_RPC_PREFIX = re.compile(r"\s*MCP error -?\d+:\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text, never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image of a kind that providers take: checked base64, and the type that its bytes show."""

    data: str = field(repr=False)
    mime_type: str
    note: str
    """What stands in its place where there are no images."""


@dataclass(frozen=True, slots=True)
class RenderedResult:
    """A result for a model; there is always something to read."""

    parts: tuple[TextPart | ImagePart, ...]
    is_error: bool = False
    truncated: bool = False

    @property
    def text(self) -> str:
        """All parts as text, notes in place of images: for providers whose tool results are text."""
        return "\n".join(part.text if isinstance(part, TextPart) else part.note for part in self.parts)

    def for_openai(self) -> str:
        """Return the content of a message with the role ``tool``."""
        return self.text

    def for_anthropic(self) -> list[dict[str, Any]]:
        """Return the content of a ``tool_result`` block."""
        return [
            {"type": "text", "text": part.text}
            if isinstance(part, TextPart)
            else {
                "type": "image",
                "source": {"type": "base64", "media_type": part.mime_type, "data": part.data},
            }
            for part in self.parts
        ]


def error_line(name: str, reason: str | BaseException, *, limit: int | None = LONGEST_REASON) -> str:
    """Return ``Error calling mcp tool <name>: <reason>``.

    The reason is one line of at most ``limit`` characters (None: no limit), except where our own
    message tells a model how to do better. Exceptions that are not ours are not quoted.
    """
    if isinstance(reason, InvalidArgumentsError | UnknownToolError | AmbiguousToolError):
        text = json_codec.scrub(str(reason))
    else:
        if isinstance(reason, BaseException):
            reason = str(reason) if isinstance(reason, MCPClientError) else "an unexpected error"
        text = " ".join(_RPC_PREFIX.sub("", json_codec.scrub(reason), count=1).split())
        if limit is not None:
            text = shorten(text, limit)
    return f"Error calling mcp tool {shorten(name, 100)}: {text or 'the tool gave no reason'}"


def render_result(
    result: ToolResult,
    *,
    name: str | None = None,
    limit: int = DEFAULT_LIMIT,
    reason_limit: int | None = LONGEST_REASON,
    store: Store | None = None,
) -> RenderedResult:
    """Turn a result into what a model reads.

    Args:
        result: The result; it is not changed.
        name: What the model calls the tool; its own name by default.
        limit: Characters of text at most, all parts together; 0 = no limit. A cut is marked.
        reason_limit: Characters of the reason if the tool failed; None = as for other text.
        store: Keeps binary content. Without it there is a note instead of a reference.
    """
    parts = [_part(block, store) for block in result.content]
    parts = [part for part in parts if isinstance(part, ImagePart) or part.text.strip()]
    said = [block for block in result.content if block.get("type") == "text" and _text_of(block).strip()]
    if not said and result.structured is not None:
        parts.insert(0, TextPart(json_codec.scrub(_json(result.structured))))
    if result.is_error:
        # Providers allow nothing but text in a failure.
        text = "\n".join(part.text if isinstance(part, TextPart) else part.note for part in parts)
        line = error_line(name or result.tool, shorten(text, limit) if limit else text, limit=reason_limit)
        return RenderedResult((TextPart(line),), is_error=True, truncated=result.truncated)
    kept, cut = _within(parts or [TextPart(NOTHING)], limit)
    return RenderedResult(kept, truncated=cut or result.truncated)


def _within(parts: list[TextPart | ImagePart], limit: int) -> tuple[tuple[TextPart | ImagePart, ...], bool]:
    """Keep the first ``limit`` characters; images have a limit of their own."""
    total = sum(len(part.text) for part in parts if isinstance(part, TextPart))
    if not limit or total <= limit:
        return tuple(parts), False
    kept: list[TextPart | ImagePart] = []
    left, missing = limit, total - limit
    for part in parts:
        if isinstance(part, ImagePart):
            kept.append(part)
        elif left > 0:
            text, left = part.text[:left], left - len(part.text)
            if left <= 0:
                text = f"{text}\n[cut: {missing} more characters]"
            kept.append(TextPart(text))
    return tuple(kept), True


def _part(block: Mapping[str, Any], store: Store | None) -> TextPart | ImagePart:
    kind = block.get("type")
    if kind == "text":
        return TextPart(_text_of(block))
    if kind in ("image", "audio") and isinstance(block.get("data"), str):
        return _binary(Binary(str(kind), block["data"], _text(block.get("mimeType"))), store)
    inner = block.get("resource")
    if kind == "resource" and isinstance(inner, Mapping):
        uri = _text(inner.get("uri"))
        if isinstance(inner.get("blob"), str):
            return _binary(Binary("file", inner["blob"], _text(inner.get("mimeType")), uri), store)
        return TextPart(json_codec.scrub(f"[resource {uri}]\n{inner.get('text') or ''}"))
    if kind == "resource_link":
        about = [_text(block.get(key)) for key in ("title", "name", "mimeType", "description")]
        note = ", ".join(dict.fromkeys(item for item in about if item))
        return TextPart(json_codec.scrub(f"[link to {_text(block.get('uri'))}{f': {note}' if note else ''}]"))
    return TextPart(f"[content of unknown type {_text(kind)[:40]!r}, not shown]")


def _binary(content: Binary, store: Store | None) -> TextPart | ImagePart:
    reference = store(content) if store is not None else None
    note = content.note(reference)
    shown = image_type(content)
    return TextPart(note) if shown is None else ImagePart(content.data, shown, note)


def _text_of(block: Mapping[str, Any]) -> str:
    text: str = json_codec.scrub(_text(block.get("text")))
    return text


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _json(value: object) -> str:
    try:
        return json_codec.dumps(value).decode("utf-8", "replace")
    except TypeError:  # no JSON form
        return repr(value)
