"""Writes messages to a pipe, in order, without ever blocking: what the pipe does not take at once, waits."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp_client_app import json_codec
from mcp_client_app.client.exchange import Exchange

__all__ = ["Frame", "StdioWriter"]

BATCH = 65_536
"""Bytes of small messages that are written at once: what a pipe holds, by default."""


@dataclass(slots=True, eq=False)
class Frame:
    """A message that the pipe has not taken yet, or only in part."""

    data: memoryview
    exchange: Exchange
    written: asyncio.Future[None]
    """Done when the pipe has all of it; cancelled when it never will."""
    aside: bool = False
    """Nobody waits for it."""


class StdioWriter:
    """The writing end of a pipe, on one loop."""

    def __init__(self, descriptor: int, broken: Callable[[], None]) -> None:
        """``broken`` is called when nobody reads the pipe any more."""
        self._descriptor = descriptor
        self._broken = broken
        self._loop = asyncio.get_running_loop()
        self._frames: deque[Frame] = deque()
        self._gathering = False
        self.is_blocked = False
        """The pipe is full: it is written on as soon as it takes more."""

    def __len__(self) -> int:
        """Count the messages that wait."""
        return len(self._frames)

    def write(self, message: dict[str, Any], exchange: Exchange, *, gather: bool = False) -> Frame | None:
        """Write now, or queue what the pipe does not take; returns the frame that waits, if any.

        Sets ``exchange.sent`` with the first byte that the pipe takes. With ``gather`` it waits for
        what else is written in this turn of the loop: one system call, which wakes the server once.
        """
        data = memoryview(json_codec.dumps(message) + b"\n")
        frame = Frame(data, exchange, self._loop.create_future())
        self._frames.append(frame)
        if self.is_blocked or self._gathering:
            return frame
        if gather:
            self._gathering = True
            self._loop.call_soon(self._gathered)
            return frame
        self._flush()
        return frame if frame.data else None

    def holds(self, exchange: Exchange) -> bool:
        """Say whether a part of this request still waits."""
        return any(frame.exchange is exchange for frame in self._frames)

    def asides(self) -> int:
        """Count the waiting messages that nobody waits for."""
        return sum(frame.aside for frame in self._frames)

    def withdraw(self, exchange: Exchange) -> None:
        """Drop a request of which nothing was written; a begun one has to stay, or the stream breaks."""
        if exchange.sent:
            return
        for frame in [frame for frame in self._frames if frame.exchange is exchange]:
            self._frames.remove(frame)
        if not self._frames:
            self._unblock()

    def stop(self) -> None:
        """Write nothing more; what waits is dropped."""
        self._unblock()
        for frame in self._frames:
            frame.written.cancel()
        self._frames.clear()

    def _gathered(self) -> None:
        self._gathering = False
        self._flush()

    def _flush(self) -> None:
        """Write what the pipe takes, and wait for the pipe if that was not all."""
        while self._frames:
            frames = self._batch()
            data = frames[0].data if len(frames) == 1 else b"".join(frame.data for frame in frames)
            try:
                count = os.write(self._descriptor, data)
            except BlockingIOError:
                break
            except OSError:
                for frame in frames:
                    self._done(frame)
                self._broken()
                continue
            self._taken(frames, count)
        if not self._frames:
            self._unblock()
        elif not self.is_blocked:
            self.is_blocked = True
            self._loop.add_writer(self._descriptor, self._flush)

    def _batch(self) -> list[Frame]:
        """Return what to write at once: the first frame, and small ones behind it."""
        size = 0
        frames: list[Frame] = []
        for frame in self._frames:
            size += len(frame.data)
            if frames and size > BATCH:
                break
            frames.append(frame)
        return frames

    def _taken(self, frames: list[Frame], count: int) -> None:
        for frame in frames:
            if not count:
                return
            frame.exchange.sent = True
            part = min(count, len(frame.data))
            count -= part
            if part == len(frame.data):
                self._done(frame)
            else:
                frame.data = frame.data[part:]

    def _done(self, frame: Frame) -> None:
        self._frames.popleft()
        frame.data = frame.data[:0]
        if not frame.written.done():
            frame.written.set_result(None)

    def _unblock(self) -> None:
        if self.is_blocked:
            self.is_blocked = False
            self._loop.remove_writer(self._descriptor)
