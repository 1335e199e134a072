"""Processes of ``multiprocessing``, however started and ended, next to a parent that uses servers itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import leftovers
from tests.deployment.sites import SECONDS, Ground, environment, rows_of
from tests.stored import ROOT


def run(ground: Ground, directory: Path, method: str, end: str) -> list[Any]:
    """Run the program on a database of its own; return the lines that it prints."""
    shutil.copytree(ground.directory, directory, dirs_exist_ok=True)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.deployment.pools", method, end],
        cwd=ROOT,
        env=environment(directory),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert not result.stderr, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("method", "end"),
    [
        ("fork", "close"),
        ("forkserver", "close"),
        ("spawn", "close"),
        ("fork", "terminate"),
        ("spawn", "executor"),
    ],
)
def test_each_process_has_a_server_of_its_own_and_leaves_none(
    method: str, end: str, ground: Ground, tmp_path: Path
):
    [told] = run(ground, tmp_path, method, end)

    everybody = [told["parent"], *told["children"]]
    assert [text for _, _, text in everybody] == ["parent", "met", "met"]
    assert len({pid for pid, _, _ in everybody}) == 3
    assert len({peer for _, peer, _ in everybody}) == 3
    assert leftovers.survivors({int(peer) for _, peer, _ in everybody}) == []
    left = {pid for (pid,) in rows_of(tmp_path, "SELECT pid FROM mcp_client_app_workerprocess")}
    # Only whoever is ended by a signal cannot take its rows along.
    assert left == ({pid for pid, _, _ in told["children"]} if end == "terminate" else set())


@pytest.mark.parametrize("end", ["_exit", "sigterm"])
def test_the_server_of_a_child_that_runs_no_exit_code_ends_as_well(end: str, ground: Ground, tmp_path: Path):
    (child, peer, text), told = run(ground, tmp_path, "fork", end)

    assert text == end
    assert child != told["parent"][0]
    assert leftovers.survivors({int(peer), int(told["parent"][1])}) == []
