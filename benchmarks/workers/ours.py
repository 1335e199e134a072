"""Our manager, called from its own loop, from another loop, or from threads.

``python -m benchmarks.workers.ours TARGET loop|async|sync [uvloop]``
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from benchmarks.workers.coroutines import Call, measure, serve
from benchmarks.workers.protocol import Channel, Meter, Order, Sample, Target, target_of
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.client.sources import StaticSource
from mcp_client_app.datatypes import ManagerOptions, ProtocolMode, ServerSpec, Transport

SERVER = "fast"


def spec_of(target: Target, name: str = SERVER, **options: Any) -> ServerSpec:
    """Return what the manager is told about the target."""
    mode = ProtocolMode.MODERN if target.is_modern else ProtocolMode.LEGACY
    if target.transport == "stdio":
        command, *arguments = target.command
        return ServerSpec(
            name=name, transport=Transport.STDIO, command=command, args=tuple(arguments), mode=mode, **options
        )
    return ServerSpec(name=name, transport=Transport.STREAMABLE_HTTP, url=target.url, mode=mode, **options)


def manager_of(target: Target, *, use_uvloop: bool) -> MCPClientManager:
    """Return a manager of the one server."""
    return MCPClientManager(StaticSource([spec_of(target)]), ManagerOptions(use_uvloop=use_uvloop))


def measure_threads(call: Callable[[str, dict[str, Any]], object], order: Order) -> Sample:
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


def serve_blocking(target: Target, way: str, *, use_uvloop: bool) -> None:
    """Take orders in the main thread; the calls are made by threads, or on the manager's own loop."""
    channel = Channel()
    manager = manager_of(target, use_uvloop=use_uvloop)

    def call(tool: str, arguments: dict[str, Any]) -> object:
        result = manager.call_tool(tool, arguments, server=SERVER)
        assert not result.is_error
        return result

    async def acall(tool: str, arguments: dict[str, Any]) -> object:
        result = await manager.acall_tool(tool, arguments, server=SERVER)
        assert not result.is_error
        return result

    call("echo", {"text": "hello"})
    channel.ready()
    for line in sys.stdin:
        order = Order(**json.loads(line))
        if way == "sync":
            channel.answer(measure_threads(call, order))
        else:
            # Where callbacks and servers in the process run; no public way leads there, nor should one.
            thread = manager._started().thread  # noqa: SLF001
            channel.answer(thread.run(partial(measure, acall, order)))
    manager.close()


def serve_async(*, use_uvloop: bool) -> None:
    """Take orders on a loop of our own, beside the manager's."""

    @asynccontextmanager
    async def connect(target: Target) -> AsyncIterator[Call]:
        manager = manager_of(target, use_uvloop=use_uvloop)

        async def call(tool: str, arguments: dict[str, Any]) -> object:
            result = await manager.acall_tool(tool, arguments, server=SERVER)
            assert not result.is_error
            return result

        yield call
        await asyncio.to_thread(manager.close)

    serve(connect, use_uvloop=use_uvloop)


def main() -> None:
    """Run the worker that the command line asks for."""
    way, use_uvloop = sys.argv[2], "uvloop" in sys.argv[3:]
    if way == "async":
        serve_async(use_uvloop=use_uvloop)
    else:
        serve_blocking(target_of(sys.argv[1]), way, use_uvloop=use_uvloop)


if __name__ == "__main__":
    main()
