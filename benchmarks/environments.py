"""Environments of their own for the peers: their pins contradict ours, and each other's."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.places import ENVIRONMENTS, SOURCES

__all__ = ["python_of"]

REQUIREMENTS = SOURCES / "requirements"
INSTALL_SECONDS = 900


def python_of(environment: str) -> str:
    """Return the interpreter of a peer's environment, which is made if it is not there; ours if it has none.

    Raises:
        BenchmarkError: It cannot be installed.
    """
    if not environment:
        return sys.executable
    requirements = REQUIREMENTS / f"{environment}.txt"
    folder = ENVIRONMENTS / environment
    stamp = folder / "installed"
    wanted = hashlib.sha256(sys.version.encode() + requirements.read_bytes()).hexdigest()
    python = folder / "bin" / "python"
    if not (stamp.exists() and stamp.read_text() == wanted):
        _install(folder, python, requirements)
        stamp.write_text(wanted)
    return str(python)


def _install(folder: Path, python: Path, requirements: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        venv.create(folder, with_pip=True, symlinks=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run(
            [*install, "-r", str(requirements)],
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise BenchmarkError(f"The environment of {folder.name} cannot be made: {error}") from error
    if done.returncode:
        raise BenchmarkError(f"{folder.name} cannot be installed:\n{done.stderr.strip()[-2000:]}")
