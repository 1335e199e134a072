"""Ends the servers of a process that was killed too hard to do it itself.

A tiny helper process, one per process of ours, holds the read end of a pipe. Over it we
tell which process groups live; when the pipe closes because we died, it ends them. At an
orderly exit no group is left and it just leaves. Needs fork-safe handling by its owner:
a forked child must close its copy of the pipe (``forget``), or our death goes unnoticed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time

logger = logging.getLogger(__name__)

__all__ = ["Reaper"]

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL for the groups of a dead process."""


class Reaper:
    """Our end of the pipe. Usable from any thread; starts the helper with the first group."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def start(self) -> None:
        """Start the helper unless it runs; takes a moment, so call it off the loop."""
        with self._lock:
            if not self._closed and (self._process is None or self._process.poll() is not None):
                self._process = self._start()

    def add(self, group: int) -> None:
        """Have the group ended should we die."""
        with self._lock:
            self._tell(f"+{group}\n")

    def discard(self, group: int) -> None:
        """The group is gone."""
        with self._lock:
            self._tell(f"-{group}\n")

    def close(self) -> None:
        """Let the helper go."""
        with self._lock:
            self._closed = True
            process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=2 * GRACE)

    def forget(self) -> None:
        """After a fork, in the child: close the copy of the pipe, touch nothing else."""
        process, self._process = self._process, None
        self._closed = True
        if process is not None and process.stdin is not None:
            process.returncode = 0
            with contextlib.suppress(OSError):
                process.stdin.close()

    def _start(self) -> subprocess.Popen[bytes] | None:
        try:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", "-E", os.path.abspath(__file__)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                env={},
                bufsize=0,
            )
        except OSError as error:
            logger.warning("The reaper process could not be started: %s.", error)
            return None

    def _tell(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(line.encode())


def main() -> None:
    """Run the helper: read groups until the pipe closes, then end those that are left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        groups.add(group) if line[0] == "+" else groups.discard(group)
    if not groups:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        for group in groups:
            with contextlib.suppress(OSError):
                os.killpg(group, number)
        if number is signal.SIGTERM:
            time.sleep(GRACE)


if __name__ == "__main__":
    main()
