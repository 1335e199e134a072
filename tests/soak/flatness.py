"""What a process holds: memory, and the objects that each call, link and connection is made of."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import weakref
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcp_client_app.client.callbacks import CallbackExecutor
from mcp_client_app.client.catalogue import Catalogue
from mcp_client_app.client.connection import Connection
from mcp_client_app.client.dispatch import BaseDispatcher, Pending
from mcp_client_app.client.engine import Engine
from mcp_client_app.client.exchange import Exchange
from mcp_client_app.client.http import HttpClient, Response
from mcp_client_app.client.link import Link
from mcp_client_app.client.loop import LoopThread, _Job
from mcp_client_app.client.pool import ConnectionPool
from mcp_client_app.client.process import ChildProcess
from mcp_client_app.client.stdio_channel import StdioChannel
from mcp_client_app.client.stdio_writer import Frame
from mcp_client_app.client.stock_transport import OpenRequest, StockTransport
from tests.soak import holders

KINDS: tuple[type, ...] = (
    *(_Job, Pending, Exchange, Response, Frame, OpenRequest),  # for each call
    *(Link, BaseDispatcher, StockTransport, StdioChannel, ChildProcess, HttpClient),  # for each link
    *(Connection, Catalogue),
    *(Engine, ConnectionPool, LoopThread, CallbackExecutor),
)

BOUNDS = {
    "memory": (0.30, 20_000_000),
    "allocated": (0.10, 8_000_000),
    "blocks": (0.10, 50_000),
    "objects": (0.05, 5_000),
}
"""By what part, and how much more, each may be larger in the end.

Main memory is held loosely: large answers leave gaps that the allocator keeps, more of them for some time.
What is really in use is held tightly.
"""


class _MallInfo(ctypes.Structure):
    """What ``mallinfo2`` of glibc returns."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


@dataclass(frozen=True)
class Measure:
    """The process at rest."""

    memory: int
    """Bytes of it that are in main memory."""
    allocated: int
    """Bytes that C's allocator has given out; 0 where it does not say."""
    blocks: int
    """Small pieces that Python's allocator has given out."""
    objects: int
    """Objects that the garbage collector knows, without weak references: SQLite keeps dead ones."""
    ours: Counter[str]
    """By class, those of ``KINDS``."""


def measured() -> Measure:
    """Collect what is garbage, then look."""
    for _ in range(3):
        gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
    known = gc.get_objects()
    # By the real type: asking a lazy object for its class would wake it.
    classes = Counter(map(type, known))
    ours: Counter[str] = Counter()
    for class_, count in classes.items():
        for kind in KINDS:
            if kind in class_.__mro__:
                ours[kind.__name__.lstrip("_")] += count
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Measure(
        memory=pages * os.sysconf("SC_PAGE_SIZE"),
        allocated=_allocated(libc),
        blocks=sys.getallocatedblocks(),
        objects=len(known) - classes[weakref.ReferenceType],
        ours=ours,
    )


def _allocated(libc: ctypes.CDLL) -> int:
    if not hasattr(libc, "mallinfo2"):  # another C library, or glibc before 2.33
        return 0
    libc.mallinfo2.restype = _MallInfo
    info = libc.mallinfo2()
    return int(info.uordblks + info.hblkhd)


def excess(measure: Measure, most: Mapping[str, int]) -> dict[str, str]:
    """Say, by class, what there is more of than is needed."""
    return {
        kind: f"{measure.ours[kind]} objects of {kind}, where {count} would do"
        for kind, count in most.items()
        if measure.ours[kind] > count
    }


def held(name: str) -> str:
    """Say, in lines of their own, who holds the objects of one of ``KINDS``."""
    (wanted,) = (kind for kind in KINDS if kind.__name__.lstrip("_") == name)
    lines = holders.ways([each for each in gc.get_objects() if wanted in type(each).__mro__])
    return "".join(f"\n  {line}" for line in lines)


def growth(before: Measure, after: Measure) -> list[str]:
    """Say what has grown between two moments at which the same was going on."""
    found = []
    for what, (part, slack) in BOUNDS.items():
        old, new = getattr(before, what), getattr(after, what)
        if new > old * (1 + part) + slack:
            found.append(f"{what} has grown from {old} to {new}")
    return found


def leftovers(measure: Measure) -> list[str]:
    """Say what is still there of managers that are closed."""
    return [
        f"{count} objects of {name} outlive the manager{held(name)}"
        for name, count in measure.ours.items()
        if count
    ]
