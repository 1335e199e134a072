"""Connecting many servers at once: time, CPU time, memory, threads, and how long the loop stands still."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.figures import Figures, Key
from benchmarks.servers.fast import PYTHON_SOURCE, fast_server, listening
from benchmarks.suites.options import Options, rotated, say
from benchmarks.variants import BASELINE, MODERN
from benchmarks.worker_process import WorkerProcess
from benchmarks.workers.protocol import Target

__all__ = ["BARE", "HTTP", "OURS", "STDIO", "STDIO_PYTHON", "SUITE", "run"]

SUITE = "connecting"
BARE = "bare"
"""No client: processes are started and asked by bare bytes."""
OURS = "ours"
STDIO, STDIO_PYTHON, HTTP = "stdio", "stdio, servers in Python", "http"
COUNTS = (1, 10, 50, 100)
MOST_ROUNDS = 5


@dataclass(frozen=True)
class Case:
    """Which servers are connected."""

    name: str
    transport: str
    command: tuple[str, ...]
    variants: Sequence[str]


def cases() -> list[Case]:
    """Return the cases."""
    python = (sys.executable, "-I", str(PYTHON_SOURCE), "stdio")
    return [
        Case(STDIO, "stdio", fast_server().over("stdio"), (BASELINE, OURS, BARE)),
        Case(STDIO_PYTHON, "stdio", python, (BASELINE, OURS, BARE)),
        Case(HTTP, "http", fast_server().over("http-json"), (BASELINE, OURS)),
    ]


def run(options: Options, figures: Figures) -> None:
    """Measure; each measurement in a process of its own, since only the first one says what memory costs."""
    rounds = min(options.rounds, MOST_ROUNDS)
    for case in cases():
        if not options.wants(case.name):
            continue
        with contextlib.ExitStack() as stack:
            if case.transport == "stdio":
                target = Target("stdio", MODERN, case.command)
            else:
                target = Target("http", MODERN, url=stack.enter_context(listening(case.command)))
            argument = json.dumps(asdict(target))
            for number in range(rounds):
                say(f"{SUITE}: {case.name}: round {number + 1} of {rounds}")
                for count in COUNTS[1::2] if options.quick else COUNTS:
                    for variant in rotated(case.variants, number):
                        with WorkerProcess(variant, f"connect_{variant}", argument) as worker:
                            worker.wait_ready()
                            found = worker.ask({"count": count})["found"]
                        for metric, value in found.items():
                            figures.add(Key(SUITE, case.name, variant, f"{metric}@{count}"), number, value)
