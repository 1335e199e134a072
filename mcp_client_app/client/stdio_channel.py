"""The pipes of a stdio server: one JSON-RPC message a line, read and written on the descriptors.

No task and no thread per server. A bad line costs itself only. Knows nothing of requests:
messages go to callbacks, so that our dispatcher and the SDK's can both sit on top. Must
not start processes (``process``) nor decide about reconnecting.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import select
import sys
import termios
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from mcp_client_app import json_codec
from mcp_client_app.client.decoding import BIG_FRAME
from mcp_client_app.client.exchange import Exchange
from mcp_client_app.client.framing import LineSplitter, Oversized
from mcp_client_app.client.process import ChildProcess
from mcp_client_app.client.redaction import Redactor
from mcp_client_app.client.stdio_writer import Frame, StdioWriter
from mcp_client_app.exceptions import (
    ConnectionLostError,
    MCPClientError,
    ServerCrashedError,
    TransportError,
)

logger = logging.getLogger(__name__)

__all__ = ["ChannelEvents", "StdioChannel", "lost", "unreadable"]

CHUNK = 262_144
_BEFORE_JSON = b" \t\r\xef\xbb\xbf"
"""White space, and the byte order mark."""
EDGE = 4000
"""Bytes at either end of a line that are looked at when it cannot be read."""
MOST_ASIDE = 10_000
"""Messages that wait to be written although nobody waits for them."""
STDERR_LINE = 16_384
"""Bytes of one line of standard error; the rest of the line is left out."""
NOT_READ = "it does not read its input."
LAST_CHUNKS = 64
"""Reads of what a dead server has left in its pipe; a pipe holds a megabyte at most, by default."""
LAST_WORDS = 0.5
"""Seconds that a dying server gets to hand over exit code and standard error."""


@dataclass(frozen=True, slots=True)
class ChannelEvents:
    """Where a channel reports to; called on the loop, in order, and must not raise."""

    message: Callable[[Any, int], None]
    """A decoded message and its size in bytes."""
    oversized: Callable[[Oversized], None]
    garbage: Callable[[str, bytes], None]
    """A line that cannot be read: its beginning, redacted, and both its ends as they came."""
    stderr: Callable[[str], None]
    """A line of standard error, redacted, never blank."""
    down: Callable[[MCPClientError], None]
    """Nothing comes or goes any more; called once."""


def lost(server: str, why: str) -> ConnectionLostError:
    """Build the usual reason for a link that is down."""
    return ConnectionLostError(f"The connection to {server!r} was lost: {why}", server=server)


def unreadable(server: str, method: str) -> TransportError:
    """Build the error of a request whose answer came, but cannot be read."""
    return TransportError(
        f"The answer of {server!r} to {method!r} cannot be read: it is no JSON, or nested too deeply.",
        server=server,
    )


class StdioChannel:
    """Newline-delimited JSON over the pipes of a child process."""

    def __init__(
        self,
        child: ChildProcess,
        events: ChannelEvents,
        *,
        server: str,
        redactor: Redactor,
        max_frame_size: int,
        stderr_lines: int = 200,
    ) -> None:
        self.server = server
        self.is_down = False
        self.input_taken = True
        """Whether the server has read all that it was sent; false only if it ended and surely has not."""
        self._has_let_go = False
        self.stderr_tail: deque[str] = deque(maxlen=stderr_lines)
        self._child = child
        self._events = events
        self._redact = redactor
        self._loop = asyncio.get_running_loop()
        self._stdin, self._stdout, self._stderr = (
            pipe.fileno() for pipe in (child.stdin, child.stdout, child.stderr)
        )
        self.writer = StdioWriter(self._stdin, self._unread_input)
        self._lines: deque[bytes | Oversized] = deque()
        self._splitter = LineSplitter(max_frame_size)
        self._decoding: asyncio.Future[Any] | None = None
        self._eof = False
        self._reading: set[int] = set()
        self._stderr_splitter = LineSplitter(STDERR_LINE)
        self._stderr_done: asyncio.Future[None] = self._loop.create_future()
        self._dying: asyncio.Task[None] | None = None
        self._read(self._stdout, self._stdout_readable)
        self._read(self._stderr, self._stderr_readable)
        child.exited.add_done_callback(self._exited)
        child.before_close = self._let_go

    # Writing ---------------------------------------------------------------------------

    def write(self, message: dict[str, Any], exchange: Exchange, *, gather: bool = False) -> Frame | None:
        """Write a message; returns the frame that waits, if the pipe does not take it at once."""
        return None if self.is_down else self.writer.write(message, exchange, gather=gather)

    def write_aside(self, message: dict[str, Any]) -> None:
        """Write what nobody waits for: a notification, an answer.

        A server that goes on asking but does not read what it is told is given up.
        """
        frame = self.write(message, Exchange())
        if frame is not None:
            frame.aside = True
            if self.writer.asides() > MOST_ASIDE:
                self.detach(NOT_READ)

    def give_up(self, exchange: Exchange, others: Collection[Exchange]) -> None:
        """Take back what the pipe has not taken of a request; ``others`` still wait for their answers.

        If these wait to be written, too, no answer can come any more: better start afresh than stay stuck.
        """
        writer = self.writer
        if not writer.holds(exchange):
            return
        is_stuck = writer.is_blocked and all(map(writer.holds, others))
        writer.withdraw(exchange)
        if is_stuck:
            self.detach(NOT_READ)

    def _unread_input(self) -> None:
        # The reading side is closed. Its end of standard output tells why in a moment.
        self.input_taken = False
        self._start_dying("it closed its standard input")

    # Reading ---------------------------------------------------------------------------

    def _read(self, descriptor: int, callback: Callable[[], object]) -> None:
        self._reading.add(descriptor)
        self._loop.add_reader(descriptor, callback)

    def _unread(self, descriptor: int) -> None:
        if descriptor in self._reading:
            self._reading.discard(descriptor)
            self._loop.remove_reader(descriptor)

    def _stdout_readable(self) -> None:
        try:
            chunk = os.read(self._stdout, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._eof = True
            self._unread(self._stdout)
            self._start_dying("it closed its standard output")
            return
        if self.is_down:
            return  # read all the same: a server that cannot write cannot end either
        self._lines.extend(self._splitter.feed(chunk))
        self._drain()

    def _drain(self) -> None:
        while self._lines and self._decoding is None:
            line = self._lines.popleft()
            if isinstance(line, Oversized):
                self._events.oversized(line)
            elif len(line) < BIG_FRAME or not self._decode_elsewhere(line):
                self._line(line)

    def _decode_elsewhere(self, line: bytes) -> bool:
        """Decode on a worker thread; this server's reading pauses, so that order is kept."""
        try:
            job = self._loop.run_in_executor(None, json_codec.loads, line)
        except RuntimeError:  # the interpreter is shutting down
            return False
        self._decoding = job
        self._unread(self._stdout)

        def done(future: asyncio.Future[Any]) -> None:
            self._decoding = None
            if not future.cancelled() and not self.is_down:
                if future.exception() is None:
                    self._message(future.result(), len(line))
                else:
                    self._garbage(line)
                self._drain()
            self._read_on()

        job.add_done_callback(done)
        return True

    def _read_on(self) -> None:
        if self._decoding is None and not self._eof and not self._has_let_go:
            self._read(self._stdout, self._stdout_readable)

    def _line(self, line: bytes) -> None:
        if line[:1] != b"{" and line.lstrip(_BEFORE_JSON)[:1] not in (b"{", b"["):
            self._garbage(line)  # found out without a parser: some servers write little else
            return
        try:
            message = json_codec.loads(line)
        except ValueError:
            self._garbage(line)
        else:
            self._message(message, len(line))

    def _message(self, message: Any, size: int) -> None:
        try:
            self._events.message(message, size)
        except Exception as error:  # noqa: BLE001 - it may quote the message, and the lines behind it must be read
            logger.error("A message of %r could not be handled: %s", self.server, type(error).__name__)

    def _garbage(self, line: bytes) -> None:
        edges = line if len(line) <= 2 * EDGE else line[:EDGE] + b"\n" + line[-EDGE:]
        self._events.garbage(self._redact(line[:EDGE].decode("utf-8", "replace")), edges)

    # Standard error --------------------------------------------------------------------

    def _stderr_readable(self) -> bool:
        """Read once; returns whether there was anything."""
        try:
            chunk = os.read(self._stderr, CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        for line in self._stderr_splitter.feed(chunk):
            self._stderr_line(line)
        if not chunk:
            self._stderr_ended()
        return bool(chunk)

    def _stderr_ended(self) -> None:
        self._unread(self._stderr)
        if (rest := self._stderr_splitter.flush()) is not None:
            self._stderr_line(rest)
        if not self._stderr_done.done():
            self._stderr_done.set_result(None)

    def _stderr_line(self, line: bytes | Oversized) -> None:
        if isinstance(line, Oversized):
            head = line.edges.partition(b"\n")[0]
            text = f"{self._redact.beginning(head.decode('utf-8', 'ignore'))}... ({line.size} bytes)"
        else:
            text = self._redact(line.decode("utf-8", "replace")).rstrip()
        if not text.strip():
            return
        self.stderr_tail.append(text)
        self._events.stderr(text)

    # The end ---------------------------------------------------------------------------

    def _exited(self, _: asyncio.Future[None]) -> None:
        self._start_dying("its process ended")

    def _start_dying(self, why: str) -> None:
        if self._dying is None and not self.is_down:
            self._dying = self._loop.create_task(self._die(why))

    async def _die(self, why: str) -> None:
        """Wait a moment for exit code, last output and last words, then report."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                await asyncio.shield(self._child.exited)
                await asyncio.shield(self._stderr_done)
        # What the pipe still holds; no more, for a grandchild may go on writing for ever.
        for _ in range(LAST_CHUNKS):
            if self._decoding is not None:
                await asyncio.wait({self._decoding})
            if self._eof or not self._more_to_read():
                break
            self._stdout_readable()
        while self._decoding is not None:
            await asyncio.wait({self._decoding})
        if len(self.writer) or _held_by(self._stdin):
            self.input_taken = False
        self._go_down(self._obituary(why))

    def _more_to_read(self) -> bool:
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        return bool(poll.poll(0))

    def _obituary(self, why: str) -> MCPClientError:
        if not self._child.exited.done():
            return lost(self.server, f"{why}.")
        code = self._child.exit_code
        if code is None:
            how = "ended"
        elif code < 0:
            how = f"was ended by signal {-code}"
        else:
            how = f"exited with code {code}"
        tail = tuple(self.stderr_tail)[-20:]
        words = f" Its last words: {tail[-1]}" if tail else ""
        return ServerCrashedError(
            f"The process of {self.server!r} {how}.{words}",
            server=self.server,
            exit_code=code,
            stderr_tail=tail,
        )

    def _go_down(self, why: MCPClientError) -> None:
        if self.is_down:
            return
        self.is_down = True
        self.writer.stop()
        self._lines.clear()
        self._events.down(why)

    def detach(self, why: str = "it was closed.") -> None:
        """Stop writing and heeding what comes; last words are still heard. The owner ends the process."""
        self._go_down(lost(self.server, why))
        if self._dying is not None:
            self._dying.cancel()

    def _let_go(self) -> None:
        self.detach()
        self._has_let_go = True
        self._unread(self._stdout)
        for _ in range(LAST_CHUNKS):
            if self._stderr_done.done() or not self._stderr_readable():
                break
        self._stderr_ended()


def _held_by(pipe: int) -> int:
    """Return how many bytes are in a pipe that nobody has read; 0 where the system does not tell."""
    try:
        count = fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))
    except OSError:
        return 0
    return int.from_bytes(count, sys.byteorder)
