"""Calls of a tool that does nothing: how long one takes, how many get through."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass

from benchmarks.figures import Figures, Key
from benchmarks.servers.fast import fast_server, listening
from benchmarks.suites.options import Options, say
from benchmarks.variants import LEVELS, Variant
from benchmarks.worker_process import WorkerProcess
from benchmarks.workers.protocol import Order, Sample, Target

__all__ = ["CASES", "SUITE", "Case", "note", "rotated", "run"]

SUITE = "calls"
LEGACY, MODERN = "2025-11-25", "2026-07-28"


@dataclass(frozen=True)
class Case:
    """How the server is reached."""

    transport: str
    """``stdio``, ``http-json`` or ``http-sse``."""
    era: str

    @property
    def name(self) -> str:
        """As the report calls it."""
        return f"{self.transport} {self.era}"


CASES = tuple(
    Case(transport, era) for transport in ("stdio", "http-json", "http-sse") for era in (MODERN, LEGACY)
)


def run(options: Options, figures: Figures) -> None:
    """Measure each case, all variants in turn."""
    for case in CASES:
        if options.wants(case.name):
            with contextlib.ExitStack() as stack:
                target = _target(case, stack)
                _measure(case, target, options, figures, stack)


def _target(case: Case, stack: contextlib.ExitStack) -> Target:
    command = fast_server().over(case.transport)
    if case.transport == "stdio":
        return Target("stdio", case.era, command)
    return Target("http", case.era, url=stack.enter_context(listening(command)))


def _measure(
    case: Case, target: Target, options: Options, figures: Figures, stack: contextlib.ExitStack
) -> None:
    workers: list[tuple[Variant, WorkerProcess]] = []
    for variant in options.variants:
        say(f"{SUITE}: {case.name}: starting {variant.name}")
        worker = WorkerProcess(variant.name, variant.module, json.dumps(asdict(target)), *variant.arguments)
        stack.enter_context(worker)
        worker.wait_ready()
        workers.append((variant, worker))
    for _, worker in workers:  # nothing of the first calls' cost is in the first round
        worker.sample(Order(8, 0.1))
    for number in range(options.rounds):
        say(f"{SUITE}: {case.name}: round {number + 1} of {options.rounds}")
        for level in LEVELS:
            taking_part = [each for each in workers if level in each[0].levels]
            if len(taking_part) < 2 and len(workers) > 1:
                continue  # only the baseline: nobody is compared with it there
            for variant, worker in rotated(taking_part, number + level):
                note(
                    figures,
                    case.name,
                    variant.name,
                    level,
                    number,
                    worker.sample(Order(level, options.seconds)),
                )


def rotated(items: list[tuple[Variant, WorkerProcess]], number: int) -> list[tuple[Variant, WorkerProcess]]:
    """Return the items in another order each round: none always follows the same one."""
    start = number % len(items)
    return items[start:] + items[:start]


def note(figures: Figures, case: str, variant: str, level: int, number: int, sample: Sample) -> None:
    """Note a sample of one round."""
    for metric, value in (
        ("p50_us", sample.p50_us),
        ("p99_us", sample.p99_us),
        ("cpu_us", sample.cpu_us),
        ("rate", sample.rate),
    ):
        figures.add(Key(SUITE, case, variant, f"{metric}@{level}"), number, value)
