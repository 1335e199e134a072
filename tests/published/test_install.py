"""Installing the published servers: quick when they are there, clear when they cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "install_published.py"


def install(target: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    environ = {key: value for key, value in os.environ.items() if key != "CI"} | environment
    command = [sys.executable, str(SCRIPT), "--part", "node", "--into", str(target)]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("ci", "status"), [("", 3), ("true", 1)])
def test_a_missing_node_is_an_error_only_in_ci(ci: str, status: int, tmp_path: Path) -> None:
    done = install(tmp_path / "servers", PATH=str(tmp_path), CI=ci)
    assert done.returncode == status
    assert "Node.js and npm are not on the PATH." in done.stderr


def test_an_old_node_is_named(tmp_path: Path) -> None:
    for name in ("node", "npm"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho v18.1.0\n")
        program.chmod(0o700)
    done = install(tmp_path / "servers", PATH=str(tmp_path))
    assert done.returncode == 3
    assert "Node.js 20 or newer is needed, v18.1.0 is installed." in done.stderr
    assert not (tmp_path / "servers" / "node" / "installed").exists()
