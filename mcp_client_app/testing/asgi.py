"""An ASGI application on a port of its own, for tests of the HTTP transports."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn

__all__ = ["serve_asgi"]

PATIENCE = 10.0
"""Seconds within which an application has to start."""
GRACE = 1
"""Seconds that open streams get when it ends."""


class _Server(uvicorn.Server):
    """uvicorn that says when it answers, or that it never will."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit:  # how uvicorn gives up: not from this thread
            self.should_exit = True
        finally:
            self.is_up.set()

    def run_in_thread(self, listener: socket.socket) -> None:
        """Serve until told to end; a failed start shows in ``started``, not as the thread's exit."""
        with contextlib.suppress(SystemExit):
            self.run(sockets=[listener])
        self.is_up.set()


@contextlib.contextmanager
def serve_asgi(app: Any) -> Iterator[str]:
    """Serve an application in a thread while the block runs; gives ``http://127.0.0.1:PORT``.

    For servers that need HTTP: headers, sessions, your own middleware. Where only the tools
    matter, a server object in process is faster and does without a port.

    Raises:
        RuntimeError: The application did not start.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # asyncio's own loop: uvloop keeps a pipe of the whole process, which would count as left behind.
        config = uvicorn.Config(
            app, log_config=None, loop="asyncio", ws="none", timeout_graceful_shutdown=GRACE
        )
        server = _Server(config)
        thread = threading.Thread(
            target=server.run_in_thread, args=(listener,), name="mcp-testing-asgi", daemon=True
        )
        thread.start()
        try:
            if not server.is_up.wait(PATIENCE) or not server.started:
                raise RuntimeError("The application did not start; its log says why.")
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
