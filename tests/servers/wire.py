"""Newline-framed JSON over the standard streams, with timers, on one thread.

What the raw peers stand on. One thread makes every scenario deterministic: a frame is handled
completely before the next one is looked at. Standard library only, and little of it: a peer starts
in a few hundredths of a second.
"""

from __future__ import annotations

import heapq
import json
import os
import select
import time

TYPE_CHECKING = False  # as in ``typing``, which would cost more than the rest of this module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

STDIN, STDOUT, STDERR = 0, 1, 2
CHUNK = 1 << 20


class Wire:
    """Reads frames from standard input, writes frames to standard output, calls back at given times."""

    def __init__(self, log: str | None = None) -> None:
        self.reading = True
        """Whether standard input is looked at; while it is not, the end of input goes unseen, too."""
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if log else None
        self._buffer = bytearray()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def later(self, seconds: float, callback: Callable[[], None]) -> None:
        """Call ``callback`` once, in ``seconds`` from now."""
        self._count += 1
        heapq.heappush(self._timers, (time.monotonic() + seconds, self._count, callback))

    def once_exists(self, path: str, callback: Callable[[], None]) -> None:
        """Call ``callback`` as soon as there is a file ``path``."""

        def look() -> None:
            if os.path.exists(path):
                callback()
            else:
                self.later(0.01, look)

        look()

    def run(self, on_frame: Callable[[Any], None]) -> None:
        """Serve until standard input ends."""
        while True:
            self._run_due_timers()
            delay = max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None
            ready, _, _ = select.select([STDIN] if self.reading else [], [], [], delay)
            if not ready:
                continue
            chunk = os.read(STDIN, CHUNK)
            if not chunk:
                return
            self._buffer += chunk
            while self.reading and (end := self._buffer.find(b"\n")) >= 0:
                line = bytes(self._buffer[: end + 1])
                del self._buffer[: end + 1]
                self._record(line)
                on_frame(json.loads(line))

    def send(self, frame: Any) -> None:
        """Write one frame as UTF-8; with escapes if it holds what UTF-8 cannot."""
        try:
            data = json.dumps(frame, separators=(",", ":"), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            data = json.dumps(frame, separators=(",", ":")).encode()
        self.write(data + b"\n")

    def write(self, data: bytes, descriptor: int = STDOUT) -> None:
        """Write raw bytes, all of them, however long the other side takes to read."""
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def _record(self, line: bytes) -> None:
        # One write for each line: several processes may share the file.
        if self._log is not None:
            os.write(self._log, line)

    def _run_due_timers(self) -> None:
        while self._timers and self._timers[0][0] <= time.monotonic():
            heapq.heappop(self._timers)[2]()
