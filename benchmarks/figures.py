"""What was measured, and what is made of it: medians, and medians of the ratios of each round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

__all__ = ["Figures", "Key"]


@dataclass(frozen=True)
class Key:
    """What a figure says: the median time of a call in this suite, in this case, of this variant."""

    suite: str
    case: str
    variant: str
    metric: str
    """With its unit: ``p50_us@8``."""


@dataclass
class Figures:
    """All values, by round."""

    values: dict[Key, dict[int, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What was left out, and why."""

    def add(self, key: Key, round_number: int, value: float) -> None:
        """Note one value of one round."""
        self.values.setdefault(key, {})[round_number] = value

    def median(self, key: Key) -> float | None:
        """Return the median over the rounds; None if nothing was measured."""
        rounds = self.values.get(key)
        return median(rounds.values()) if rounds else None

    def ratio(self, key: Key, base: Key) -> float | None:
        """Return the median of the rounds' ratios: what disturbs a round disturbs both."""
        own, other = self.values.get(key, {}), self.values.get(base, {})
        ratios = [own[number] / other[number] for number in own if other.get(number)]
        return median(ratios) if ratios else None

    def spread(self, key: Key, base: Key) -> tuple[float, float] | None:
        """Return the smallest and the largest ratio of a round."""
        own, other = self.values.get(key, {}), self.values.get(base, {})
        ratios = [own[number] / other[number] for number in own if other.get(number)]
        return (min(ratios), max(ratios)) if ratios else None

    def suites(self) -> list[str]:
        """Return the suites that were run."""
        return list(dict.fromkeys(key.suite for key in self.values))

    def cases(self, suite: str) -> list[str]:
        """Return the cases of a suite."""
        return list(dict.fromkeys(key.case for key in self.values if key.suite == suite))

    def of(self, suite: str, case: str) -> Iterator[Key]:
        """Go through the keys of one case."""
        return (key for key in self.values if key.suite == suite and key.case == case)
