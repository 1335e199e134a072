"""The well-behaved SDK peer over HTTP: streamable, with event streams or plain JSON, or legacy SSE.

``python tests/servers/sdk_http.py --json`` prints one line ``READY http://127.0.0.1:PORT/mcp`` once it
answers requests. It ends when its standard input does, and so never outlives whoever started it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys

import uvicorn
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.types import JSONRPCMessage
from starlette.applications import Starlette

if not __package__:  # run as a script: make the package ``tests`` importable from any directory
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.servers.sdk_server import make_server

HOST = "127.0.0.1"
PATH = "/mcp"
SSE_PATH = "/sse"
GRACE_SECONDS = 1


class Memory(EventStore):
    """Keeps every event, so that clients can resume their streams."""

    def __init__(self) -> None:
        self._events: list[tuple[StreamId, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        last = int(last_event_id)
        stream = self._events[last - 1][0]
        for number, (owner, message) in enumerate(self._events[last:], start=last + 1):
            if owner == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


class ReadyServer(uvicorn.Server):
    """uvicorn that says when it answers."""

    def __init__(self, config: uvicorn.Config, path: str) -> None:
        super().__init__(config)
        self.path = path

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            sys.stdout.write(f"READY http://{HOST}:{sockets[0].getsockname()[1]}{self.path}\n")
            sys.stdout.flush()


def make_app(options: argparse.Namespace) -> Starlette:
    """Return the ASGI application that the command line asks for."""
    if options.sse:
        return make_server().sse_app(sse_path=SSE_PATH, host=HOST)
    return make_server().streamable_http_app(
        streamable_http_path=PATH,
        json_response=options.json,
        stateless_http=options.stateless,
        event_store=Memory() if options.resumable else None,
        retry_interval=1 if options.resumable else None,
        host=HOST,
    )


async def serve(options: argparse.Namespace, listener: socket.socket) -> None:
    """Serve until standard input ends."""
    # Calls that hang when the peer is told to end are no news.
    config = uvicorn.Config(make_app(options), log_level="critical", timeout_graceful_shutdown=GRACE_SECONDS)
    server = ReadyServer(config, SSE_PATH if options.sse else PATH)
    loop = asyncio.get_running_loop()

    def stop_at_end() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            server.should_exit = True

    loop.add_reader(0, stop_at_end)
    await server.serve(sockets=[listener])


def main() -> None:
    """Serve as the command line says."""
    parser = argparse.ArgumentParser(description="The well-behaved SDK peer over HTTP.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--json", action="store_true", help="answer with JSON instead of event streams")
    parser.add_argument("--stateless", action="store_true", help="no sessions for the handshake eras")
    parser.add_argument("--resumable", action="store_true", help="event ids, and streams that can be resumed")
    parser.add_argument("--sse", action="store_true", help="the legacy transport of 2024-11-05, at /sse")
    options = parser.parse_args()
    with socket.create_server((HOST, options.port)) as listener:
        asyncio.run(serve(options, listener))


if __name__ == "__main__":
    main()
