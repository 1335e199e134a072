"""Connecting many servers at once: time, CPU time, memory, threads, and how long the loop stands still."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.figures import Figures, Key
from benchmarks.servers.fast import PYTHON_SOURCE, fast_server, listening
from benchmarks.suites.options import Options, rotated, say
from benchmarks.variants import BASELINE, MODERN
from benchmarks.worker_process import WorkerProcess
from benchmarks.workers.protocol import Target
from tests.servers.tls import make_tls

__all__ = ["BARE", "HTTP", "HTTPS", "OURS", "STDIO", "STDIO_PYTHON", "SUITE", "run"]

SUITE = "connecting"
BARE = "bare"
"""No client: processes are started and asked by bare bytes."""
OURS = "ours"
STDIO, STDIO_PYTHON, HTTP, HTTPS = "stdio", "stdio, servers in Python", "http", "https"
PEM = "peer.pem"
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
        Case(HTTPS, "http", fast_server().over("http-json"), (BASELINE, OURS)),
    ]


def run(options: Options, figures: Figures) -> None:
    """Measure; each measurement in a process of its own, since only the first one says what memory costs."""
    rounds = min(options.rounds, MOST_ROUNDS)
    for case in cases():
        if not options.wants(case.name):
            continue
        with contextlib.ExitStack() as stack:
            trusted = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            if case.transport == "stdio":
                target = Target("stdio", MODERN, case.command)
            else:
                url = stack.enter_context(listening(case.command))
                if case.name == HTTPS:
                    make_tls(trusted)
                    front = (sys.executable, "-m", "benchmarks.servers.tls_front", str(trusted / PEM), url)
                    url = stack.enter_context(listening(front))
                target = Target("http", MODERN, url=url)
            argument = json.dumps(asdict(target))
            for number in range(rounds):
                say(f"{SUITE}: {case.name}: round {number + 1} of {rounds}")
                for count in COUNTS[1::2] if options.quick else COUNTS:
                    for variant in rotated(case.variants, number):
                        with WorkerProcess(
                            variant,
                            f"connect_{variant}",
                            argument,
                            environment={"SSL_CERT_FILE": str(trusted / PEM)} if case.name == HTTPS else None,
                        ) as worker:
                            worker.wait_ready()
                            found = worker.ask({"count": count})["found"]
                        for metric, value in found.items():
                            figures.add(Key(SUITE, case.name, variant, f"{metric}@{count}"), number, value)
