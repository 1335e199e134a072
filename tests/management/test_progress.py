"""Progress: a line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io

from mcp_client_app.management.progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_elsewhere_each_step_is_a_line():
    stream = io.StringIO()
    with ProgressLine(stream, total=2) as progress:
        progress.waiting("connecting ...")
        progress.step("files: ready")
        progress.step("weather: failed")
    assert stream.getvalue() == "[1/2] files: ready\n[2/2] weather: failed\n"


def test_on_a_terminal_one_line_changes_and_is_gone_in_the_end():
    stream = Terminal()
    with ProgressLine(stream, total=2) as progress:
        progress.waiting("connecting ...")
        progress.step("files: ready")
    written = stream.getvalue()
    assert "\n" not in written
    assert written.split("\r\x1b[2K") == ["", "connecting ...", "[1/2] files: ready", ""]


def test_on_a_terminal_the_line_never_wraps(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    stream = Terminal()
    ProgressLine(stream).show("x" * 100)
    assert stream.getvalue() == "\r\x1b[2K" + "x" * 18 + "…"


def test_what_servers_say_cannot_drive_the_terminal():
    stream = Terminal()
    ProgressLine(stream).show("\x1b[2Jboo\n")
    assert stream.getvalue() == "\r\x1b[2K�[2Jboo"


def test_without_a_stream_nothing_is_said():
    with ProgressLine(None, total=1) as progress:
        progress.waiting("...")
        progress.step("done")
