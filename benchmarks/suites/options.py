"""How much is measured."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.variants import Variant

__all__ = ["Options", "rotated", "say"]

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    quick: bool = False
    rounds: int = 7
    seconds: float = 0.5
    """Of each measurement in each round."""
    variants: list[Variant] = field(default_factory=list)
    cases: list[str] | None = None
    """Only the cases whose name contains one of these."""

    def wants(self, case: str) -> bool:
        """Say whether a case is asked for."""
        return self.cases is None or any(part in case for part in self.cases)


def say(text: str) -> None:
    """Tell how far we are; to standard error, so that the report can be redirected."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
    else:
        sys.stderr.write(text + "\n")
    sys.stderr.flush()


def rotated(items: Sequence[T], number: int) -> list[T]:
    """Return the items in another order each round: none always follows the same one."""
    start = number % len(items) if items else 0
    return [*items[start:], *items[:start]]
