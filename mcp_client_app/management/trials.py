"""The verb ``test``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, Final

from django.db import connections

from mcp_client_app import services
from mcp_client_app.management import documents
from mcp_client_app.management.console import Console
from mcp_client_app.management.failures import failure, outcome
from mcp_client_app.management.tables import Column
from mcp_client_app.management.verbs import Verbs
from mcp_client_app.services import TestReport, TestStep

__all__ = ["add_verbs"]

TESTS_AT_ONCE: Final = 8


def add_verbs(verbs: Verbs) -> None:
    """Add this module's verb."""
    verb = verbs.add("test", run_tests, help="connect servers freshly, list what they offer, close again")
    verb.add_argument("names", metavar="SERVER", nargs="*", help="these only; otherwise all enabled ones")


def run_tests(options: argparse.Namespace, console: Console) -> None:
    """Test servers, each with a connection of its own."""
    if options.names:
        names = [services.get_server(name).name for name in dict.fromkeys(options.names)]
    else:
        names = [server.name for server in services.list_servers() if server.enabled]
    reports: list[TestReport] = []
    with console.progress(len(names)) as progress:
        progress.waiting(f"testing {len(names)} servers ...")
        for report in _reports(names):
            progress.step(f"{report.server}: {'ok' if report.ok else 'FAILED'}")
            reports.append(report)
    reports.sort(key=lambda report: names.index(report.server))
    if console.as_json:
        console.document({"tests": [_report_document(report) for report in reports]})
    else:
        _show_reports(console, reports)
    failed = [report.server for report in reports if not report.ok]
    if failed:
        raise failure(f"The test failed: {', '.join(failed)}.", outcome(len(failed), len(reports)))


def _reports(names: Sequence[str]) -> Iterator[TestReport]:
    """Yield the reports as they come: in this thread for one server, so that it needs no other."""
    if len(names) == 1:
        yield services.test_server(names[0])
        return
    with _threads() as pool:
        for future in as_completed([pool.submit(_tested, name) for name in names]):
            yield future.result()


def _tested(name: str) -> TestReport:
    try:
        return services.test_server(name)
    finally:
        # Django's connections belong to threads; this thread's are needed no more.
        connections.close_all()


@contextmanager
def _threads() -> Iterator[ThreadPoolExecutor]:
    """Like the executor itself, but Ctrl-C does not wait for what hangs: closing the manager ends that."""
    pool = ThreadPoolExecutor(TESTS_AT_ONCE, thread_name_prefix="mcp-client-test")
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _show_reports(console: Console, reports: Sequence[TestReport]) -> None:
    console.table(
        [
            Column("SERVER"),
            Column("STEP"),
            Column("RESULT", paint=console.paint),
            Column("TIME"),
            Column("DETAIL", can_shrink=True),
        ],
        [
            (report.server, step.name, _word(step), _time(step), step.detail)
            for report in reports
            for step in report.steps
        ],
        empty="There are no enabled servers.",
    )
    for report in reports:
        for warning in report.status.warnings if report.status is not None else ():
            console.line(f"{report.server}: warning: {warning}")


def _report_document(report: TestReport) -> dict[str, Any]:
    return {
        "server": report.server,
        "ok": report.ok,
        "steps": [
            {"name": step.name, "ok": step.ok, "seconds": round(step.seconds, 3), "detail": step.detail}
            for step in report.steps
        ],
        "status": documents.status_document(report.status) if report.status is not None else None,
    }


def _word(step: TestStep) -> str:
    return "ok" if step.ok else "FAILED"


def _time(step: TestStep) -> str:
    return f"{step.seconds:.2f} s" if step.seconds else ""
