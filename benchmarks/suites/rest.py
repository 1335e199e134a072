"""Calls through the REST API against an endpoint that does nothing; and what writing down calls costs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from benchmarks.figures import Figures, Key
from benchmarks.load import Request, load
from benchmarks.sites import Site, deployed, postgresql
from benchmarks.suites.options import Options, rotated, say
from benchmarks.workers.protocol import Sample

__all__ = ["AUDIT", "NO_OP", "OURS", "POSTGRESQL", "REST", "SQLITE", "run_audit", "run_rest"]

REST = "rest"
AUDIT = "audit"
NO_OP, OURS = "no-op", "ours"
SQLITE, POSTGRESQL = "SQLite (WAL)", "PostgreSQL"
MODES = ("off", "batch", "each call")
CONNECTIONS = (1, 16)

BODY: dict[str, object] = {"name": "fast__echo", "arguments": {"text": "hello"}}
CALL = Request("/api/tools/call/", BODY)
NOTHING = Request("/no-op/", BODY)
WARMING = 64
"""Connections of the first load: every worker connects."""


def run_rest(options: Options, figures: Figures) -> None:
    """Measure both endpoints of one site in turn, under both servers."""
    for server in ("gunicorn", "uvicorn"):
        if options.wants(server):
            say(f"{REST}: {server}: starting")
            with deployed(server) as site:
                crew = [(NO_OP, site, NOTHING), (OURS, site, CALL)]
                _measure(REST, server, crew, options, figures)


def run_audit(options: Options, figures: Figures) -> None:
    """Measure the same call with rows written in batches, with each call, and not at all."""
    for name, database in ((SQLITE, _no_name), (POSTGRESQL, postgresql)):
        if not options.wants(name):
            continue
        with contextlib.ExitStack() as stack:
            crew = []
            for mode in MODES:
                say(f"{AUDIT}: {name}: starting, rows: {mode}")
                place = stack.enter_context(database())
                if place is None:
                    figures.notes.append(f"{AUDIT}: {name} was left out: it cannot be reached")
                    break
                site = stack.enter_context(deployed("gunicorn", audit=mode, database=place))
                crew.append((mode, site, CALL))
            else:
                _measure(AUDIT, name, crew, options, figures)


@contextlib.contextmanager
def _no_name() -> Iterator[str]:
    yield ""


def _measure(
    suite: str, case: str, crew: list[tuple[str, Site, Request]], options: Options, figures: Figures
) -> None:
    for _, site, request in crew:
        load(site, request, WARMING, 0.5)
    for number in range(options.rounds):
        say(f"{suite}: {case}: round {number + 1} of {options.rounds}")
        for level in CONNECTIONS:
            for variant, site, request in rotated(crew, number):
                sample = load(site, request, level, options.seconds)
                for metric, value in METRICS.items():
                    figures.add(Key(suite, case, variant, f"{metric}@{level}"), number, value(sample))


METRICS: dict[str, Callable[[Sample], float]] = {
    "p50_us": lambda sample: sample.p50_us,
    "p99_us": lambda sample: sample.p99_us,
    "cpu_us": lambda sample: sample.cpu_us,
    "rate": lambda sample: sample.rate,
}
