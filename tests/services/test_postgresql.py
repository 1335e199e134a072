"""The same tests on a real PostgreSQL: transactions, locks and characters differ from SQLite there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITES = [
    "tests/services/test_audit_rows.py",
    "tests/services/test_calls.py",
    "tests/services/test_servers.py",
    "tests/services/test_transfer.py",
    "tests/runtime/test_row_source.py",
    "tests/runtime/test_states.py",
]


def is_reachable() -> bool:
    """Say whether something listens where the settings expect PostgreSQL."""
    address = os.environ.get("PGHOST", "127.0.0.1"), int(os.environ.get("PGPORT", "5432"))
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError:
        return False
    return True


@pytest.mark.services
@pytest.mark.skipif(not is_reachable(), reason="no PostgreSQL is reachable")
def test_what_touches_transactions_works_on_postgresql():
    arguments = [
        "--ds=tests.settings_postgresql",
        "-p",
        "no:cacheprovider",
        "-q",
        "--no-cov",
    ]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, *SUITES],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-10_000:] + result.stderr[-2_000:]
