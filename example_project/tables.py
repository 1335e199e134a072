"""Plain text tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

MAX_CELL = 60


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table with aligned columns; long cells are cut."""
    cells = [[_cell(value) for value in row] for row in (headings, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(f"  {line}" for line in lines)


def _cell(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 3]}..."
