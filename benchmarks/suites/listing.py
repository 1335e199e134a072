"""Listing 1,000 and 10,000 tools; and what it costs to make of the cached list what a provider wants."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict

from benchmarks.figures import Figures, Key
from benchmarks.servers.fast import fast_server
from benchmarks.suites.options import Options, rotated, say
from benchmarks.suites.serving import serving
from benchmarks.variants import BASELINE
from benchmarks.worker_process import WorkerProcess

__all__ = ["CACHED", "CASES", "DUMPS", "OURS", "SUITE", "run"]

SUITE = "listing"
OURS = "ours"
CACHED = "ours, cached: filter, name, convert"
DUMPS = "orjson.dumps of that"
COUNTS = (1000, 10_000)
CASES = {
    "stdio, pages of 100": ("stdio", 100),
    "stdio, one page": ("stdio", 0),
    "http-json, pages of 100": ("http-json", 100),
}


def run(options: Options, figures: Figures) -> None:
    """Measure each case, all variants in turn."""
    for case, (transport, page) in CASES.items():
        if not options.wants(case):
            continue
        for count in COUNTS:
            with contextlib.ExitStack() as stack:
                command = fast_server().over(transport, tools=count, page=page)
                target = serving(command, transport, stack)
                crew = []
                for variant in (BASELINE, OURS):
                    worker = WorkerProcess(variant, f"listing_{variant}", json.dumps(asdict(target)))
                    crew.append((variant, stack.enter_context(worker)))
                    worker.wait_ready()
                for number in range(options.rounds):
                    say(f"{SUITE}: {case}: {count} tools: round {number + 1} of {options.rounds}")
                    for variant, worker in rotated(crew, number):
                        answer = worker.ask({})
                        for part, name in (("found", variant), ("cached", CACHED), ("dumps", DUMPS)):
                            for metric, value in answer.get(part, {}).items():
                                figures.add(Key(SUITE, case, name, f"{metric}@{count}"), number, value)
