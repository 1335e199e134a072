"""Splits a byte stream into lines, in linear time and bounded memory. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["LineSplitter", "Oversized"]

_EDGE = 4096


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line that was skipped because it exceeds the limit."""

    size: int
    """Bytes, without the newline."""
    edges: bytes
    """Its beginning and its end: enough to find out what it was about."""


class LineSplitter:
    """Collects chunks until a newline comes; a line over ``limit`` bytes is skipped."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        """The beginning of a line that is being skipped; empty otherwise."""
        self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversized]:
        """Yield each line that ``chunk`` completes, without its newline."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            yield self._finish(chunk[start:end])
            start = end + 1
        if start < len(chunk):
            self._keep(chunk[start:] if start else chunk)

    def flush(self) -> bytes | Oversized | None:
        """Return what is left at the end of the stream."""
        return self._finish(b"") if self._size else None

    def _finish(self, rest: bytes) -> bytes | Oversized:
        if not self._parts and not self._head and len(rest) <= self._limit:
            return rest
        self._keep(rest)
        size, head, tail, parts = self._size, self._head, self._tail, self._parts
        self._parts, self._size, self._head, self._tail = [], 0, b"", b""
        if head:
            return Oversized(size, head + b"\n" + tail)
        return b"".join(parts)

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if not self._head and self._size <= self._limit:
            self._parts.append(part)
            return
        if not self._head:
            joined = b"".join([*self._parts, part])
            self._head, self._parts = joined[:_EDGE], []
            self._tail = joined[-_EDGE:]
        else:
            self._tail = (self._tail + part)[-_EDGE:] if len(part) < _EDGE else part[-_EDGE:]
