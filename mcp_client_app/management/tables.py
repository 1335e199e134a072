"""Plain text tables for a terminal, from text that anybody may have written.

Names, descriptions and messages come from servers: control characters, which could drive
the terminal, never get through.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Column", "display_width", "one_line", "render", "shorten", "visible"]

GAP = "  "
NARROWEST = 12
"""No column is shrunk below this width."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of characters that act instead of showing: control, direction, half characters."""
_JOINERS = frozenset("\u200c\u200d")
"""Harmless, and needed by several scripts and by emoji."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, and how its cells are treated."""

    heading: str
    can_shrink: bool = False
    """Whether cells may be cut to make the table fit; never for names, which people copy."""
    paint: Callable[[str], str] | None = None
    """Returns a cell's text with its colour; gets the text without padding."""


def render(columns: Sequence[Column], rows: Sequence[Sequence[object]], width: int | None = None) -> str:
    """Return the table: a line of headings, then one line for each row.

    Args:
        columns: One for each cell of a row.
        rows: The cells; each becomes one line of text.
        width: Cells to fit into (one is half of a wide character); None = any width.
    """
    cells = [[column.heading for column in columns], *([one_line(cell) for cell in row] for row in rows)]
    widths = _widths(columns, cells, width)
    return "\n".join(_line(columns, row, widths, is_heading=not index) for index, row in enumerate(cells))


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int | None) -> list[int]:
    widths = [max(display_width(row[index]) for row in cells) for index in range(len(columns))]
    if width is None:
        return widths
    shrinkable = [index for index, column in enumerate(columns) if column.can_shrink]
    fixed = sum(widths) - sum(widths[index] for index in shrinkable)
    available = width - fixed - len(GAP) * (len(columns) - 1)
    # One limit for all: narrow columns keep their width, wide ones share what is left.
    limit = max([NARROWEST, *(min(widths[index], available) for index in shrinkable)])
    while limit > NARROWEST and sum(min(widths[index], limit) for index in shrinkable) > available:
        limit -= 1
    return [min(taken, limit) if index in shrinkable else taken for index, taken in enumerate(widths)]


def _line(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int], *, is_heading: bool) -> str:
    parts = []
    for column, cell, width in zip(columns, row, widths, strict=True):
        text = shorten(cell, width)
        padding = " " * (width - display_width(text))
        parts.append((column.paint(text) if column.paint and not is_heading else text) + padding)
    return GAP.join(parts).rstrip()


# Text ---------------------------------------------------------------------------------


def visible(text: str) -> str:
    """Replace characters that would act on a terminal; tabs and line breaks stay."""
    return "".join(
        character
        if character in "\t\n" or character in _JOINERS or unicodedata.category(character) not in _UNSEEN
        else "�"
        for character in text.replace("\r\n", "\n")
    )


def one_line(value: object) -> str:
    """Return any value as one line of visible text."""
    return visible(" ".join(str(value).split()))


def shorten(text: str, width: int) -> str:
    """Cut text to a display width; a cut is marked with an ellipsis."""
    if display_width(text) <= width:
        return text
    kept, used = [], 1  # the ellipsis
    for character in text:
        used += display_width(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


def display_width(text: str) -> int:
    """Return how many cells of a terminal the text takes."""
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character) or character in _JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
