"""What a call of a toolset comes to: for a model to read, and for code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import ToolResult
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.toolsets import RenderedResult, TextPart, error_line

__all__ = ["ToolsetResult"]


@dataclass(frozen=True, kw_only=True)
class ToolsetResult:
    """A result, or the line that says why there is none."""

    name: str
    """What the model called the tool, or its public name once that is known."""
    rendered: RenderedResult = field(repr=False)
    """What a model reads; never empty."""
    result: ToolResult | None = field(default=None, repr=False)
    """What the server sent, as the output filters left it; None if the call failed."""
    error: MCPClientError | None = None
    """Why the call failed; None if there is a result, also one in which the tool reports a failure."""
    warnings: tuple[str, ...] = ()
    """What an operator should look at, and a model need not know."""

    @property
    def is_error(self) -> bool:
        """Whether the call failed, or the tool reported a failure."""
        return self.rendered.is_error

    @property
    def text(self) -> str:
        """All of it as text."""
        return self.rendered.text

    def for_openai(self) -> str:
        """Return the content of a message with the role ``tool``."""
        return self.rendered.for_openai()

    def for_anthropic(self) -> list[dict[str, Any]]:
        """Return the content of a ``tool_result`` block; pass ``is_error`` on beside it."""
        return self.rendered.for_anthropic()

    @classmethod
    def of_error(cls, name: object, error: MCPClientError) -> ToolsetResult:
        """Return the line that a model reads of a call that failed."""
        said = str(name)
        line = error_line(said, error, limit=app_settings.MODEL_ERROR_LENGTH)
        return cls(name=said[:200], rendered=RenderedResult((TextPart(line),), is_error=True), error=error)
