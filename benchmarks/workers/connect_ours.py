"""Connects many servers with one manager, in parallel."""

from __future__ import annotations

import json
import sys

from benchmarks.workers.observing import Growth, Toll
from benchmarks.workers.ours import LoopWatch, manager_of, spec_of
from benchmarks.workers.protocol import Channel, target_of


def main() -> None:
    """Connect as many as the order says, once."""
    channel, target = Channel(), target_of(sys.argv[1])
    manager = manager_of([spec_of(target, "first")])
    manager.list_tools("first")
    channel.ready()
    count: int = json.loads(sys.stdin.readline())["count"]
    names = [f"server-{number}" for number in range(count)]
    # The first stays: edits are followed without touching what has not changed.
    manager.source.replace([spec_of(target, name) for name in ("first", *names)])  # type: ignore[attr-defined]  # a StaticSource
    growth = Growth()
    with LoopWatch(manager) as watch:
        toll = Toll()
        statuses = manager.connect_all(names)
        tools = manager.list_tools()
        found = toll.times()
    assert all(statuses[name].is_ready for name in names)
    assert len({tool.server for tool in tools}) == count + 1
    found |= {**watch.stall.found(), **growth.per(count)}
    closing = Toll()
    manager.close()
    found["close_ms"] = closing.times()["ms"]
    channel.say({"found": found})


if __name__ == "__main__":
    main()
