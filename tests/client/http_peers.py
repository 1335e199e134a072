"""Raw HTTP peers for tests of the manager: on a loop of their own, so that tests may block, and restarted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mcp_client_app.datatypes import ServerSpec, Transport
from tests.client.peers import PATIENCE
from tests.servers.faulty_http import FaultyHttp
from tests.servers.http_wire import Request

T = TypeVar("T")


class HttpPeer:
    """A faulty server behind one port, for as many lives as the test gives it."""

    def __init__(self, make: Callable[..., FaultyHttp] = FaultyHttp, **spec: Any) -> None:
        self._make = make
        self._fields = spec
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="http-peer")
        self._thread.start()
        self._server: FaultyHttp | None = None
        self._port = 0
        self.lives: list[FaultyHttp] = []

    @property
    def spec(self) -> ServerSpec:
        """What the manager is told."""
        fields = {"name": "srv", "transport": Transport.STREAMABLE_HTTP, "url": self.server.url}
        return ServerSpec(**{**fields, **self._fields})

    @property
    def server(self) -> FaultyHttp:
        """The server of the present life, or of the last one."""
        return self.lives[-1]

    def start(self, *args: Any, **options: Any) -> HttpPeer:
        """Begin a life: another process at the same port, as far as clients can see."""

        async def start() -> None:
            server = self._make(*args, port=self._port, **options)
            await server.__aenter__()
            self._port = server.port
            self.lives.append(server)

        self.do(start())
        self._server = self.server
        return self

    def stop(self) -> None:
        """End the present life: its port is closed and its connections with it."""
        if self._server is not None:
            self.do(self._server.__aexit__(None, None, None))
            self._server = None

    def restart(self, *args: Any, **options: Any) -> None:
        """End the present life and begin the next."""
        self.stop()
        self.start(*args, **options)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def wait_for(self, wanted: str, count: int = 1) -> Request:
        """Return the ``count``-th request of a JSON-RPC or HTTP method in this life, once it is there."""
        return self.do(self.server.seen(wanted, count))

    def received(self, wanted: str) -> list[Request]:
        """Return the requests of a JSON-RPC or HTTP method, of all lives."""
        return [request for life in self.lives for request in life.received(wanted)]

    def go_on(self) -> None:
        """Have the handlers go on that wait."""
        self._loop.call_soon_threadsafe(self.server.go_on.set)

    def hang_up(self) -> None:
        """End the subscription in good order."""
        self._loop.call_soon_threadsafe(self.server.hang_up.set)

    def close(self) -> None:
        """End the server and its loop."""
        self.stop()
        self.do(_end_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


async def _end_all() -> None:
    """End what still runs on this loop: connections accepted in the moment of the end."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
