"""Takes server-sent events out of a byte stream as it comes in. Pure, in linear time.

Follows the WHATWG algorithm: CR, LF and CRLF end a line, a byte-order mark at the start is
skipped, an event counts only once its blank line has come. Data stay bytes, since they
are handed to a JSON decoder.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcp_client_app.exceptions import ResultTooLargeError

__all__ = ["EventStreamParser", "ServerEvent"]

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event that carried data."""

    data: bytes
    """The data lines, joined by newlines; may be empty."""
    name: str = "message"
    event_id: str | None = None
    """The last id that the stream has named so far: where to resume after this event."""


class EventStreamParser:
    """Collects chunks and returns the events that they complete."""

    def __init__(self, max_event_size: int, *, server: str | None = None) -> None:
        self.last_event_id: str | None = None
        """The id to resume from; events without data move it, too."""
        self.retry: int | None = None
        """Milliseconds to wait before resuming, if the server said so."""
        self._limit = max_event_size
        self._server = server
        self._parts: list[bytes] = []
        """Pieces of a line whose end has not come yet."""
        self._data: list[bytes] = []
        self._size = 0
        """Bytes held for the event being collected."""
        self._name = ""
        self._id: str | None = None
        self._at_start = True
        self._after_cr = False

    def continued(self) -> EventStreamParser:
        """Return a parser for the stream that takes up where this one broke off."""
        parser = EventStreamParser(self._limit, server=self._server)
        parser.last_event_id = parser._id = self.last_event_id
        parser.retry = self.retry
        return parser

    def skip_event(self) -> None:
        """Count the event being collected as received, if its id is known: it is not wanted again."""
        self.last_event_id = self._id or None

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events completed by ``chunk``.

        Raises:
            ResultTooLargeError: One event is larger than allowed; the stream cannot go on.
        """
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[0] == 0x0A:  # the second half of a CRLF that came in two chunks
                chunk = chunk[1:]
        if not chunk:
            return []
        lines = chunk.splitlines()
        ends_line = chunk[-1] in b"\r\n"
        self._after_cr = chunk[-1] == 0x0D
        if len(lines) == 1 and not ends_line:
            self._hold(chunk)
            return []
        if self._parts:
            self._size -= sum(map(len, self._parts))
            lines[0] = b"".join([*self._parts, lines[0]])
            self._parts = []
        rest = b"" if ends_line else lines.pop()
        events = []
        for line in lines:
            if line:
                self._field(line)
            elif (event := self._dispatch()) is not None:
                events.append(event)
        if rest:
            self._hold(rest)
        return events

    def _hold(self, part: bytes) -> None:
        self._parts.append(part)
        self._grow(len(part))

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            of_server = f" of {self._server!r}" if self._server else ""
            raise ResultTooLargeError(
                f"An event{of_server} is larger than {self._limit} bytes.",
                server=self._server,
                limit=self._limit,
                size=self._size,
            )

    def _field(self, line: bytes) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._grow(len(value) + 1)
            self._data.append(value)
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self.retry = int(value[:9])

    def _dispatch(self) -> ServerEvent | None:
        self._at_start = False
        self.last_event_id = self._id or None
        data, name = self._data, self._name
        self._data, self._name, self._size = [], "", 0
        if not data:
            return None
        return ServerEvent(b"\n".join(data), name or "message", self.last_event_id)
