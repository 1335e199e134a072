"""Calls of a tool that does nothing, and of one that takes 20 ms: how long, and how many get through."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.environments import python_of
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Figures, Key
from benchmarks.servers.fast import fast_server
from benchmarks.suites.options import Options, rotated, say
from benchmarks.suites.serving import serving
from benchmarks.variants import LEGACY, LEVELS, MODERN, Variant
from benchmarks.worker_process import WorkerProcess
from benchmarks.workers.protocol import Order, Sample, Target

__all__ = ["CASES", "SUITE", "TOOL", "WAITERS", "WAITING", "WAIT_MS", "Case", "run"]

SUITE = "calls"
WAITING = "waiting"
"""The suite of the tool that takes its time; measured along, with the same workers."""
WAIT_MS = 20
TOOL = "the tool itself"
WAITERS = 100

Crew = list[tuple[Variant, WorkerProcess]]


@dataclass(frozen=True)
class Case:
    """How which server is reached."""

    transport: str
    """``stdio``, ``http-json`` or ``http-sse``."""
    era: str
    server: str = "fast"
    """``fast`` or ``sdk``."""

    @property
    def name(self) -> str:
        """As the report calls it."""
        return f"{'' if self.server == 'fast' else 'sdk-server '}{self.transport} {self.era}"

    @property
    def command(self) -> tuple[str, ...]:
        """What starts the server."""
        if self.server == "fast":
            return fast_server().over(self.transport)
        return (sys.executable, "-m", "benchmarks.servers.sdk_server", self.transport.partition("-")[0])


CASES = (
    *(Case(transport, era) for transport in ("stdio", "http-json", "http-sse") for era in (MODERN, LEGACY)),
    Case("stdio", MODERN, "sdk"),
    Case("http-sse", MODERN, "sdk"),
)


def run(options: Options, figures: Figures) -> None:
    """Measure each case, all variants in turn."""
    for case in CASES:
        if not options.wants(case.name) or (options.quick and case.server == "sdk"):
            continue
        with contextlib.ExitStack() as stack:
            target = serving(case.command, case.transport, stack, era=case.era)
            crew = _start(case, target, options.variants, figures.notes, stack)
            _measure(case, crew, options, figures)


def _start(
    case: Case, target: Target, variants: Sequence[Variant], notes: list[str], stack: contextlib.ExitStack
) -> Crew:
    crew: Crew = []
    for variant in variants:
        if case.era not in variant.eras:
            continue
        say(f"{SUITE}: {case.name}: starting {variant.name}")
        try:
            python = python_of(variant.environment)
        except BenchmarkError as error:
            notes.append(f"{case.name}: {variant.name} was left out: {error}")
            continue
        worker = WorkerProcess(
            variant.name,
            variant.module,
            json.dumps(asdict(target)),
            *variant.arguments,
            python=python,
            checkout=variant.checkout,
        )
        stack.enter_context(worker)
        worker.wait_ready()
        crew.append((variant, worker))
    for variant, worker in crew:  # nothing of the first calls' cost is in the first round
        worker.sample(Order(min(8, variant.levels[-1]), 0.1))
    return crew


def _measure(case: Case, crew: Crew, options: Options, figures: Figures) -> None:
    for number in range(options.rounds):
        say(f"{SUITE}: {case.name}: round {number + 1} of {options.rounds}")
        for level in LEVELS:
            taking_part = [each for each in crew if level in each[0].levels and _can(each[0], level, case)]
            if len(taking_part) == 1 and len(crew) > 1:
                continue  # only the baseline: nobody is compared with it there
            for variant, worker in rotated(taking_part, number + level):
                sample = worker.sample(Order(level, options.seconds))
                _note(figures, SUITE, case, variant, level, number, sample)
        if case.server == "fast":
            waiting = [each for each in crew if WAITERS in each[0].levels]
            figures.add(Key(WAITING, case.name, TOOL, f"p50_us@{WAITERS}"), number, WAIT_MS * 1000)
            for variant, worker in rotated(waiting, number):
                sample = worker.sample(Order(WAITERS, options.seconds, "wait", {"ms": WAIT_MS}))
                _note(figures, WAITING, case, variant, WAITERS, number, sample)


def _can(variant: Variant, level: int, case: Case) -> bool:
    """Say whether a measurement is worth its time: starting ten of the SDK's servers takes ten seconds."""
    return level == 1 or not (variant.per_call and case.server == "sdk")


def _note(
    figures: Figures, suite: str, case: Case, variant: Variant, level: int, number: int, sample: Sample
) -> None:
    for metric, value in (
        ("p50_us", sample.p50_us),
        ("p99_us", sample.p99_us),
        ("cpu_us", sample.cpu_us),
        ("rate", sample.rate),
    ):
        figures.add(Key(suite, case.name, variant.name, f"{metric}@{level}"), number, value)
