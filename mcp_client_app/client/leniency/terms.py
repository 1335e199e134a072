"""What a repair may go by, besides the result itself."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_client_app.datatypes import StrictOptions

__all__ = ["DEFAULT_STRICTNESS", "Terms"]

DEFAULT_STRICTNESS = StrictOptions()


@dataclass(slots=True)
class Terms:
    """How lenient to be with one server."""

    server: str
    strict: StrictOptions = DEFAULT_STRICTNESS
    modern: bool = False
    """2026-07-28 is spoken: output schemas and structured content may have any type."""
