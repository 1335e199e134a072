"""Connects many servers with the SDK's sessions, in parallel, each in a task of its own."""

from __future__ import annotations

import asyncio
import json
import sys

from benchmarks.workers.observing import Growth, Toll, watched
from benchmarks.workers.protocol import Channel, Target, target_of
from benchmarks.workers.sdk import list_all, open_session


class Connected:
    """One session, held open by the task that opened it."""

    def __init__(self, target: Target) -> None:
        self._ready = asyncio.Event()
        self._leave = asyncio.Event()
        self._task = asyncio.ensure_future(self._hold(target))

    async def _hold(self, target: Target) -> None:
        async with open_session(target) as session:
            await list_all(session)
            self._ready.set()
            await self._leave.wait()

    async def ready(self) -> None:
        """Wait until the tools are known."""
        waiting = asyncio.ensure_future(self._ready.wait())
        await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            self._task.result()

    async def close(self) -> None:
        """Disconnect."""
        self._leave.set()
        await self._task


async def main() -> None:
    """Connect as many as the order says, once."""
    channel, target = Channel(), target_of(sys.argv[1])
    first = Connected(target)
    await first.ready()
    channel.ready()
    count: int = json.loads(sys.stdin.readline())["count"]
    growth = Growth()
    async with watched() as stall:
        toll = Toll()
        many = [Connected(target) for _ in range(count)]
        await asyncio.gather(*(each.ready() for each in many))
        found = toll.times()
    found |= {**stall.found(), **growth.per(count)}
    closing = Toll()
    await asyncio.gather(*(each.close() for each in many))
    found["close_ms"] = closing.times()["ms"]
    channel.say({"found": found})
    await first.close()


if __name__ == "__main__":
    asyncio.run(main())
