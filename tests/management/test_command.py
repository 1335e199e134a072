"""The command as a process of its own: exit codes, streams, colours, and that nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcp_client_app.management.failures import ExitCode
from tests import leftovers
from tests.management.conftest import ROOT, SECONDS, environment, faulty, manage

VERB = "mcp_client"
ESCAPE = "\x1b["


# Exit codes and streams ----------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [[], ["no-such-verb"], ["add"], ["list", "--no-such-option"], ["add", "x", "npx", "--timeout", "soon"]],
)
def test_a_mistake_of_use_ends_with_2_and_writes_nothing_to_standard_output(site, words):
    result = manage(site, VERB, *words)
    assert (result.code, result.out) == (2, "")
    assert "usage:" in result.err


def test_exit_codes_tell_success_failure_mistake_and_partial_failure(site):
    assert manage(site, VERB, "add", "good", faulty()).code == ExitCode.OK
    assert manage(site, VERB, "add", "good", faulty()).code == ExitCode.USAGE
    assert manage(site, VERB, "add", "dead", "/no/such/program").code == ExitCode.FAILED
    assert manage(site, VERB, "tools").code == ExitCode.PARTLY


def test_for_machines_standard_output_is_one_document_even_on_failure(site):
    manage(site, VERB, "add", "good", faulty("exit_at_start=3"), "--no-connect")
    result = manage(site, VERB, "call", "good__echo", "text=hi", "--json")
    assert result.code == 1
    assert result.document["error"]["code"] == "server_crashed"
    assert "CommandError" in result.err


def test_before_migrating_every_verb_says_what_to_do(tmp_path):
    for words in (["list"], ["add", "x", "npx", "--no-connect"], ["tools"], ["sync"]):
        result = manage(tmp_path, VERB, *words)
        assert result.code == 2, words
        assert "Run 'manage.py migrate' first." in result.err
        assert "Traceback" not in result.err
    assert manage(tmp_path, VERB, "list", "--json").document["error"]["code"] == "usage"


def test_a_database_that_fails_is_a_failure_without_a_traceback(tmp_path):
    (tmp_path / "db.sqlite3").write_text("This is no database. " * 100)
    result = manage(tmp_path, VERB, "add", "files", "npx", "--no-connect")
    assert result.code == 1
    assert "The database failed:" in result.err
    assert "Traceback" not in result.err


def test_a_wrong_setting_is_named(site):
    code = "from example_project.settings import *\nMCP_CLIENT_ALLOW_STDIO = 5\n"
    (site / "wrong_settings.py").write_text(code)
    more = {"DJANGO_SETTINGS_MODULE": "wrong_settings", "PYTHONPATH": str(site)}
    result = manage(site, VERB, "add", "files", "npx", **more)
    assert result.code == 2
    assert "MCP_CLIENT_ALLOW_STDIO" in result.err
    assert "Traceback" not in result.err


def test_options_of_every_command_may_follow_the_verb(site):
    assert manage(site, VERB, "list", "--no-color", "--settings", "example_project.settings").code == 0
    assert manage(site, VERB, "--verbosity=0", "list", "--traceback").code == 0


# Nothing is left ------------------------------------------------------------------------


def test_no_process_outlives_the_command(site, tmp_path):
    pids = tmp_path / "pids"
    stubborn = f"{faulty('ignore_eof_and_term')} --pid-file {pids}"
    assert manage(site, VERB, "add", "stubborn", stubborn).code == 0
    assert manage(site, VERB, "call", "stubborn__echo", "text=hi").out == "hi\n"
    started = {int(line) for line in pids.read_text().split()}
    assert len(started) == 2
    assert leftovers.survivors(started) == []


@pytest.mark.parametrize(
    "words", [["call", "slow__sleep", "seconds=600"], ["test"], ["tools"]], ids=lambda words: words[0]
)
def test_ctrl_c_ends_the_servers_and_says_so(site, tmp_path, words):
    pids = tmp_path / "pids"
    slow = f"{faulty() if words[0] == 'call' else faulty('mute')} --pid-file {pids}"
    entry = {"command": slow, "connect_timeout": 600}
    assert manage(site, VERB, "import", "-", stdin=json.dumps({"slow": entry, "slower": entry})).code == 0
    process = subprocess.Popen(
        [sys.executable, "manage.py", VERB, *words],
        cwd=ROOT,
        env=environment(site),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(lambda: pids.exists() and pids.read_text().endswith("\n"), process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == ExitCode.INTERRUPTED, err
    assert out == ""
    assert "Interrupted." in err
    assert "Traceback" not in err
    assert leftovers.survivors({int(pid) for pid in pids.read_text().split()}) == []


def test_a_reader_that_has_seen_enough_is_no_accident(site):
    servers = {f"server-{number:04}": {"command": "npx", "description": "x" * 200} for number in range(500)}
    assert manage(site, VERB, "import", "-", stdin=json.dumps(servers)).code == 0
    pipeline = f"{shlex.quote(sys.executable)} manage.py {VERB} list | head -n 1"
    result = subprocess.run(
        ["bash", "-c", pipeline],
        cwd=ROOT,
        env=environment(site),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.stdout.startswith("NAME")
    assert result.stderr == ""


@pytest.mark.parametrize(
    "words",
    [
        ["list", "--json"],
        ["add", "second", "npx", "--no-connect"],
        ["enable", "first"],
        ["disable", "first"],
        ["remove", "first", "--yes"],
        ["export"],
        ["import", "mcp.json"],
        ["sync"],
    ],
    ids=lambda words: words[0],
)
def test_what_needs_no_connection_loads_no_sdk_and_starts_nothing(site, words):
    (site / "mcp.json").write_text('{"mcpServers": {"third": {"command": "npx"}}}')
    words = [str(site / word) if word == "mcp.json" else word for word in words]
    code = f"""
