"""What was promised, and whether it holds: each target is a ratio of two figures of one run."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.figures import Figures, Key
from benchmarks.variants import baseline_of

__all__ = ["TARGETS", "Outcome", "Target", "judge"]


@dataclass(frozen=True)
class Target:
    """The figure of a variant divided by that of the base (by default the baseline's) has a limit."""

    text: str
    key: Key
    limit: float
    at_least: bool = False
    base: Key | None = None

    @property
    def wanted(self) -> str:
        """The limit, in words."""
        return f"{'>=' if self.at_least else '<='} {self.limit:g}x"


@dataclass(frozen=True)
class Outcome:
    """How it came out; both None if it was not measured."""

    text: str
    wanted: str
    measured: float | None
    met: bool | None


def _calls() -> list[Target]:
    found = []

    def add(case: str, variant: str, metric: str, limit: float) -> None:
        name, _, level = metric.partition("@")
        what = {"p50_us": "p50", "rate": "calls/s"}[name]
        text = f"{case}: {variant}, {what} at {level}"
        found.append(Target(text, Key("calls", case, variant, metric), limit, at_least=name == "rate"))

    for era in ("2026-07-28", "2025-11-25"):
        stdio = f"stdio {era}"
        add(stdio, "ours-loop", "p50_us@1", 0.5)
        add(stdio, "ours-loop", "rate@50", 4)
        add(stdio, "ours-sync", "p50_us@1", 0.85)
        add(stdio, "ours-sync-uvloop", "p50_us@1", 0.7)
        for threads in (8, 32, 100):
            add(stdio, "ours-sync", f"rate@{threads}", 2.5)
            add(stdio, "ours-sync-uvloop", f"rate@{threads}", 3)
        add(stdio, "ours-async", "p50_us@1", 0.85)
        for level in (10, 50, 100):
            add(stdio, "ours-async", f"rate@{level}", 3.5)
        for body, limit in (("json", 0.5), ("sse", 0.4)):
            add(f"http-{body} {era}", "ours-sync", "p50_us@1", limit)
            for threads in (8, 32, 100):
                add(f"http-{body} {era}", "ours-sync", f"rate@{threads}", 4)
    return found


TARGETS = _calls()


def judge(figures: Figures) -> list[Outcome]:
    """Compare what was measured with the targets."""
    outcomes = []
    for target in TARGETS:
        key = target.key
        measured = figures.ratio(
            key, target.base or Key(key.suite, key.case, baseline_of(key.suite), key.metric)
        )
        met = None
        if measured is not None:
            met = measured >= target.limit if target.at_least else measured <= target.limit
        outcomes.append(Outcome(target.text, target.wanted, measured, met))
    return outcomes
