"""A large result with the SDK's sessions, while another server is called on the same loop."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from benchmarks.workers.coroutines import orders
from benchmarks.workers.observing import PAUSE, Peak, Toll
from benchmarks.workers.protocol import Channel, target_of
from benchmarks.workers.sdk import list_all, open_session


async def main() -> None:
    """Fetch as many bytes as each order says."""
    channel = Channel()
    reader = await orders()
    async with open_session(target_of(sys.argv[1])) as big, open_session(target_of(sys.argv[2])) as other:
        await list_all(big)
        await list_all(other)
        durations: list[float] = []

        async def call_other() -> None:
            while True:
                due = time.perf_counter() + PAUSE
                await asyncio.sleep(PAUSE)
                await other.call_tool("echo", {"text": "hello"})
                durations.append(time.perf_counter() - due)

        channel.ready()
        while line := await reader.readline():
            size: int = json.loads(line)["bytes"]
            peak = Peak()
            calling = asyncio.ensure_future(call_other())
            await asyncio.sleep(0.02)
            durations.clear()
            toll = Toll()
            result = await big.call_tool("big", {"bytes": size})
            found = toll.times()
            await asyncio.sleep(0.02)
            calling.cancel()
            found |= {"others_p50_ms": sorted(durations)[len(durations) // 2] * 1000}
            found |= {"others_max_ms": max(durations) * 1000, "peak_MiB": peak.mib}
            assert len(result.content[0].text) > size * 0.9  # type: ignore[union-attr]  # a text block
            del result
            channel.say({"found": found})


if __name__ == "__main__":
    asyncio.run(main())
