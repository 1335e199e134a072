"""The report: tables for the terminal and for the documentation, and JSON, which can be read again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.figures import Figures, Key
from benchmarks.tables import Row, base_of, compact, full, target_table
from benchmarks.targets import Outcome

__all__ = ["as_json", "figures_of", "markdown", "put_between_marks", "text"]

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


def as_json(figures: Figures, outcomes: list[Outcome], facts: dict[str, Any]) -> dict[str, Any]:
    """Return everything: medians, ratios, and the values of each round."""
    found: list[dict[str, Any]] = []
    for key, rounds in figures.values.items():
        base = base_of(key)
        found.append(
            {
                **asdict(key),
                "median": figures.median(key),
                "ratio": figures.ratio(key, base),
                "ratio_spread": figures.spread(key, base),
                "rounds": {str(number): rounds[number] for number in sorted(rounds)},
            }
        )
    return {
        "facts": facts,
        "notes": figures.notes,
        "targets": [asdict(outcome) for outcome in outcomes],
        "figures": found,
    }


def figures_of(document: dict[str, Any]) -> Figures:
    """Return the figures of what ``as_json`` made."""
    figures = Figures(notes=list(document["notes"]))
    for entry in document["figures"]:
        key = Key(entry["suite"], entry["case"], entry["variant"], entry["metric"])
        for number, value in entry["rounds"].items():
            figures.add(key, int(number), value)
    return figures


def text(figures: Figures, outcomes: list[Outcome], facts: dict[str, Any]) -> str:
    """Return the report for a terminal."""
    parts = [_facts(facts), *figures.notes]
    tables = [*full(figures), target_table(outcomes)] if outcomes else list(full(figures))
    for heading, rows in tables:
        parts += ["", heading, *_aligned(rows)]
    return "\n".join(parts)


def markdown(figures: Figures, outcomes: list[Outcome], facts: dict[str, Any]) -> str:
    """Return the report for the documentation: the targets first."""
    parts = [f"Measured on: {_facts(facts)}.", *(f"\n{note.splitlines()[0]}" for note in figures.notes)]
    tables = [target_table(outcomes), *compact(figures)] if outcomes else list(compact(figures))
    for heading, rows in tables:
        head, *body = rows
        parts += ["", f"### {heading[0].upper()}{heading[1:]}", "", _line(head)]
        parts += [_line(["---"] + ["--:"] * (len(head) - 1)), *map(_line, body)]
    return "\n".join(parts) + "\n"


def put_between_marks(path: Path, report: str) -> None:
    """Replace what stands between the two marks of a page.

    Raises:
        BenchmarkError: The page has no marks.
    """
    page = path.read_text()
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BenchmarkError(f"{path.name} has no lines {BEGIN} and {END}, between which the report goes.")
    path.write_text(f"{before}{begin}\n\n{report}\n{end}{after}")


def _facts(facts: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def _aligned(rows: list[Row]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *others = (
            cell.ljust(width) if number == 0 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *others]).rstrip())
    return lines


def _line(cells: Row) -> str:
    return "| " + " | ".join(cells) + " |"
