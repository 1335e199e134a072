"""Whether a call gets dearer by what else is connected: 100 servers with 10,000 tools against one server."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict

from benchmarks.figures import Figures, Key
from benchmarks.servers.fast import fast_server
from benchmarks.suites.options import Options, rotated, say
from benchmarks.suites.serving import serving
from benchmarks.worker_process import WorkerProcess
from benchmarks.workers.protocol import Order

__all__ = ["CROWD", "ONE", "SUITE", "run"]

SUITE = "crowd"
ONE, CROWD = "one server", "100 servers, 10,000 tools"
LEVELS = (1, 8)
SIZES = {ONE: (1, 3), CROWD: (100, 100)}
"""Servers, and tools of each."""


def run(options: Options, figures: Figures) -> None:
    """Measure both in turn."""
    for transport in ("stdio", "http-json"):
        if not options.wants(transport):
            continue
        with contextlib.ExitStack() as stack:
            crew = []
            for name, (servers, tools) in SIZES.items():
                say(f"{SUITE}: {transport}: starting {name}")
                command = fast_server().over(transport, tools=tools)
                target = serving(command, transport, stack)
                worker = WorkerProcess(name, "crowd", json.dumps(asdict(target)), str(servers))
                crew.append((name, stack.enter_context(worker)))
                worker.wait_ready()
                worker.sample(Order(8, 0.2))
            for number in range(options.rounds):
                say(f"{SUITE}: {transport}: round {number + 1} of {options.rounds}")
                for level in LEVELS:
                    for name, worker in rotated(crew, number):
                        sample = worker.sample(Order(level, options.seconds))
                        for metric, value in (
                            ("p50_us", sample.p50_us),
                            ("cpu_us", sample.cpu_us),
                            ("rate", sample.rate),
                        ):
                            figures.add(Key(SUITE, transport, name, f"{metric}@{level}"), number, value)
