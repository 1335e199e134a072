"""What requests give: results in our form, the raw one beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Completion", "Progress", "PromptResult", "ResourceResult", "ToolResult"]


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a tool returned. Blocks have the wire's form, for example ``{"type": "text", "text": ...}``."""

    server: str
    tool: str
    content: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    structured: Any = field(default=None, repr=False)
    """``structuredContent``, or None."""
    is_error: bool = False
    """The tool ran and reported a failure."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The result as the server sent it, before anything was mended or cut."""
    warnings: tuple[str, ...] = ()
    """For example: the structured content does not fit the tool's output schema."""
    truncated: bool = False
    """Text was cut at ``max_result_size``."""
    replayed: bool = False
    """The call was sent a second time, after a loss, by the replay rule."""

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines; the structured content as JSON if there is no text."""
        texts = [str(block.get("text", "")) for block in self.content if block.get("type") == "text"]
        if texts:
            return "\n".join(texts)
        if self.structured is not None:
            return json.dumps(self.structured, ensure_ascii=False, default=str)
        return ""

    @property
    def meta(self) -> Mapping[str, Any] | None:
        """The result's ``_meta``."""
        meta = self.raw.get("_meta")
        return meta if isinstance(meta, Mapping) else None


@dataclass(frozen=True, kw_only=True)
class ResourceResult:
    """What reading a resource gave: text or base64 ``blob`` per item, in the wire's form."""

    server: str
    uri: str
    contents: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
    """What was mended or left out."""
    truncated: bool = False
    """Text was cut, or binary content left out, at ``max_result_size``."""

    @property
    def text(self) -> str:
        """All text contents, joined by newlines."""
        return "\n".join(str(item["text"]) for item in self.contents if "text" in item)


@dataclass(frozen=True, kw_only=True)
class PromptResult:
    """A prompt, filled in: messages ``{"role": ..., "content": {...}}`` in the wire's form."""

    server: str
    prompt: str
    description: str | None = None
    messages: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
    """What was mended or left out."""
    truncated: bool = False
    """Text was cut, or binary content left out, at ``max_result_size``."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Suggestions for one argument."""

    values: tuple[str, ...] = ()
    total: int | None = None
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """One progress report of a running call."""

    progress: float
    total: float | None = None
    message: str | None = None