import sys, threading, django
django.setup()
from django.core.management import call_command
call_command("mcp_client", "add", "first", "npx", "--no-connect")
call_command("mcp_client", *{words!r})
loaded = {{"mcp", "mcp_types", "aiohttp", "httpx2", "anyio"}} & set(sys.modules)
assert not loaded, loaded
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
"""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env=environment(site, DJANGO_SETTINGS_MODULE="example_project.settings"),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr


# On a terminal --------------------------------------------------------------------------


def test_on_a_terminal_words_of_status_are_coloured_and_tables_fit(site):
    manage(site, VERB, "add", "web", "--url", f"https://{'long-' * 20}name.example.com/", "--disabled")
    shown = on_terminal(site, "list", columns=80)
    assert ESCAPE in shown
    assert "…" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert max(len(line) for line in plain.splitlines()) <= 80


@pytest.mark.parametrize("wish", [{"NO_COLOR": "1"}, {"DJANGO_COLORS": "nocolor"}, None])
def test_colours_can_be_refused(site, wish):
    manage(site, VERB, "add", "web", "--url", "https://example.com/", "--disabled")
    words = ["list"] if wish else ["list", "--no-color"]
    shown = on_terminal(site, *words, **(wish or {}))
    assert "disabled" in shown
    assert ESCAPE not in shown


def test_no_color_holds_for_errors_and_force_color_wins(site):
    assert ESCAPE not in on_terminal(site, "enable", "nobody", NO_COLOR="1")
    assert ESCAPE in on_terminal(site, "enable", "nobody")
    manage(site, VERB, "add", "web", "--url", "https://example.com/", "--disabled")
    assert ESCAPE in manage(site, VERB, "list", "--force-color", NO_COLOR="1").out
    assert ESCAPE not in manage(site, VERB, "list").out


def test_on_a_terminal_progress_is_a_line_that_goes_away(site):
    shown = on_terminal(site, "add", "good", faulty(), NO_COLOR="1")
    before, _, after = shown.rpartition("\r\x1b[2K")
    assert "connecting good ..." in before
    assert after.startswith("Stored good.")


def test_what_a_server_sends_cannot_drive_a_terminal_but_reaches_a_file_unchanged(site):
    manage(site, VERB, "add", "good", faulty(), "--no-connect")
    words = ["call", "good__echo", json.dumps({"text": "\x1b]0;title\x07"})]
    assert "\x1b]0" not in on_terminal(site, *words, NO_COLOR="1")
    assert manage(site, VERB, *words).out == "\x1b]0;title\x07\n"


def test_a_locale_without_the_characters_is_no_accident(site):
    manage(site, VERB, "add", "good", faulty(), "--no-connect")
    result = manage(site, VERB, "call", "good__echo", "text=größer", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (result.code, result.out) == (0, "gr\\xf6\\xdfer\n")


# Helpers --------------------------------------------------------------------------------


def on_terminal(directory: Path, *words: str, columns: int = 100, **more: str) -> str:
    """Run the command with both streams on a terminal; return what it would show."""
    ours, theirs = pty.openpty()
    try:
        termios.tcsetwinsize(theirs, (40, columns))
        inherited = environment(directory, TERM="xterm", **more)
        inherited.pop("COLUMNS", None)
        process = subprocess.Popen(
            [sys.executable, "manage.py", VERB, *words],
            cwd=ROOT,
            env=inherited,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        theirs = -1
        return b"".join(chunks(ours, process)).decode().replace("\r\n", "\n")
    finally:
        for descriptor in (ours, theirs):
            if descriptor >= 0:
                os.close(descriptor)


def chunks(descriptor: int, process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    try:
        # A terminal whose other side is closed gives an error instead of an end.
        with contextlib.suppress(OSError):
            while select.select([descriptor], [], [], SECONDS)[0] and (data := os.read(descriptor, 65536)):
                yield data
    finally:
        process.kill()
        process.wait()


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait until a condition holds that the process brings about; its end is the limit."""
    while not condition():
        assert process.poll() is None, "The process has ended."
        select.select([], [], [], 0.02)
