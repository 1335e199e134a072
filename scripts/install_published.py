"""Install published things that the tests drive, below ``.published``.

They are servers of npm and of PyPI, and the conformance suite with a Node.js of its own.
``make published`` runs it, and so does whatever needs them. The pins are in ``tests/published`` and
``tests/conformance``; a second run finds everything in place and returns at once.

Exit status: 0 installed, 3 not possible here (no Node.js, no network; the reason is printed), which is no
reason to fail on a developer's machine. With ``CI`` set it is one, and the status is 1.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "tests"
TARGET = ROOT / ".published"
NODE_MAJOR = 20
SHOWN_LINES = 15

NOT_POSSIBLE = 3


class NotPossibleError(Exception):
    """The servers cannot be installed here; says why and what would help."""


def main() -> int:
    """Install what the command line names; return the exit status."""
    parser = argparse.ArgumentParser(description="Install published things that the tests drive.")
    parser.add_argument("--part", choices=PARTS, help="install only these; default: all")
    parser.add_argument("--into", type=Path, default=TARGET, metavar="FOLDER")
    options = parser.parse_args()
    status = 0
    for part in [options.part] if options.part else PARTS:
        try:
            install(part, options.into)
        except NotPossibleError as error:
            print(f"Cannot install {NAMES[part]}: {error}", file=sys.stderr)
            status = 1 if os.environ.get("CI") else NOT_POSSIBLE
    return status


def install(part: str, target: Path) -> None:
    """Install one part below ``target``, unless its pins are installed already.

    Raises:
        NotPossibleError: A tool is missing, or the registry cannot be reached.
    """
    installer, pins = PARTS[part]
    folder = target / part
    stamp = folder / "installed"
    wanted = fingerprint(pins)
    target.mkdir(exist_ok=True)
    # Several test runs may begin at the same time.
    with (target / f"{part}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == wanted:
            return
        print(f"Installing {NAMES[part]} (only the first time) ...", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        installer(folder)
        stamp.write_text(wanted)


def fingerprint(pins: list[str]) -> str:
    """Describe what is to be installed: other pins or another Python install anew."""
    digest = hashlib.sha256(sys.version.encode())
    for name in pins:
        digest.update((PINS / name).read_bytes())
    return digest.hexdigest()


def install_node(folder: Path) -> None:
    """Install the npm servers from the lock file."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NotPossibleError("Node.js and npm are not on the PATH.")
    version = run(["node", "--version"], folder)
    if int(version.strip().lstrip("v").partition(".")[0]) < NODE_MAJOR:
        raise NotPossibleError(f"Node.js {NODE_MAJOR} or newer is needed, {version.strip()} is installed.")
    install_locked(npm, PINS / "published", folder)


def install_python(folder: Path) -> None:
    """Install the PyPI servers into an environment of their own."""
    install_environment(folder, PINS / "published" / "requirements.txt")


def install_conformance(folder: Path) -> None:
    """Install the conformance suite from its lock file, and a Node.js that is new enough for it."""
    install_environment(folder, PINS / "conformance" / "requirements.txt")
    install_locked(str(folder / "bin" / "npm"), PINS / "conformance", folder)


def install_locked(npm: str, pins: Path, folder: Path) -> None:
    """Install what a lock file of npm names."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(pins / name, folder)
    # The cache of its own makes it independent of a home directory.
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--fetch-retries=1"]
    path = os.pathsep.join([str(Path(npm).parent), os.environ.get("PATH", "")])
    run([npm, "ci", *quiet, f"--cache={folder.parent / 'npm-cache'}"], folder, PATH=path)


def install_environment(folder: Path, pins: Path) -> None:
    """Install what a requirements file names into an environment of its own."""
    try:
        venv.create(folder, with_pip=True, symlinks=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotPossibleError(f"The virtual environment cannot be made: {error}.") from error
    quiet = ["--quiet", "--no-input", "--disable-pip-version-check", "--progress-bar=off", "--no-cache-dir"]
    run([str(folder / "bin" / "python"), "-m", "pip", "install", *quiet, "-r", str(pins)], folder)


PARTS: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "node": (install_node, ["published/package.json", "published/package-lock.json"]),
    "python": (install_python, ["published/requirements.txt"]),
    "conformance": (
        install_conformance,
        ["conformance/package.json", "conformance/package-lock.json", "conformance/requirements.txt"],
    ),
}
NAMES = {
    "node": "the published node servers",
    "python": "the published python servers",
    "conformance": "the conformance suite",
}


def run(command: list[str], folder: Path, **environment: str) -> str:
    """Run a command and return what it printed.

    Raises:
        NotPossibleError: The command failed; holds the end of what it said.
    """
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        said = "\n  ".join(done.stdout.splitlines()[-SHOWN_LINES:])
        raise NotPossibleError(f"{Path(command[0]).name} failed with status {done.returncode}:\n  {said}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
