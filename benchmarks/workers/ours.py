"""Our manager, called from its own loop, from another loop, or from threads.

``python -m benchmarks.workers.ours TARGET loop|async|sync [uvloop]``
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self

from benchmarks.workers import coroutines, threads
from benchmarks.workers.observing import Stall
from benchmarks.workers.protocol import Order, Sample, Target, target_of
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


def manager_of(specs: Iterable[ServerSpec], **options: Any) -> MCPClientManager:
    """Return a manager of these servers."""
    return MCPClientManager(StaticSource(specs), ManagerOptions(**options))


class LoopWatch:
    """Watches the manager's loop from outside."""

    def __init__(self, manager: MCPClientManager) -> None:
        # Where callbacks and servers in the process run; no public way leads there, nor should one.
        self._thread = manager._started().thread  # noqa: SLF001
        self._watching: asyncio.Task[None] | None = None
        self.stall = Stall()

    def __enter__(self) -> Self:
        self._thread.run(self._begin)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.run(self._end)

    async def _begin(self) -> None:
        self._watching = asyncio.ensure_future(self.stall.watch())
        await asyncio.sleep(0.01)
        self.stall.clear()

    async def _end(self) -> None:
        assert self._watching is not None
        await asyncio.sleep(0.005)  # a stall that ends now is seen
        self._watching.cancel()


def serve_blocking(target: Target, way: str, *, use_uvloop: bool) -> None:
    """Take orders in the main thread; the calls are made by threads, or on the manager's own loop."""
    manager = manager_of([spec_of(target)], use_uvloop=use_uvloop)

    def call(tool: str, arguments: dict[str, Any]) -> object:
        result = manager.call_tool(tool, arguments, server=SERVER)
        assert not result.is_error
        return result

    async def acall(tool: str, arguments: dict[str, Any]) -> object:
        result = await manager.acall_tool(tool, arguments, server=SERVER)
        assert not result.is_error
        return result

    def on_the_loop(order: Order) -> Sample:
        # Where callbacks and servers in the process run; no public way leads there, nor should one.
        return manager._started().thread.run(partial(coroutines.measure, acall, order))  # noqa: SLF001

    threads.serve(call, None if way == "sync" else on_the_loop)
    manager.close()


def serve_async(*, use_uvloop: bool) -> None:
    """Take orders on a loop of our own, beside the manager's."""

    @asynccontextmanager
    async def connect(target: Target) -> AsyncIterator[coroutines.Call]:
        manager = manager_of([spec_of(target)], use_uvloop=use_uvloop)

        async def call(tool: str, arguments: dict[str, Any]) -> object:
            result = await manager.acall_tool(tool, arguments, server=SERVER)
            assert not result.is_error
            return result

        yield call
        await asyncio.to_thread(manager.close)

    coroutines.serve(connect, use_uvloop=use_uvloop)


def main() -> None:
    """Run the worker that the command line asks for."""
    way, use_uvloop = sys.argv[2], "uvloop" in sys.argv[3:]
    if way == "async":
        serve_async(use_uvloop=use_uvloop)
    else:
        serve_blocking(target_of(sys.argv[1]), way, use_uvloop=use_uvloop)


if __name__ == "__main__":
    main()
