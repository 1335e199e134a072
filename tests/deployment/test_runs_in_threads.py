"""Agents on the threads of web processes, one of which is killed in the midst of a call."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests import leftovers
from tests.deployment.sites import KINDS, Ground, deployed, rows_of
from tests.deployment.watching import eventually


@pytest.mark.parametrize("kind", ["gunicorn", "uvicorn-2"])
def test_a_run_of_a_process_that_is_killed_goes_on_in_another_one(kind: str, ground: Ground, tmp_path: Path):
    settings = {"DJANGO_SETTINGS_MODULE": "tests.deployment.clerk"}
    directory, gate, written = tmp_path / "site", tmp_path / "gate", tmp_path / "written.txt"
    with deployed(KINDS[kind], ground, directory, **settings) as site:
        agent = {"name": "clerk", "model": "scripted:clerk", "servers": [{"server": "early"}]}
        assert site.send("POST", "agents/", agent).status == 201
        prompt = f'{{"name": "run", "path": "{written}", "gate": "{gate}"}}'
        answer = site.send("POST", "agents/clerk/runs/", {"prompt": prompt})
        assert answer.status == 202, answer
        run = answer.body["id"]
        eventually(lambda: written.exists() and written.read_text() == "run 1\n")
        [(owner,)] = rows_of(directory, "SELECT lease_owner FROM mcp_client_app_agentrun")
        killed = int(owner.split(":")[1])
        assert killed in leftovers.descendants(site.master.pid)
        os.kill(killed, signal.SIGKILL)
        gate.touch()

        # Whoever looks has it go on; the one that is asked may be the one that was killed.
        def is_over() -> bool:
            try:
                return bool(site.send("GET", f"runs/{run}/").body["status"] == "completed")
            except OSError:
                return False

        eventually(is_over)
        found = site.send("GET", f"runs/{run}/").body

    assert written.read_text() == "run 1\nrun 2\n"
    assert "unknown" in found["text"]
    assert found["text"].endswith(" / written")
    [(attempts, now)] = rows_of(directory, "SELECT attempts, lease_owner FROM mcp_client_app_agentrun")
    assert (attempts, now) == (2, "")
