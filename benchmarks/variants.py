"""Who is measured."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BASELINE", "LEVELS", "VARIANTS", "Variant", "chosen"]

BASELINE = "sdk"
LEVELS = (1, 8, 10, 32, 50, 100)
"""How many callers at once; the baseline is measured at each, everybody else at some."""


@dataclass(frozen=True)
class Variant:
    """One way of calling a tool."""

    name: str
    label: str
    module: str
    arguments: tuple[str, ...] = ()
    levels: tuple[int, ...] = (1, 10, 50, 100)
    environment: str = ""
    """Whose requirements it needs; empty = ours."""
    extra: bool = False
    """Left out of quick runs."""


THREADS = (1, 8, 32, 100)

VARIANTS = (
    Variant(BASELINE, "SDK ClientSession, own loop", "sdk", levels=LEVELS),
    Variant("ours-loop", "ours, coroutine on the loop thread", "ours", ("loop",)),
    Variant("ours-async", "ours, coroutine on another loop", "ours", ("async",)),
    Variant("ours-sync", "ours, from threads", "ours", ("sync",), THREADS),
    Variant("ours-loop-uvloop", "the same with uvloop: loop thread", "ours", ("loop", "uvloop"), extra=True),
    Variant(
        "ours-async-uvloop", "the same with uvloop: another loop", "ours", ("async", "uvloop"), extra=True
    ),
    Variant(
        "ours-sync-uvloop", "the same with uvloop: threads", "ours", ("sync", "uvloop"), THREADS, extra=True
    ),
)


def chosen(names: list[str] | None, *, quick: bool) -> list[Variant]:
    """Return the variants that were asked for, the baseline always among them.

    Raises:
        KeyError: There is no such variant.
    """
    if names is None:
        return [variant for variant in VARIANTS if not (quick and variant.extra)]
    known = {variant.name: variant for variant in VARIANTS}
    return [known[name] for name in dict.fromkeys([BASELINE, *names])]
