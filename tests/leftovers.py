"""Find what a test has left behind: threads, child processes, open descriptors.

Each function gives things that are just ending a bounded time to do so and returns a line for each
that stays. On systems without ``/proc`` children and descriptors are not looked at.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import threading
from collections import Counter
from pathlib import Path

GRACE_SECONDS = 5.0

PROC = Path("/proc/self")


def our_threads() -> list[str]:
    """Describe the threads of the app (``mcp-*``) that are still alive."""
    ours = [thread for thread in threading.enumerate() if thread.name.startswith("mcp-")]
    for thread in ours:
        thread.join(GRACE_SECONDS)
    return [f"thread {thread.name!r}" for thread in ours if thread.is_alive()]


def children() -> list[str]:
    """Describe the child processes that still exist; dead ones that nobody waited for count, too."""
    return [f"process {pid}: {_command(pid)}" for pid in child_pids() if not _ends(pid) or _is_zombie(pid)]


def child_pids() -> list[int]:
    """Return the children of this process, without the helper that ``multiprocessing`` keeps."""
    found: list[int] = []
    for task in PROC.glob("task/*/children"):
        with contextlib.suppress(OSError):
            found += [int(pid) for pid in task.read_text().split()]
    return [pid for pid in found if "multiprocessing.resource_tracker" not in _command(pid)]


def descendants(pid: int) -> set[int]:
    """Return the processes that ``pid`` has started, and those that these have started."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found: set[int] = set()
    level = {pid}
    while level:
        level = {child for child, parent in parents.items() if parent in level} - found
        found |= level
    return found


def survivors(pids: set[int], seconds: float = GRACE_SECONDS) -> list[str]:
    """Describe those of ``pids``, processes of others, that do not end in time."""
    return [f"process {pid}: {_command(pid)}" for pid in sorted(pids) if not _ends(pid, seconds)]


def descriptors() -> Counter[str]:
    """Count what the open descriptors of this process point to."""
    gc.collect()
    found: Counter[str] = Counter()
    for link in PROC.glob("fd/*"):
        # The descriptor of the listing itself is gone by now.
        with contextlib.suppress(OSError):
            found[_kind(link.readlink().as_posix())] += 1
    return found


def new_descriptors(before: Counter[str]) -> list[str]:
    """Describe the descriptors that were not open before."""
    return [f"descriptor {kind} (x{count})" for kind, count in (descriptors() - before).items()]


def _kind(target: str) -> str:
    # "socket:[123]" and "pipe:[123]" differ each time; what counts is how many there are.
    return target.partition(":[")[0]


def _ends(pid: int, seconds: float = GRACE_SECONDS) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        readable, _, _ = select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)
    return bool(readable)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def _command(pid: int) -> str:
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        )
    except OSError:
        return "(gone)"
