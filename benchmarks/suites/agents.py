"""Runs of an agent whose model answers at once: two requests, five calls of a tool that does nothing."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.figures import Figures, Key
from benchmarks.servers.fast import fast_server
from benchmarks.sites import postgresql, prepared
from benchmarks.suites.options import Options, rotated, say
from benchmarks.suites.rest import POSTGRESQL, SQLITE
from benchmarks.variants import MODERN
from benchmarks.worker_process import WorkerProcess
from benchmarks.workers.protocol import Order, Target

__all__ = ["BY_HAND", "FUNCTIONS", "OURS", "SUITE", "run"]

SUITE = "agents"
FUNCTIONS = "pydantic-ai, plain functions"
BY_HAND = "pydantic-ai, SDK session by hand"
OURS = "ours"
LEVELS = (1, 8)


def run(options: Options, figures: Figures) -> None:
    """Measure all in turn, on each database.

    Raises:
        BenchmarkError: pydantic-ai is not installed.
    """
    if find_spec("pydantic_ai") is None:
        raise BenchmarkError("agents need the extra 'agents'.")
    for case, database in ((SQLITE, _no_name), (POSTGRESQL, postgresql)):
        if not options.wants(case):
            continue
        with contextlib.ExitStack() as stack:
            place = stack.enter_context(database())
            if place is None:
                figures.notes.append(f"{SUITE}: {case} was left out: it cannot be reached")
                continue
            _measure(case, _crew(case, place, stack), options, figures)


@contextlib.contextmanager
def _no_name() -> Iterator[str]:
    yield ""


def _crew(case: str, database: str, stack: contextlib.ExitStack) -> list[tuple[str, WorkerProcess]]:
    say(f"{SUITE}: {case}: starting")
    target = json.dumps(asdict(Target("stdio", MODERN, fast_server().over("stdio"))))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    environment = prepared(folder, audit="each call", database=database)
    crew = [
        (FUNCTIONS, WorkerProcess(FUNCTIONS, "agents_bare", target, "functions")),
        (BY_HAND, WorkerProcess(BY_HAND, "agents_bare", target, "session")),
        (OURS, WorkerProcess(OURS, "agents_ours", environment=environment)),
    ]
    for _, worker in crew:
        stack.enter_context(worker)
    for _, worker in crew:
        worker.wait_ready()
        worker.sample(Order(LEVELS[-1], 0.2))
    return crew


def _measure(case: str, crew: list[tuple[str, WorkerProcess]], options: Options, figures: Figures) -> None:
    for number in range(options.rounds):
        say(f"{SUITE}: {case}: round {number + 1} of {options.rounds}")
        for level in LEVELS:
            for variant, worker in rotated(crew, number):
                sample = worker.sample(Order(level, options.seconds))
                for metric, value in (
                    ("p50_us", sample.p50_us),
                    ("cpu_us", sample.cpu_us),
                    ("rate", sample.rate),
                ):
                    figures.add(Key(SUITE, case, variant, f"{metric}@{level}"), number, value)
