"""The fast server: compiled from C where a compiler is found, else in Python."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.places import BINARIES, SOURCES

__all__ = ["FastServer", "compiler", "fast_server", "listening"]

C_SOURCE = SOURCES / "servers" / "fast_server.c"
PYTHON_SOURCE = SOURCES / "servers" / "fast_server.py"


@dataclass(frozen=True)
class FastServer:
    """How the fast server is started."""

    command: tuple[str, ...]
    kind: str
    """What it is, for the report."""

    def over(self, transport: str, *, tools: int = 3, page: int = 0) -> tuple[str, ...]:
        """Return the command that serves ``stdio``, ``http-json`` or ``http-sse``."""
        return (*self.command, transport, "--tools", str(tools), "--page", str(page))


def compiler() -> str | None:
    """Return the C compiler, if there is one that can be used: the server in C needs Linux."""
    return shutil.which("cc") if sys.platform == "linux" else None


@cache
def fast_server() -> FastServer:
    """Compile the server, once; without a compiler (or off Linux) take the one in Python."""
    cc = compiler()
    if cc is None:
        return FastServer((sys.executable, "-I", str(PYTHON_SOURCE)), "Python: no C compiler was found")
    digest = hashlib.sha256(C_SOURCE.read_bytes()).hexdigest()[:12]
    binary = BINARIES / f"fast_server-{digest}"
    if not binary.exists():
        BINARIES.mkdir(parents=True, exist_ok=True)
        # Others may compile it at the same time: each in a place of its own.
        with tempfile.TemporaryDirectory(dir=BINARIES) as folder:
            built = subprocess.run(
                [cc, "-O2", "-o", Path(folder, binary.name), C_SOURCE],
                capture_output=True,
                text=True,
                check=False,
            )
            if built.returncode:
                raise BenchmarkError(f"The fast server does not compile:\n{built.stderr}")
            Path(folder, binary.name).replace(binary)
    return FastServer((str(binary),), "C")


@contextlib.contextmanager
def listening(command: tuple[str, ...]) -> Iterator[str]:
    """Run a server that says ``READY url`` and ends when its input does; yield the URL."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline().split()
        if line[:1] != ["READY"]:
            raise BenchmarkError(f"The server {command[0]!r} does not start.")
        yield line[1]
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
