"""Lists all tools with the SDK's session."""

from __future__ import annotations

import asyncio
import gc
import sys

from benchmarks.workers.coroutines import orders
from benchmarks.workers.observing import Toll, watched
from benchmarks.workers.protocol import Channel, target_of
from benchmarks.workers.sdk import list_all, open_session


async def main() -> None:
    """List whenever a line comes."""
    channel, target = Channel(), target_of(sys.argv[1])
    reader = await orders()
    async with open_session(target) as session:
        tools = await list_all(session)
        channel.ready(tools=len(tools))
        while await reader.readline():
            gc.collect()  # the garbage of before is not this listing's
            async with watched() as stall:
                toll = Toll()
                tools = await list_all(session)
                found = toll.times()
            channel.say({"found": found | stall.found()})


if __name__ == "__main__":
    asyncio.run(main())
