"""Half a minute of the soak, in a process of its own; ``make soak`` runs ten minutes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.stored import ROOT

SECONDS = 30
PATIENCE = 600.0
"""Seconds for the whole program, which has its own watch for what hangs; the machine may be busy."""


@pytest.mark.soak
@pytest.mark.timeout(PATIENCE + 60)
def test_nothing_is_wrong_lost_done_twice_hung_or_left_behind():
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DJANGO_")}
    result = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--seconds", str(SECONDS)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
