"""Results of 1, 10 and 50 MB, and what the calls of another server see of it."""

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

__all__ = ["OURS", "SUITE", "run"]

SUITE = "results"
OURS = "ours"
MEGABYTES = (1, 10, 50)
MOST_ROUNDS = {1: 7, 10: 5, 50: 3}
"""The SDK takes twenty seconds for 50 MB over stdio."""


def run(options: Options, figures: Figures) -> None:
    """Measure each case, both variants in turn."""
    for transport in ("stdio", "http-json"):
        if not options.wants(transport):
            continue
        with contextlib.ExitStack() as stack:
            crew = []
            for variant in (BASELINE, OURS):
                # Two servers, so that one does not wait for the other.
                targets = [serving(fast_server().over(transport), transport, stack) for _ in range(2)]
                arguments = (json.dumps(asdict(target)) for target in targets)
                worker = WorkerProcess(variant, f"results_{variant}", *arguments)
                crew.append((variant, stack.enter_context(worker)))
                worker.wait_ready()
            for size in MEGABYTES[:2] if options.quick else MEGABYTES:
                rounds = min(options.rounds, MOST_ROUNDS[size])
                for number in range(rounds):
                    say(f"{SUITE}: {transport}: {size} MB: round {number + 1} of {rounds}")
                    for variant, worker in rotated(crew, number):
                        for metric, value in worker.ask({"bytes": size * 1_000_000})["found"].items():
                            figures.add(Key(SUITE, transport, variant, f"{metric}@{size}MB"), number, value)
