"""Programs of the example project that run beside it, and never outlive it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

STOP_SECONDS = 5


class ReadyProcess:
    """A Python program that prints ``READY <url>`` once it listens; a context manager.

    The program has to end when its standard input does: the pipe closes with this process, however
    this one ends.

    Args:
        arguments: What follows the interpreter on the command line.
        quiet: Whether what it says on standard error is dropped.
        environment: Variables that it gets besides those of this process.
    """

    def __init__(
        self, *arguments: str, quiet: bool = False, environment: Mapping[str, str] | None = None
    ) -> None:
        self.url = ""
        self._arguments: Sequence[str] = arguments
        self._quiet = quiet
        self._environment = environment or {}
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        if not self.start():
            raise RuntimeError(f"{self._arguments[0]} did not start; its own message stands above.")
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> bool:
        """Start the program and wait until it listens; False if it ended instead."""
        self._process = process = subprocess.Popen(
            [sys.executable, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if self._quiet else None,
            env={**os.environ, **self._environment},
            text=True,
        )
        try:
            line = process.stdout.readline() if process.stdout else ""
            word, _, self.url = line.strip().partition(" ")
            is_ready = word == "READY"
        except BaseException:
            self.stop()
            raise
        if not is_ready:
            self.stop()
        return is_ready

    def stop(self) -> None:
        """End the program and wait for it; harmless when there is none."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
