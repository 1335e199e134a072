"""The harness's side of a worker: a process that is started, given orders, and ended."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from benchmarks.errors import BenchmarkError
from benchmarks.places import ROOT
from benchmarks.workers.protocol import Order, Sample

__all__ = ["WorkerProcess"]

START_SECONDS = 120
PATIENCE_SECONDS = 120
"""For an answer, beyond the time that the order itself takes."""


class WorkerProcess:
    """One variant at work on one target."""

    def __init__(
        self,
        name: str,
        module: str,
        *arguments: str,
        python: str = sys.executable,
        checkout: Path = ROOT,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it; ``checkout`` is whose code is measured, and comes first on the path."""
        self.name = name
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self._process = subprocess.Popen(
            [python, "-m", f"benchmarks.workers.{module}", *arguments],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def wait_ready(self) -> dict[str, Any]:
        """Wait until the worker is connected; return what it tells about itself."""
        return dict(self._read(START_SECONDS)["ready"])

    def sample(self, order: Order) -> Sample:
        """Have an order carried out."""
        return Sample(**self.ask(asdict(order), order.seconds)["sample"])

    def ask(self, message: dict[str, Any], seconds: float = 0) -> dict[str, Any]:
        """Send a message and return the answer.

        Raises:
            BenchmarkError: The worker has ended, or takes too long.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # reading says why
        return self._read(seconds + PATIENCE_SECONDS)

    def _read(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        line = b""
        # Messages are small and come one at a time, so that a line is never left in a buffer.
        while not line.endswith(b"\n"):
            if not select.select([self._process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                self._process.kill()
                raise BenchmarkError(f"The worker {self.name!r} did not answer within {seconds:.0f} s.")
            piece = self._process.stdout.read1(65536)  # type: ignore[attr-defined]  # a BufferedReader
            if not piece:
                self._errors.seek(0)
                said = self._errors.read().decode(errors="replace")[-3000:]
                raise BenchmarkError(f"The worker {self.name!r} has ended.\n{said}")
            line += piece
        return dict(json.loads(line))
