"""Loads a site from one thread: each connection sends its next request when the answer has come."""

from __future__ import annotations

import json
import selectors
import socket
import time
from dataclasses import dataclass

from benchmarks.errors import BenchmarkError
from benchmarks.sites import Site
from benchmarks.workers.protocol import Sample

__all__ = ["Request", "load"]

PATIENCE = 60


@dataclass(frozen=True)
class Request:
    """One request, sent again and again."""

    path: str
    body: dict[str, object]

    @property
    def raw(self) -> bytes:
        """As it goes over the wire."""
        body = json.dumps(self.body).encode()
        return (
            f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body


class _Client:
    """One connection."""

    def __init__(self, port: int, raw: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._raw = raw
        self._received = bytearray()
        self._sent_at = 0.0

    def send(self) -> None:
        self._received.clear()
        self._sent_at = time.perf_counter()
        self.socket.sendall(self._raw)

    def receive(self) -> float | None:
        """Return how long the answer took; None if it has not come whole.

        Raises:
            BenchmarkError: It is not the answer that is wanted.
        """
        chunk = self.socket.recv(65536)
        self._received += chunk
        end = self._received.find(b"\r\n\r\n")
        if not chunk:
            raise BenchmarkError("The site closed a connection.")
        if end < 0:
            return None
        head = bytes(self._received[:end])
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        if len(self._received) < end + 4 + length:
            return None
        if b" 200 " not in head[:20]:
            raise BenchmarkError(f"The site answered {bytes(self._received[:2000]).decode(errors='replace')}")
        return time.perf_counter() - self._sent_at


def load(site: Site, request: Request, connections: int, seconds: float) -> Sample:
    """Send requests over so many connections for so long; the CPU time is the site's.

    Raises:
        BenchmarkError: An answer is not as wanted.
    """
    clients = [_Client(site.port, request.raw) for _ in range(connections)]
    durations: list[float] = []
    try:
        with selectors.DefaultSelector() as selector:
            for client in clients:
                selector.register(client.socket, selectors.EVENT_READ, client)
            cpu, started = site.cpu_seconds(), time.perf_counter()
            until = started + seconds
            for client in clients:
                client.send()
            waiting = connections
            while waiting:
                ready = selector.select(PATIENCE)
                if not ready:
                    raise BenchmarkError(f"The site did not answer within {PATIENCE} s.")
                for key, _ in ready:
                    duration = key.data.receive()
                    if duration is None:
                        continue
                    durations.append(duration)
                    if time.perf_counter() < until:
                        key.data.send()
                    else:
                        waiting -= 1
        elapsed = time.perf_counter() - started
        used = site.cpu_seconds() - cpu
    finally:
        for client in clients:
            client.socket.close()
    durations.sort()
    return Sample(
        calls=len(durations),
        seconds=elapsed,
        cpu_us=used / len(durations) * 1e6,
        p50_us=durations[len(durations) // 2] * 1e6,
        p99_us=durations[min(len(durations) - 1, len(durations) * 99 // 100)] * 1e6,
    )
