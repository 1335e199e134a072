"""Runs callbacks off the loop: in order per key, on a few threads, over bounded queues.

A slow or failing callback delays only its own key. Threads start when there is work and
leave after a while without any. Knows nothing of MCP.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable

logger = logging.getLogger(__name__)

__all__ = ["CallbackExecutor"]

PATIENCE = 5.0
"""Seconds that an idle thread stays."""

Callback = Callable[[], None]


def _call(callback: Callback) -> None:
    callback()


class CallbackExecutor:
    """``post`` from any thread; callbacks of one key never overlap and never overtake each other."""

    def __init__(
        self, *, threads: int, queue_size: int, around: Callable[[Callback], None] | None = None
    ) -> None:
        self._limit = max(1, threads)
        self._queue_size = max(1, queue_size)
        self._around = around or _call
        self._condition = threading.Condition()
        self._queues: dict[str, deque[Callback]] = {}
        self._runnable: deque[str] = deque()
        self._busy: set[str] = set()
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        self._closed = False
        self._pid = os.getpid()
        self.dropped: dict[str, int] = {}
        """Per key, how many callbacks were dropped because the queue was full."""

    def post(self, key: str, callback: Callback) -> None:
        """Queue a callback; a full queue drops its oldest. Never blocks on a running callback."""
        with self._condition:
            if self._closed or self._pid != os.getpid():
                return
            queue = self._queues.setdefault(key, deque())
            if len(queue) >= self._queue_size:
                queue.popleft()
                self.dropped[key] = self.dropped.get(key, 0) + 1
            queue.append(callback)
            if key in self._busy or key in self._runnable:
                return
            self._runnable.append(key)
            self._condition.notify()
            # A thread that was notified before may not have woken yet: it counts for one key only.
            if len(self._runnable) > self._idle and len(self._threads) < self._limit:
                self._start()

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name="mcp-callback", daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:  # no new thread at interpreter exit
            self._threads.discard(thread)

    def _work(self) -> None:
        while (item := self._take()) is not None:
            key, callback = item
            try:
                self._around(callback)
            except Exception:
                logger.exception("A callback for %r failed.", key)
            self._put_back(key)

    def _take(self) -> tuple[str, Callback] | None:
        with self._condition:
            while not self._runnable:
                if self._closed:
                    break
                self._idle += 1
                woken = self._condition.wait(PATIENCE)
                self._idle -= 1
                if not woken and not self._runnable:
                    break
            if not self._runnable:
                self._threads.discard(threading.current_thread())
                return None
            key = self._runnable.popleft()
            self._busy.add(key)
            return key, self._queues[key].popleft()

    def _put_back(self, key: str) -> None:
        with self._condition:
            self._busy.discard(key)
            if self._queues[key]:
                self._runnable.append(key)
                self._condition.notify()
            else:
                del self._queues[key]
            if not self._queues:
                self._condition.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait until everything queued so far has run; returns whether it has."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._queues, timeout)

    def close(self, timeout: float) -> None:
        """Run what is queued, within ``timeout`` seconds, and end the threads."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
            threads = [thread for thread in self._threads if thread is not threading.current_thread()]
        for thread in threads:
            thread.join(timeout)
