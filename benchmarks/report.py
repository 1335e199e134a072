"""The report: tables for the terminal and for Markdown, and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from benchmarks.figures import Figures, Key
from benchmarks.targets import Outcome
from benchmarks.variants import baseline_of

__all__ = ["as_json", "markdown", "text"]

HEADINGS = {
    "p50_us": "p50 µs",
    "p99_us": "p99 µs",
    "cpu_us": "CPU µs",
    "rate": "calls/s",
}
"""What the metrics are called; the others are shown as they are."""

Row = list[str]


def as_json(figures: Figures, outcomes: list[Outcome], facts: dict[str, Any]) -> dict[str, Any]:
    """Return everything: medians, ratios, and the values of each round."""
    found: list[dict[str, Any]] = []
    for key, rounds in figures.values.items():
        base = _base(key)
        found.append(
            {
                **asdict(key),
                "median": figures.median(key),
                "ratio": figures.ratio(key, base),
                "ratio_spread": figures.spread(key, base),
                "rounds": [rounds[number] for number in sorted(rounds)],
            }
        )
    return {"facts": facts, "targets": [asdict(outcome) for outcome in outcomes], "figures": found}


def text(figures: Figures, outcomes: list[Outcome], facts: dict[str, Any]) -> str:
    """Return the report for a terminal."""
    parts = [", ".join(f"{name} {value}" for name, value in facts.items())]
    for heading, rows in _tables(figures, outcomes):
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        parts += [
            "",
            heading,
            *(
                "  ".join(
                    cell.ljust(width) if column == 0 else cell.rjust(width)
                    for column, (cell, width) in enumerate(zip(row, widths, strict=True))
                ).rstrip()
                for row in rows
            ),
        ]
    return "\n".join(parts)


def markdown(figures: Figures, outcomes: list[Outcome], facts: dict[str, Any]) -> str:
    """Return the report for the documentation."""
    parts = ["Measured on: " + ", ".join(f"{name} {value}" for name, value in facts.items()) + "."]
    for heading, rows in _tables(figures, outcomes):
        head, *body = rows
        parts += ["", f"### {heading}", "", _line(head), _line(["---"] + ["--:"] * (len(head) - 1))]
        parts += [_line(row) for row in body]
    return "\n".join(parts) + "\n"


def _line(cells: Row) -> str:
    return "| " + " | ".join(cells) + " |"


def _tables(figures: Figures, outcomes: list[Outcome]) -> Iterator[tuple[str, list[Row]]]:
    for suite in figures.suites():
        for case in figures.cases(suite):
            yield f"{suite}: {case}", _table(figures, suite, case)
    if outcomes:
        yield "targets", [["target", "wanted", "measured", "met", "by CPU time"], *map(_target_row, outcomes)]


def _target_row(outcome: Outcome) -> Row:
    cpu = "" if outcome.cpu is None else f"{outcome.cpu:.3g}"
    return [outcome.text, outcome.wanted, f"{outcome.measured:.3g}", "yes" if outcome.met else "NO", cpu]


def _table(figures: Figures, suite: str, case: str) -> list[Row]:
    keys = list(figures.of(suite, case))
    sizes = {key: key.metric.partition("@") for key in keys}
    columns = list(dict.fromkeys(name for name, _, _ in sizes.values()))
    places = list(dict.fromkeys((key.variant, size) for key, (_, _, size) in sizes.items()))
    order = list(dict.fromkeys(variant for variant, _ in places))
    places.sort(key=lambda place: (order.index(place[0]), int(place[1]) if place[1].isdigit() else 0))
    rows = [["variant", "at", *(HEADINGS.get(name, name.replace("_", " ")) for name in columns)]]
    for variant, size in places:
        cells = [
            _cell(figures, Key(suite, case, variant, f"{name}@{size}" if size else name)) for name in columns
        ]
        rows.append([variant, size, *cells])
    return rows


def _cell(figures: Figures, key: Key) -> str:
    value = figures.median(key)
    if value is None:
        return ""
    ratio = figures.ratio(key, _base(key))
    shown = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return shown if ratio is None else f"{shown} ({ratio:.2f}x)"


def _base(key: Key) -> Key:
    return Key(key.suite, key.case, baseline_of(key.suite), key.metric)
