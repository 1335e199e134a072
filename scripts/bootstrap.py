"""Make a virtual environment and install the project into it, quietly and once.

Called by the Makefile with whatever Python 3.11+ is there, before anything is installed: standard
library only. It shows one moving line instead of pip's hundreds, and pip's own words if something
fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import venv
from collections import deque
from pathlib import Path

MINIMUM = (3, 11)
TAIL = 25


def main() -> int:
    """Install ``requirement`` into the environment and leave a stamp file; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("venv", type=Path)
    parser.add_argument("requirement", help="what to install, such as '.' or '.[dev]'; always editable")
    parser.add_argument("stamps", nargs="+", type=Path, help="files to touch once it is installed")
    options = parser.parse_args()

    if sys.version_info < MINIMUM:
        return _fail(f"Python 3.11 or newer is needed; {sys.executable} is {sys.version.split()[0]}.")
    python = options.venv / "bin" / "python"
    try:
        if not _works(python):
            print(f"Making {options.venv} with Python {sys.version.split()[0]} ...", flush=True)
            venv.create(options.venv, with_pip=True, clear=options.venv.exists(), symlinks=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return _fail(
            f"The virtual environment cannot be made: {error}. "
            "On Debian and Ubuntu, install the package python3-venv."
        )
    print(f"Installing {options.requirement} and what it needs (only the first time) ...", flush=True)
    started = time.monotonic()
    if status := _pip_install(python, options.requirement):
        return status
    for stamp in options.stamps:
        stamp.touch()
    print(f"Installed in {time.monotonic() - started:.0f} s.", flush=True)
    return 0


def _works(python: Path) -> bool:
    """Say whether the environment can be used: a moved or half-made one cannot."""
    if not python.exists():
        return False
    return (
        subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    )


def _pip_install(python: Path, requirement: str) -> int:
    command: list[str | Path] = [python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    if not _cache_is_writable():
        # pip would say so in a warning, once for each call.
        command.append("--no-cache-dir")
    command += ["--progress-bar", "off", "--editable", requirement]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    tail: deque[str] = deque(maxlen=TAIL)
    progress = _Progress()
    with process.stdout as lines:
        for line in lines:
            tail.append(line.rstrip())
            progress.see(line)
    status = process.wait()
    progress.end()
    if status:
        return _fail("pip could not install the project:\n\n  " + "\n  ".join(tail))
    return 0


def _cache_is_writable() -> bool:
    # Not Path.home(): it raises where there is no home at all.
    default = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = Path(os.environ.get("PIP_CACHE_DIR") or default)
    existing = next((folder for folder in (cache, *cache.parents) if folder.exists()), cache)
    return os.access(existing, os.W_OK)


class _Progress:
    """One line that changes on a terminal; a line for every 20 packages elsewhere."""

    def __init__(self) -> None:
        self._count = 0
        self._live = sys.stdout.isatty()

    def see(self, line: str) -> None:
        if line.startswith("Collecting "):
            self._count += 1
            if self._live or self._count % 20 == 0:
                self._show(f"{self._count} packages found")
        elif line.startswith("Installing collected packages"):
            self._show(f"installing {line.count(',') + 1} packages")

    def _show(self, text: str) -> None:
        print(f"\r\033[K  {text}" if self._live else f"  {text}", end="" if self._live else "\n", flush=True)

    def end(self) -> None:
        if self._live:
            print("\r\033[K", end="", flush=True)


def _fail(message: str) -> int:
    print(message, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
