"""Workers whose callers are coroutines on one loop. Needs nothing but the standard library."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from benchmarks.workers.protocol import Channel, Meter, Order, Sample, Target, target_of

__all__ = ["Call", "measure", "serve"]

Call = Callable[[str, dict[str, Any]], Awaitable[object]]
Connect = Callable[[Target], AbstractAsyncContextManager[Call]]


async def measure(call: Call, order: Order) -> Sample:
    """Carry out an order on the running loop."""
    durations: list[float] = []
    clock = time.perf_counter

    async def caller() -> None:
        tool, arguments, until = order.tool, order.arguments, meter.until
        while True:
            before = clock()
            await call(tool, arguments)
            after = clock()
            durations.append(after - before)
            if after >= until:
                return

    meter = Meter(order.seconds)
    if order.level == 1:
        await caller()
    else:
        await asyncio.gather(*(caller() for _ in range(order.level)))
    return meter.sample(durations)


async def orders() -> asyncio.StreamReader:
    """Return the worker's standard input, to be read without a thread."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    return reader


def serve(connect: Connect, *, use_uvloop: bool = False) -> None:
    """Run a worker: connect to the target named on the command line, then take orders until input ends."""
    channel = Channel()
    target = target_of(sys.argv[1])

    async def main() -> None:
        reader = await orders()
        async with connect(target) as call:
            await call("echo", {"text": "hello"})
            channel.ready()
            while line := await reader.readline():
                channel.answer(await measure(call, Order(**json.loads(line))))

    if use_uvloop:
        import uvloop

        uvloop.run(main())
    else:
        asyncio.run(main())
