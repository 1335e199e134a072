"""Workers whose callers are threads. Needs nothing but the standard library."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks.workers.protocol import Channel, Meter, Order, Sample

__all__ = ["Call", "measure", "serve"]

Call = Callable[[str, dict[str, Any]], object]


def measure(call: Call, order: Order) -> Sample:
    """Carry out an order from threads that exist before it begins."""
    collected: list[list[float]] = []
    gate = threading.Barrier(order.level + 1)
    clock = time.perf_counter
    meter: Meter

    def caller() -> None:
        durations: list[float] = []
        collected.append(durations)
        gate.wait()
        tool, arguments, until = order.tool, order.arguments, meter.until
        while True:
            before = clock()
            call(tool, arguments)
            after = clock()
            durations.append(after - before)
            if after >= until:
                return

    threads = [threading.Thread(target=caller) for _ in range(order.level)]
    for thread in threads:
        thread.start()
    meter = Meter(order.seconds)
    gate.wait()
    for thread in threads:
        thread.join()
    return meter.sample([duration for durations in collected for duration in durations])


def serve(call: Call, take: Callable[[Order], Sample] | None = None) -> None:
    """Run a worker: one call, then take orders until input ends; ``take`` carries them out."""
    channel = Channel()
    call("echo", {"text": "hello"})
    channel.ready()
    for line in sys.stdin:
        order = Order(**json.loads(line))
        channel.answer(take(order) if take is not None else measure(call, order))
