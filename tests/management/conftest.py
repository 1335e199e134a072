"""The command as tests run it: in this process, and as a process of its own."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from mcp_client_app.runtime import close_mcp_manager, get_mcp_manager, row_source

ROOT = Path(__file__).resolve().parents[2]
FAULTY = ROOT / "tests" / "servers" / "faulty_stdio.py"
WORKSHOP = ROOT / "example_project" / "servers" / "workshop.py"
SECONDS = 90


@dataclass(frozen=True)
class Outcome:
    """What a run of the command gave."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output, which must be one JSON document and nothing else."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Run = Callable[..., Outcome]


@pytest.fixture
def run(transactional_db, monkeypatch) -> Iterator[Run]:
    """Run the command in this process."""
    row_source.forget()

    def run_command(*words: str, stdin: str = "") -> Outcome:
        out, err = io.StringIO(), io.StringIO()
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        try:
            call_command("mcp_client", *words, stdout=out, stderr=err)
        except CommandError as error:
            return Outcome(error.returncode, out.getvalue(), f"{err.getvalue()}{error}")
        return Outcome(0, out.getvalue(), err.getvalue())

    yield run_command
    close_mcp_manager()
    row_source.forget()


def faulty(*scenarios: str) -> str:
    """Return a command line that starts the faulty server."""
    options = [f"--scenario={scenario}" for scenario in scenarios]
    return shlex.join([sys.executable, "-S", "-E", str(FAULTY), *options])


@pytest.fixture
def servers(run: Run) -> Run:
    """Run the command where ``good`` works, ``dead`` cannot be started and ``off`` is disabled."""
    for words in (
        ("add", "good", faulty(), "--no-connect"),
        ("add", "dead", "/no/such/program", "--no-connect"),
        ("add", "off", faulty(), "--disabled"),
    ):
        assert run(*words).code == 0
    return run


@pytest.fixture
def workshop(run: Run) -> Run:
    """Run the command where only ``workshop``, the example server, is stored.

    This process has a manager, so that the server, which starts slowly, does so once per test.
    """
    get_mcp_manager()
    assert run("add", "workshop", shlex.join([sys.executable, str(WORKSHOP)]), "--no-connect").code == 0
    return run


# Processes ---------------------------------------------------------------------------


def environment(directory: Path, **more: str) -> dict[str, str]:
    """Return the environment for a ``manage.py`` whose files lie in ``directory``."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EXAMPLE_", "DJANGO_", "NO_COLOR"))
    }
    return inherited | {"EXAMPLE_VAR_DIR": str(directory), "EXAMPLE_LOG_LEVEL": "CRITICAL", **more}


def manage(directory: Path, *words: str, stdin: str | None = None, **more: str) -> Outcome:
    """Run ``manage.py`` as people do."""
    result = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environment(directory, **more),
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Outcome(result.returncode, result.stdout, result.stderr)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with tables, to be copied."""
    directory = tmp_path_factory.mktemp("migrated")
    result = manage(directory, "migrate", "--verbosity=0")
    assert result.code == 0, result.err
    return directory


@pytest.fixture
def site(migrated: Path, tmp_path: Path) -> Path:
    """The directory of a fresh site that has been migrated."""
    for name in ("db.sqlite3", "secret_key"):
        (tmp_path / name).write_bytes((migrated / name).read_bytes())
    return tmp_path
