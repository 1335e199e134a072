"""What a verb writes to: tables and text for people, one JSON document for machines."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from django.core.management.base import OutputWrapper
from django.core.management.color import Style, no_style
from django.core.serializers.json import DjangoJSONEncoder

from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.management.progress import ProgressLine
from mcp_client_app.management.tables import Column, one_line, render, visible

__all__ = ["Console"]

_GOOD = frozenset(
    {ConnectionState.READY, "ok", "enabled", "create", "created", "completed", "done", "resumed"}
)
_BAD = frozenset({ConnectionState.FAILED, ConnectionState.NEEDS_AUTH, "error", "FAILED", "unknown"})
_UNEASY = frozenset(
    {
        ConnectionState.LOST,
        ConnectionState.BACKING_OFF,
        ConnectionState.STOPPED,
        "disabled",
        "update",
        "updated",
        "removed",
        "awaiting_approval",
        "awaiting_input",
        "limit_reached",
        "cancelled",
    }
)


class Console:
    """The two streams of a command.

    With ``as_json`` standard output gets exactly one document and nothing else; people's notes
    are left out, so that both streams may end in one file.

    Args:
        stdout: The command's standard output.
        stderr: The command's standard error.
        style: The command's colours; used on a terminal without ``NO_COLOR``, or if forced.
        as_json: Write for machines.
        force_color: Colours wherever the output goes.
        is_quiet: No progress and no notes.
    """

    def __init__(
        self,
        stdout: OutputWrapper,
        stderr: OutputWrapper,
        style: Style,
        *,
        as_json: bool = False,
        force_color: bool = False,
        is_quiet: bool = False,
    ) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self.as_json = as_json
        self.is_quiet = is_quiet or as_json
        may_color = force_color or (stdout.isatty() and not os.environ.get("NO_COLOR"))
        self._style = style if may_color else no_style()
        self.has_written = False
        """Whether the document was written."""

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads the output."""
        return self._stdout.isatty()

    # For people ------------------------------------------------------------------------

    def line(self, text: str = "") -> None:
        """Write a line of text whose control characters are made visible."""
        self._write(visible(text))

    def heading(self, text: str) -> None:
        """Write a line that stands out."""
        self._write(self._style.MIGRATE_HEADING(one_line(text)))

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[object]], *, empty: str) -> None:
        """Write a table, as wide as the terminal at most; ``empty`` instead of one without rows."""
        if not rows:
            self.line(empty)
            return
        width = shutil.get_terminal_size().columns if self.is_terminal else None
        self._write(render(columns, rows, width))

    def paint(self, word: str) -> str:
        """Give a word of status its colour; for ``Column.paint``."""
        color: Callable[[str], str]
        if word in _GOOD:
            color = self._style.SUCCESS
        elif word in _BAD:
            color = self._style.ERROR
        elif word in _UNEASY:
            color = self._style.WARNING
        else:
            return word
        return color(word)

    def text(self, text: str) -> None:
        """Write what a server sent: unchanged into a file or pipe, harmless on a terminal."""
        self._write(visible(text) if self.is_terminal else text)

    def note(self, text: str) -> None:
        """Write a remark to standard error."""
        if not self.is_quiet:
            self._stderr.write(_writable(visible(text), self._stderr), _plain)

    def progress(self, total: int | None = None) -> ProgressLine:
        """Return a line on standard error that says how far the work is."""
        return ProgressLine(None if self.is_quiet else _Unstyled(self._stderr), total)

    @property
    def has_somebody(self) -> bool:
        """Whether somebody sits at a terminal who can be asked."""
        return not self.as_json and sys.stdin.isatty()

    def tell(self, text: str) -> None:
        """Write to standard error what somebody has to know who is asked something."""
        self._stderr.write(_writable(visible(text), self._stderr), _plain)

    def read_line(self, prompt: str) -> str | None:
        """Return a line that somebody types; None at the end of the input. In any thread."""
        self._stderr.write(_writable(visible(prompt), self._stderr), _plain, ending="")
        self._stderr.flush()
        # A thread that waits within sys.stdin would hold a lock that the interpreter wants when it ends.
        typed = os.read(sys.stdin.fileno(), 65536)
        return typed.decode(sys.stdin.encoding, "replace") if typed else None

    def ask(self, question: str) -> bool | None:
        """Ask for a yes; None if there is nobody to ask."""
        if not self.has_somebody:
            return None
        self._stderr.write(f"{one_line(question)} [y/N] ", _plain, ending="")
        self._stderr.flush()
        return sys.stdin.readline().strip().casefold() in ("y", "yes")

    # For machines ----------------------------------------------------------------------

    def document(self, data: Any) -> None:
        """Write a JSON document, in ASCII: it arrives whatever the locale is."""
        self.has_written = True
        self._stdout.write(json.dumps(data, indent=2, cls=DjangoJSONEncoder))

    def json(self, value: Any) -> None:
        """Write a JSON value for people who asked to see it."""
        self.text(json.dumps(value, indent=2, ensure_ascii=False, cls=DjangoJSONEncoder))

    def _write(self, text: str) -> None:
        self._stdout.write(_writable(text, self._stdout))


class _Unstyled:
    """Django's standard error without its red, for what is no error."""

    def __init__(self, stream: OutputWrapper) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write(_writable(text, self._stream), _plain, ending="")

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()


def _plain(text: str) -> str:
    return text


def _writable(text: str, stream: OutputWrapper | TextIO) -> str:
    """Escape what the stream's encoding does not have: a strange character must not end the command."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
