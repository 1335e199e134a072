"""Many servers of the soak in one process: streamable HTTP in both eras, and the transport of 2024-11-05.

``python -S -E tests/soak/http_peer.py JOURNAL PORT`` says ``READY`` once it answers, and ends when its
standard input does. A path says how its server speaks: ``/modern/json/NAME``, ``/modern/stream/NAME``,
``/handshake/json/NAME``, ``/handshake/stream/NAME``, ``/sse/NAME``.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import Any
from uuid import uuid4

if not __package__:  # run as a script: make the package ``tests`` importable from any directory
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.servers.http_wire import Reply, Request, read_request
from tests.soak.peer import MODERN, Journal, Peer, encoded

HOST = "127.0.0.1"
SESSION = "mcp-session-id"

Queue = asyncio.Queue[dict[str, Any]]


class Session:
    """A conversation of the handshake eras: its state, and what belongs to no request."""

    def __init__(self, journal: Journal) -> None:
        loop = asyncio.get_running_loop()
        self.stream: Queue = Queue()
        self.peer = Peer("handshake", journal, loop.call_later, self.stream.put_nowait)


class Host:
    """All servers of this process."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._sessions: dict[str, Session] = {}
        self._listeners: dict[str, Any] = {}
        """By name, the open subscriptions."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, request after request."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        early = b""
        try:
            while (request := await read_request(reader, 0, early)) is not None:
                # What comes while a request is served: its first byte, or nothing any more.
                gone = asyncio.ensure_future(reader.read(1))
                gone.add_done_callback(lambda done: done.cancelled() or done.exception())
                reply = Reply(writer)
                await self._serve(request, reply, gone)
                early = await gone
                if not early:
                    return
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or this process ends
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, request: Request, reply: Reply, gone: asyncio.Future[bytes]) -> None:
        _, kind, *rest = request.path.split("/")
        if kind == "modern":
            await self._modern(request, reply, gone, rest[0] == "stream", rest[1])
        elif kind == "handshake":
            await self._handshake(request, reply, gone, rest[0] == "stream")
        elif kind == "sse":
            await self._old_stream(reply, gone)
        else:
            await self._old_post(request, reply, rest[0])

    # Streamable HTTP -------------------------------------------------------------------

    async def _modern(
        self, request: Request, reply: Reply, gone: asyncio.Future[bytes], streams: bool, name: str
    ) -> None:
        if request.method != "POST":
            await reply.send(405)
            return
        later = asyncio.get_running_loop().call_later
        peer = Peer(MODERN, self._journal, later, _nowhere, self._listeners.setdefault(name, {}))
        await self._answer(peer, request.rpc, reply, gone, streams)

    async def _handshake(
        self, request: Request, reply: Reply, gone: asyncio.Future[bytes], streams: bool
    ) -> None:
        session_id = request.headers.get(SESSION, "")
        if request.method == "POST" and request.rpc_method == "initialize":
            session_id = uuid4().hex
            session = self._sessions[session_id] = Session(self._journal)
            await self._answer(session.peer, request.rpc, reply, gone, streams, {SESSION: session_id})
            return
        found = self._sessions.get(session_id)
        if found is None:
            await reply.send(404 if session_id else 400, _refusal("No such session"))
        elif request.method == "GET":
            await reply.stream()
            await _forward(found.stream, reply, gone)
        elif request.method == "DELETE":
            del self._sessions[session_id]
            await reply.send(200)
        else:
            await self._answer(found.peer, request.rpc, reply, gone, streams)

    async def _answer(
        self,
        peer: Peer,
        message: dict[str, Any],
        reply: Reply,
        gone: asyncio.Future[bytes],
        streams: bool,
        headers: dict[str, str] | None = None,
    ) -> None:
        queue: Queue = Queue()
        peer.handle(message, queue.put_nowait)
        if "id" not in message:
            await reply.send(202, headers=headers)
            return
        streams = streams or message["method"] == "subscriptions/listen"
        try:
            if streams:
                await reply.stream(headers)
                if await _forward(queue, reply, gone, until=message["id"]):
                    await reply.end()
            else:
                while (item := await _next(queue, gone)) is not None:
                    if item.get("id") == message["id"]:
                        await reply.send(200, item, headers=headers)
                        return
        finally:
            peer.forget(message["id"])

    # The transport of 2024-11-05 -------------------------------------------------------

    async def _old_stream(self, reply: Reply, gone: asyncio.Future[bytes]) -> None:
        session_id, session = uuid4().hex, Session(self._journal)
        self._sessions[session_id] = session
        try:
            await reply.stream()
            await reply.chunk(f"event: endpoint\ndata: /messages/{session_id}\n\n".encode())
            await _forward(session.stream, reply, gone)
        finally:
            del self._sessions[session_id]

    async def _old_post(self, request: Request, reply: Reply, session_id: str) -> None:
        session = self._sessions.get(session_id)
        if session is None:
            await reply.send(404, "No such session", "text/plain")
            return
        session.peer.handle(request.rpc, session.stream.put_nowait)
        await reply.send(202, "Accepted", "text/plain")

    async def close(self) -> None:
        """Drop all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _nowhere(message: dict[str, Any]) -> None:
    """The stateless protocol has no messages that belong to no request."""


def _refusal(text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": text}}


async def _next(queue: Queue, gone: asyncio.Future[bytes]) -> dict[str, Any] | None:
    """Return the next message; None once the client has gone, or asks for something else."""
    item = asyncio.ensure_future(queue.get())
    either: set[asyncio.Future[Any]] = {item, gone}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return item.result() if item.done() else None
    finally:
        item.cancel()


async def _forward(queue: Queue, reply: Reply, gone: asyncio.Future[bytes], until: Any = None) -> bool:
    """Send messages as events, to the answer to ``until``; say whether that came."""
    while (item := await _next(queue, gone)) is not None:
        await reply.chunk(b"data: " + encoded(item) + b"\n\n")
        if until is not None and item.get("id") == until:
            return True
    return False


async def main(journal: str, port: str) -> None:
    """Serve until standard input ends."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, lambda: None if os.read(0, 4096) else ended.set())
    host = Host(Journal(journal))
    # Whoever started this process keeps the port bound, so that nobody else takes it between two starts.
    listener = socket.create_server((HOST, int(port)), backlog=512, reuse_port=True)
    async with await asyncio.start_server(host.accept, sock=listener):
        sys.stdout.write("READY\n")
        sys.stdout.flush()
        await ended.wait()
        await host.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
