"""Text of bounded length, with a mark where it was cut."""

from __future__ import annotations

__all__ = ["shorten"]


def shorten(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of the text, followed by a mark if something is missing."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} [cut: {len(text) - limit} more characters]"
