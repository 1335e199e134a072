"""What a worker sees of itself: CPU time, its children's too, memory, and how long its loop stood still.

Needs nothing but the standard library. Children and memory are read from ``/proc``; without it, memory is
left out and children count nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ssl
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.workers.protocol import cpu_seconds

__all__ = ["PAUSE", "Growth", "Peak", "Stall", "Toll", "memory_kib", "watched"]

TICK = 0.001
PAUSE = 0.002
"""Seconds between calls that look for stalls; they count from when they are due."""
PROC = Path("/proc/self")


class Toll:
    """Time and CPU time, children included, from its making on."""

    def __init__(self) -> None:
        self._cpu = cpu_seconds() + children_seconds()
        self._started = time.perf_counter()

    def times(self) -> dict[str, float]:
        """Return milliseconds so far, and the CPU time used."""
        ms = (time.perf_counter() - self._started) * 1000
        return {"ms": ms, "cpu_ms": (cpu_seconds() + children_seconds() - self._cpu) * 1000}


class Growth:
    """Memory, threads, descriptors and TLS contexts that came since its making.

    It collects garbage: not while a loop is watched.
    """

    def __init__(self) -> None:
        self._tls = tls_contexts()
        self._threads = threading.active_count()
        self._descriptors = descriptors()
        self._memory = memory_kib()

    def per(self, count: int) -> dict[str, float]:
        """Return what came for each of ``count`` things; of TLS contexts, all that came."""
        found = {
            "threads_each": (threading.active_count() - self._threads) / count,
            "descriptors_each": (descriptors() - self._descriptors) / count,
            "tls": tls_contexts() - self._tls,
        }
        return found | ({"KiB_each": (memory_kib() - self._memory) / count} if self._memory else {})


class Stall:
    """The longest time for which a loop did not get around to a timer."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self._wall = self._cpu = 0.0

    async def watch(self) -> None:
        """Look until cancelled."""
        before, used = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(TICK)
            now, use = time.perf_counter(), time.thread_time()
            self._wall = max(self._wall, now - before - TICK)
            self._cpu = max(self._cpu, use - used)
            before, used = now, use

    def found(self) -> dict[str, float]:
        """Return it in milliseconds; and the most CPU time that the loop's thread used between two timers.

        The second is what the client did. The first has in it what else the machine did, such as starting
        the very servers that are connected.
        """
        return {"stall_ms": self._wall * 1000, "stall_CPU_ms": self._cpu * 1000}


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[Stall]:
    """Watch the running loop."""
    stall = Stall()
    watching = asyncio.ensure_future(stall.watch())
    await asyncio.sleep(10 * TICK)
    stall.clear()
    try:
        yield stall
        await asyncio.sleep(5 * TICK)  # a stall that ends now is seen
    finally:
        watching.cancel()


def children_seconds() -> float:
    """Return the CPU time of the living children."""
    total = 0
    for place in PROC.glob("task/*/children"):
        for child in place.read_text().split():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                total += int(Path(f"/proc/{child}/schedstat").read_text().split()[0])
    return total / 1e9


def memory_kib() -> float:
    """Return the memory that is this process's alone, after a collection of garbage."""
    gc.collect()
    with contextlib.suppress(OSError):
        for line in (PROC / "smaps_rollup").read_text().splitlines():
            if line.startswith("Private_Dirty:"):
                return float(line.split()[1])
    return 0.0


class Peak:
    """The most memory that was resident at once, beyond what is at its making."""

    def __init__(self) -> None:
        gc.collect()
        with contextlib.suppress(OSError):
            (PROC / "clear_refs").write_text("5")  # forgets the peak so far
        self._before = _status("VmRSS")

    @property
    def mib(self) -> float:
        """In MiB."""
        return max(0.0, _status("VmHWM") - self._before) / 1024


def _status(name: str) -> float:
    with contextlib.suppress(OSError):
        for line in (PROC / "status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return float(line.split()[1])
    return 0.0


def descriptors() -> int:
    """Return how many descriptors are open."""
    return sum(1 for _ in Path("/dev/fd").iterdir())


def tls_contexts() -> int:
    """Return how many TLS contexts there are."""
    return sum(isinstance(item, ssl.SSLContext) for item in gc.get_objects())
