"""Says how far long work is: one line that changes on a terminal, one line after the other elsewhere."""

from __future__ import annotations

import shutil
from types import TracebackType
from typing import Final, Protocol, Self

from mcp_client_app.management.tables import one_line, shorten

__all__ = ["ProgressLine", "Stream"]

_BACK_TO_AN_EMPTY_LINE: Final = "\r\x1b[2K"


class Stream(Protocol):
    """Where progress is written: standard error, mostly."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...

    def isatty(self) -> bool: ...


class ProgressLine:
    """A context manager; when it is left, nothing of the changing line remains on a terminal.

    Args:
        stream: Where to write; None = say nothing.
        total: How many steps there are, if known.
    """

    def __init__(self, stream: Stream | None, total: int | None = None) -> None:
        self._stream = stream
        self._total = total
        self._done = 0
        self._is_drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.clear()

    def step(self, text: str) -> None:
        """Say that one step is done, and what came of it."""
        self._done += 1
        self.show(f"[{self._done}/{self._total}] {text}" if self._total else text)

    def waiting(self, text: str) -> None:
        """Say what is being waited for; only a terminal shows it, since it is no news."""
        if self._stream is not None and self._stream.isatty():
            self.show(text)

    def show(self, text: str) -> None:
        """Show a text instead of the last one."""
        if self._stream is None:
            return
        if self._stream.isatty():
            # One cell less than there are: writing the last one wraps on some terminals.
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(_BACK_TO_AN_EMPTY_LINE + shorten(one_line(text), width))
            self._is_drawn = True
        else:
            self._stream.write(one_line(text) + "\n")
        self._stream.flush()

    def clear(self) -> None:
        """Take the changing line away, so that other output has an empty line to begin on."""
        if self._is_drawn and self._stream is not None:
            self._stream.write(_BACK_TO_AN_EMPTY_LINE)
            self._stream.flush()
            self._is_drawn = False
