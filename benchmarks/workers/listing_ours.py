"""Lists all tools with the manager, and makes of the cached list what is sent to a model's provider."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import orjson

from benchmarks.workers.observing import Toll
from benchmarks.workers.ours import SERVER, LoopWatch, manager_of, spec_of
from benchmarks.workers.protocol import Channel, target_of
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.datatypes import ToolFilter

FILTER = ToolFilter(allowed=("search_*", "echo"), blocked=("*_delete", "big"))

REPEATS = 5
"""A collection of all garbage, left over from the listing, may fall into one of them."""


def offered(manager: MCPClientManager) -> list[dict[str, Any]]:
    """Return the tools as a provider wants them: filtered, with public names."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.public_name,
                "description": tool.description,
                "parameters": tool.input_schema,
            },
        }
        for tool in manager.list_tools(SERVER)
    ]


def cost(work: Callable[[], object]) -> float:
    """Return the milliseconds of CPU time that some work takes."""
    toll = Toll()
    work()
    return toll.times()["cpu_ms"]


def main() -> None:
    """List whenever a line comes."""
    channel, target = Channel(), target_of(sys.argv[1])
    manager = manager_of([spec_of(target, filter=FILTER)])
    channel.ready(tools=len(manager.list_tools(SERVER)))
    for _ in sys.stdin:
        gc.collect()  # the garbage of before is not this listing's
        with LoopWatch(manager) as watch:
            toll = Toll()
            tools = manager.list_tools(SERVER, refresh=True)
            found = toll.times()
        found |= watch.stall.found()
        del tools
        payload = offered(manager)
        cached = median(cost(lambda: offered(manager)) for _ in range(REPEATS))
        dumping = median(cost(partial(orjson.dumps, payload)) for _ in range(REPEATS))
        channel.say({"found": found, "cached": {"cpu_ms": cached}, "dumps": {"cpu_ms": dumping}})
        del payload
    manager.close()


if __name__ == "__main__":
    main()
