"""Tables of figures, for whoever prints them."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figures, Key
from benchmarks.targets import Outcome
from benchmarks.variants import LEVELS, VARIANTS, baseline_of

__all__ = ["Row", "Table", "base_of", "compact", "full", "target_table"]

Row = list[str]
Table = tuple[str, list[Row]]
"""A heading, and rows of which the first one names the columns."""

HEADINGS = {"p50_us": "p50 µs", "p99_us": "p99 µs", "cpu_us": "CPU µs", "cpu_ms": "CPU ms", "rate": "calls/s"}
"""What metrics are called; the others are shown as they are."""
MIDDLE = {8: "8 or 10", 10: "8 or 10", 32: "32 or 50", 50: "32 or 50"}
"""Threads and coroutines share columns."""


def full(figures: Figures) -> Iterator[Table]:
    """Go through all figures: a row for each variant and size."""
    for suite in figures.suites():
        for case in figures.cases(suite):
            yield f"{suite}: {case}", _by_size(figures, suite, case)


def compact(figures: Figures) -> Iterator[Table]:
    """Do the same for readers: a row for each variant where calls are counted."""
    for suite in figures.suites():
        for case in figures.cases(suite):
            heading = f"{suite}: {case}"
            yield (
                heading,
                _by_level(figures, suite, case) if suite == "calls" else _by_size(figures, suite, case),
            )


def target_table(outcomes: list[Outcome]) -> Table:
    """Return the targets, and what became of them."""
    return "targets", [["target", "wanted", "measured", "met", "by CPU time"], *map(_target_row, outcomes)]


def base_of(key: Key) -> Key:
    """Return what a figure is compared with."""
    return Key(key.suite, key.case, baseline_of(key.suite), key.metric)


def _target_row(outcome: Outcome) -> Row:
    cpu = "" if outcome.cpu is None else f"{outcome.cpu:.3g}x"
    unit = "x" if outcome.wanted.endswith("x") else ""
    met = "yes" if outcome.met else "NO"
    return [outcome.text, outcome.wanted, f"{outcome.measured:.3g}{unit}", met, cpu]


def _by_size(figures: Figures, suite: str, case: str) -> list[Row]:
    keys = list(figures.of(suite, case))
    sizes = {key: key.metric.partition("@") for key in keys}
    columns = list(dict.fromkeys(name for name, _, _ in sizes.values()))
    places = list(dict.fromkeys((key.variant, size) for key, (_, _, size) in sizes.items()))
    order = _order(figures, suite, case)
    places.sort(key=lambda place: (order.index(place[0]), _number(place[1])))
    rows = [["variant", "at", *(HEADINGS.get(name, name.replace("_", " ")) for name in columns)]]
    for variant, size in places:
        rows.append(
            [
                variant,
                size,
                *(_cell(figures, Key(suite, case, variant, f"{name}@{size}")) for name in columns),
            ]
        )
    return rows


def _by_level(figures: Figures, suite: str, case: str) -> list[Row]:
    labels = {variant.name: variant.label for variant in VARIANTS}
    columns = list(dict.fromkeys(MIDDLE.get(level, str(level)) for level in LEVELS))
    rows = [["variant", "p50 µs", "CPU µs", *(f"calls/s, {column} at once" for column in columns)]]
    for variant in _order(figures, suite, case):
        cells = [_cell(figures, Key(suite, case, variant, metric)) for metric in ("p50_us@1", "cpu_us@1")]
        for column in columns:
            levels = [level for level in LEVELS if MIDDLE.get(level, str(level)) == column]
            found = [_cell(figures, Key(suite, case, variant, f"rate@{level}")) for level in levels]
            cells.append(next(filter(None, found), ""))
        rows.append([labels.get(variant, variant), *cells])
    return rows


def _order(figures: Figures, suite: str, case: str) -> list[str]:
    """Return who was measured: the baseline first, then as they are declared, then as they came."""
    known = [baseline_of(suite), *(variant.name for variant in VARIANTS)]
    found = list(dict.fromkeys(key.variant for key in figures.of(suite, case)))
    return sorted(found, key=lambda variant: known.index(variant) if variant in known else len(known))


def _number(size: str) -> int:
    digits = "".join(filter(str.isdigit, size))
    return int(digits) if digits else 0


def _cell(figures: Figures, key: Key) -> str:
    value = figures.median(key)
    if value is None:
        return ""
    ratio = figures.ratio(key, base_of(key))
    shown = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return shown if ratio is None else f"{shown} ({ratio:.2f}x)"
