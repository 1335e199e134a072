"""The same tests on a real PostgreSQL: transactions, locks and characters differ from SQLite there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def is_reachable() -> bool:
    """Say whether something listens where the settings expect PostgreSQL."""
    address = os.environ.get("PGHOST", "127.0.0.1"), int(os.environ.get("PGPORT", "5432"))
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError:
        return False
    return True


pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(not is_reachable(), reason="no PostgreSQL is reachable"),
    pytest.mark.timeout(900),
]


def run(*suites: str) -> None:
    """Run tests on PostgreSQL, in a process of their own."""
    options = ["--ds=tests.settings_postgresql", "-p", "no:cacheprovider", "-q", "--no-cov"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *suites],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-10_000:] + result.stderr[-2_000:]


def test_audit_rows_outlive_transactions_on_postgresql():
    run("tests/services/test_audit_rows.py", "tests/services/test_audit_batches.py")


def test_one_decides_and_one_uses_an_approval_on_postgresql():
    run("tests/approvals/test_races.py", "tests/approvals/test_requests.py")


def test_a_run_that_waits_is_gone_on_with_by_other_processes_on_postgresql():
    run("tests/approvals/test_processes.py")


def test_runs_are_claimed_and_settled_on_postgresql():
    run("tests/runs/test_races.py", "tests/runs/test_ledger.py")


@pytest.mark.slow
def test_rows_and_calls_work_on_postgresql():
    run(
        "tests/services/test_calls.py",
        "tests/services/test_servers.py",
        "tests/services/test_transfer.py",
        "tests/runtime/test_row_source.py",
        "tests/runtime/test_configured.py",
        "tests/runtime/test_states.py",
    )
