"""A large result with the manager, while another server is called from another thread."""

from __future__ import annotations

import json
import sys
import threading
import time

from benchmarks.workers.observing import PAUSE, Peak, Toll
from benchmarks.workers.ours import SERVER, manager_of, spec_of
from benchmarks.workers.protocol import Channel, target_of

LIMIT = 200_000_000


def main() -> None:
    """Fetch as many bytes as each order says."""
    channel = Channel()
    manager = manager_of(
        [spec_of(target_of(sys.argv[1]), max_result_size=LIMIT), spec_of(target_of(sys.argv[2]), "other")],
        max_frame_size=LIMIT,
    )
    manager.call_tool("echo", {"text": "hello"}, server=SERVER)
    manager.call_tool("echo", {"text": "hello"}, server="other")
    channel.ready()
    for line in sys.stdin:
        size: int = json.loads(line)["bytes"]
        durations: list[float] = []
        over = threading.Event()

        def call_other(durations: list[float] = durations, over: threading.Event = over) -> None:
            due = time.perf_counter() + PAUSE
            while not over.wait(PAUSE):
                manager.call_tool("echo", {"text": "hello"}, server="other")
                durations.append(time.perf_counter() - due)
                due = time.perf_counter() + PAUSE

        peak = Peak()
        calling = threading.Thread(target=call_other)
        calling.start()
        time.sleep(0.02)
        durations.clear()
        toll = Toll()
        result = manager.call_tool("big", {"bytes": size}, server=SERVER)
        found = toll.times()
        time.sleep(0.02)
        over.set()
        calling.join()
        found |= {"others_p50_ms": sorted(durations)[len(durations) // 2] * 1000}
        found |= {"others_max_ms": max(durations) * 1000, "peak_MiB": peak.mib}
        assert len(result.text) > size * 0.9
        del result
        channel.say({"found": found})
    manager.close()


if __name__ == "__main__":
    main()
