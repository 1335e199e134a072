"""The fast server in Python, for machines without a C compiler: the same command line and tools.

It is several times slower than the one in C, so ratios come out closer to one than they are.
"""

from __future__ import annotations

import argparse
import heapq
import os
import selectors
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import orjson

CHUNK = 1 << 20
SERVER = {"name": "fast", "version": "1.0"}
META = {"io.modelcontextprotocol/serverInfo": SERVER}
CAPABILITIES: dict[str, Any] = {"tools": {}}
CACHE = {"ttlMs": 0, "cacheScope": "private"}
LINE = "The quick brown fox jumps over the lazy dog, 0123456789 times.\n"

KNOWN = (("echo", "text", "string"), ("wait", "ms", "number"), ("big", "bytes", "integer"))

Delayed = tuple[float, int, Any, int]
"""When it is due, a number that keeps the order, the request's id, and where the answer goes."""


def tool(number: int) -> dict[str, Any]:
    """Return what a listing says of a tool: the first three exist."""
    if number < 3:
        name, argument, kind = KNOWN[number]
        schema = {"type": "object", "properties": {argument: {"type": kind}}, "required": [argument]}
        return {"name": name, "description": "Measures.", "inputSchema": schema}
    properties = {
        "query": {"type": "string", "description": "What to look for"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        "fields": {"type": "array", "items": {"type": "string"}},
    }
    return {
        "name": f"search_records_{number}",
        "title": f"Search records {number}",
        "description": f"Finds the records of table {number} that match a query, newest first.",
        "inputSchema": {"type": "object", "properties": properties, "required": ["query"]},
        "annotations": {"readOnlyHint": True},
    }


@dataclass
class Answers:
    """Makes answers; those of ``wait`` come later."""

    tools: int
    page: int
    delayed: list[Delayed] = field(default_factory=list)
    count: int = 0

    def of(self, message: Any, place: int) -> bytes | None:
        """Return the answer; None for a notification, and for one that comes later."""
        if "id" not in message or "method" not in message:
            return None
        method, params = message["method"], message.get("params") or {}
        if method == "tools/call":
            arguments = params.get("arguments") or {}
            if params["name"] == "wait":
                self.count += 1
                due = time.monotonic() + arguments["ms"] / 1000
                heapq.heappush(self.delayed, (due, self.count, message["id"], place))
                return None
            if params["name"] == "big":
                size = int(arguments["bytes"])
                text = (LINE * (size // len(LINE) + 1))[:size]
            else:
                text = arguments.get("text", "")
            return answer(message["id"], {"content": [{"type": "text", "text": text}], "isError": False})
        if method == "tools/list":
            return answer(message["id"], self._listing(int(params.get("cursor") or 0)))
        if method == "initialize":
            result = {"protocolVersion": params["protocolVersion"], "serverInfo": SERVER}
            return answer(message["id"], {"capabilities": CAPABILITIES, **result})
        if method == "server/discover":
            result = {"supportedVersions": ["2026-07-28"], **CACHE}
            return answer(message["id"], {"capabilities": CAPABILITIES, **result})
        if method == "ping":
            return orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        error = {"code": -32601, "message": "Method not found"}
        return orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def due(self) -> list[tuple[bytes, int]]:
        """Return the answers whose time has come, and where they go."""
        found = []
        while self.delayed and self.delayed[0][0] <= time.monotonic():
            _, _, request_id, place = heapq.heappop(self.delayed)
            content = [{"type": "text", "text": "done"}]
            found.append((answer(request_id, {"content": content, "isError": False}), place))
        return found

    def wait_time(self) -> float | None:
        """Return the seconds until the next answer is due."""
        return max(0.0, self.delayed[0][0] - time.monotonic()) if self.delayed else None

    def _listing(self, page: int) -> dict[str, Any]:
        size = self.page or self.tools
        end = min(self.tools, (page + 1) * size)
        more = {"nextCursor": str(page + 1)} if end < self.tools else {}
        return {"tools": [tool(number) for number in range(page * size, end)], **CACHE, **more}


def answer(request_id: Any, result: dict[str, Any]) -> bytes:
    """Return a message with a result."""
    whole = {"resultType": "complete", "_meta": META, **result}
    return orjson.dumps({"jsonrpc": "2.0", "id": request_id, "result": whole})


def serve_stdio(answers: Answers) -> None:
    """Serve until standard input ends."""
    buffer = b""
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        while True:
            if answers.delayed and not selector.select(answers.wait_time()):
                write_all(1, b"".join(line + b"\n" for line, _ in answers.due()))
                continue
            chunk = os.read(0, CHUNK)
            if not chunk:
                return
            *lines, buffer = (buffer + chunk).split(b"\n")
            made = [answers.of(orjson.loads(line), 1) for line in lines]
            write_all(1, b"".join(line + b"\n" for line in made if line is not None))


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, blocking."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


@dataclass
class HttpServer:
    """Serves connections in one thread; answers are written blocking."""

    answers: Answers
    streams: bool
    connections: dict[int, tuple[socket.socket, bytearray]] = field(default_factory=dict)

    def serve(self) -> None:
        """Serve until standard input ends."""
        with (
            socket.create_server(("127.0.0.1", 0), backlog=1024) as listener,
            selectors.DefaultSelector() as selector,
        ):
            selector.register(0, selectors.EVENT_READ)
            selector.register(listener, selectors.EVENT_READ)
            sys.stdout.write(f"READY http://127.0.0.1:{listener.getsockname()[1]}/mcp\n")
            sys.stdout.flush()
            while True:
                for key, _ in selector.select(self.answers.wait_time()):
                    if key.fd == 0:
                        if not os.read(0, 256):
                            return
                    elif key.fileobj is listener:
                        accepted, _address = listener.accept()
                        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        self.connections[accepted.fileno()] = (accepted, bytearray())
                        selector.register(accepted, selectors.EVENT_READ)
                    elif not self._read(key.fd):
                        selector.unregister(key.fd)
                        self.connections.pop(key.fd)[0].close()
                for body, place in self.answers.due():
                    if place in self.connections:
                        self.connections[place][0].sendall(self._wrap(body, b""))

    def _read(self, place: int) -> bool:
        """Serve what has come in whole; False at the end of the connection."""
        connection, buffer = self.connections[place]
        try:
            chunk = connection.recv(CHUNK)
            buffer += chunk
            while (head_end := buffer.find(b"\r\n\r\n")) >= 0:
                head = bytes(buffer[:head_end]).lower()
                length = int(head.partition(b"\r\ncontent-length:")[2].split(b"\r\n")[0] or 0)
                if len(buffer) < head_end + 4 + length:
                    break
                content = bytes(buffer[head_end + 4 : head_end + 4 + length])
                del buffer[: head_end + 4 + length]
                if reply := self._reply(head, content, place):
                    connection.sendall(reply)
        except ConnectionError:
            return False
        return bool(chunk)

    def _reply(self, head: bytes, content: bytes, place: int) -> bytes:
        if head.startswith(b"delete"):
            return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        if not head.startswith(b"post"):
            return b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST, DELETE\r\nContent-Length: 0\r\n\r\n"
        message = orjson.loads(content)
        waiting = len(self.answers.delayed)
        body = self.answers.of(message, place)
        if body is None:
            later = len(self.answers.delayed) > waiting
            return b"" if later else b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
        return self._wrap(body, b"Mcp-Session-Id: fast\r\n" if message["method"] == "initialize" else b"")

    def _wrap(self, body: bytes, headers: bytes) -> bytes:
        if not self.streams:
            return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n%b" % (
                headers,
                len(body),
                body,
            )
        event = b"event: message\r\ndata: %b\n\n" % body
        return (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%bTransfer-Encoding: chunked\r\n\r\n"
            b"%x\r\n%b\r\n0\r\n\r\n" % (headers, len(event), event)
        )


def main() -> None:
    """Serve as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("transport", choices=["stdio", "http-json", "http-sse"])
    parser.add_argument("--tools", type=int, default=3)
    parser.add_argument("--page", type=int, default=0)
    options = parser.parse_args()
    answers = Answers(max(3, options.tools), options.page)
    if options.transport == "stdio":
        serve_stdio(answers)
    else:
        HttpServer(answers, options.transport == "http-sse").serve()


if __name__ == "__main__":
    # A client that is gone ends the server as the end of input does.
    try:
        main()
    except BrokenPipeError:
        sys.exit(0)
