"""Questions of servers, answered by whoever sits at the terminal: the command as a process on one."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import shlex
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.management.conftest import FAULTY, ROOT, SECONDS, environment, manage

VERB = "mcp_client"

FORM = {
    "name": {"type": "string", "title": "Your name", "description": "As on the badge.", "minLength": 2},
    "age": {"type": "integer", "minimum": 1},
    "height": {"type": "number", "default": 1.7},
    "agrees": {"type": "boolean", "default": True},
    "colour": {"type": "string", "enum": ["r", "b"], "enumNames": ["red", "blue"]},
    "size": {"type": "string", "oneOf": [{"const": "s", "title": "small"}, {"const": "l", "title": "large"}]},
    "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y", "z"]}},
    "note": {"type": "string"},
}
REQUIRED = ["name", "age", "colour", "size", "tags"]


def asks(**params: Any) -> str:
    """Return the command line of a server of 2026-07-28 that asks this once."""
    question = {"method": "elicitation/create", "params": {"message": "Who are you?", **params}}
    script = {"": {"inputRequests": {"who": question}, "requestState": "s1"}}
    return peer("--era=2026-07-28", f"--scenario=asks={json.dumps(script)}")


def peer(*options: str) -> str:
    return shlex.join([sys.executable, "-S", "-E", str(FAULTY), *options])


def asks_form(properties: dict[str, Any], required: Sequence[str] = ()) -> str:
    return asks(requestedSchema={"type": "object", "properties": properties, "required": list(required)})


def store(site: Path, command: str) -> None:
    assert manage(site, VERB, "add", "srv", command, "--no-connect").code == 0


def test_a_form_is_asked_for_field_by_field_and_what_does_not_fit_again(site: Path):
    store(site, asks_form(FORM, REQUIRED))
    talk = [
        ("Answer it? [y/n] ", "perhaps"),
        ("Answer it? [y/n] ", "y"),
        ("Your name (string): ", ""),
        ("Your name (string): ", "A"),
        ("Your name (string): ", "Ada"),
        ("age (integer): ", "old"),
        ("age (integer): ", "0"),
        ("age (integer): ", "36"),
        ("height (number, optional) [1.7]: ", ""),
        ("agrees (boolean, optional) [yes]: ", "no"),
        ("colour (one of red, blue): ", "blue"),
        ("size (one of small, large): ", "large"),
        ("tags (any of x, y, z, with commas between them): ", "x, q"),
        ("tags (any of x, y, z, with commas between them): ", "x, z"),
        ("note (string, optional): ", ""),
    ]
    shown, code = conversation(site, ["call", "srv__echo"], talk)

    assert code == 0, shown
    assert "The server 'srv' asks: Who are you?" in shown
    assert "As on the badge." in shown
    assert "An answer is needed here" in shown
    assert "This has to be a whole number." in shown
    content = answer_in(shown)["content"]
    assert content == {
        "name": "Ada",
        "age": 36,
        "height": 1.7,
        "agrees": False,
        "colour": "b",
        "size": "l",
        "tags": ["x", "z"],
    }


@pytest.mark.parametrize(
    ("typed", "action"), [("n", "decline"), (None, "cancel")], ids=["no", "end of the input"]
)
def test_somebody_may_refuse_or_give_up(site: Path, typed: str | None, action: str):
    store(site, asks_form({"name": {"type": "string"}}))
    shown, code = conversation(site, ["call", "srv__echo"], [("Answer it? [y/n] ", typed)])

    assert code == 0, shown
    assert answer_in(shown) == {"action": action}


def test_an_address_is_shown_and_not_opened(site: Path):
    store(site, asks(mode="url", url="https://pay.test/", elicitationId="e1"))
    shown, code = conversation(site, ["call", "srv__echo"], [("Are you done there? [y/n] ", "y")])

    assert code == 0, shown
    assert "https://pay.test/" in shown
    assert answer_in(shown) == {"action": "accept"}


@pytest.mark.parametrize(
    "words", [["prompts", "srv", "--get", "greeting"], ["resources", "srv", "--read", "file:///notes.txt"]]
)
def test_prompts_and_resources_may_ask_too(site: Path, words: list[str]):
    store(site, asks_form({}))
    shown, code = conversation(site, words, [("Answer it? [y/n] ", "y")])

    assert code == 0, shown
    assert answer_in(shown) == {"action": "accept", "content": {}}


def test_servers_of_the_handshake_may_ask_too(site: Path):
    store(site, peer("--scenario=server_request"))
    shown, code = conversation(site, ["call", "srv__echo", "text=hi"], [("Answer it? [y/n] ", "n")])

    assert code == 0, shown
    assert json.loads(shown[shown.index("{") :])["elicitation/create"] == {"action": "decline"}


def test_what_a_server_says_cannot_drive_the_terminal(site: Path):
    store(site, asks_form({"\x1b]0;a\x07": {"type": "string", "description": "\x1b[2J"}}))
    talk = [("Answer it? [y/n] ", "y"), (", optional): ", "")]
    shown, code = conversation(site, ["call", "srv__echo"], talk)

    assert code == 0, shown
    assert "\x1b]0" not in shown
    assert "\x1b[2J" not in shown


def test_where_nobody_sits_servers_are_not_told_that_they_may_ask(site: Path):
    store(site, asks_form({"name": {"type": "string"}}))
    result = manage(site, VERB, "call", "srv__echo")

    assert result.code == 1
    assert "Answer it?" not in result.err
    assert "input" in result.err


def test_machines_on_a_terminal_are_not_asked(site: Path):
    store(site, asks_form({"name": {"type": "string"}}))
    shown, code = conversation(site, ["call", "srv__echo", "--json"], [])

    assert code == 1, shown
    assert "Answer it?" not in shown
    assert "input_required" in shown


def test_a_handler_of_the_project_goes_before(site: Path):
    store(site, asks_form({"name": {"type": "string"}}))
    code = (
        "from example_project.settings import *\n"
        'MCP_CLIENT_INPUT_HANDLERS = {"elicitation": "project_settings.refuse"}\n'
        "def refuse(request): return request.decline()\n"
    )
    (site / "project_settings.py").write_text(code)
    settings = {"DJANGO_SETTINGS_MODULE": "project_settings", "PYTHONPATH": str(site)}
    shown, code_of_exit = conversation(site, ["call", "srv__echo"], [], **settings)

    assert code_of_exit == 0, shown
    assert "Answer it?" not in shown
    assert answer_in(shown) == {"action": "decline"}


def test_a_question_that_nobody_answers_in_time_leaves_its_line(site: Path):
    store(site, asks_form({"name": {"type": "string"}}))
    shown, code = conversation(site, ["call", "srv__echo", "--timeout", "2"], [])

    assert code == 1, shown
    assert "Answer it? [y/n] \nCommandError: " in shown


def test_ctrl_c_at_a_question_ends_the_command(site: Path):
    store(site, asks_form({"name": {"type": "string"}}))
    shown, code = conversation(site, ["call", "srv__echo"], [("Answer it? [y/n] ", "\x03")])

    assert code == 130, shown
    assert "Interrupted." in shown
    assert "Fatal" not in shown
    assert "Traceback" not in shown


# Helpers -----------------------------------------------------------------------------


def answer_in(shown: str) -> Any:
    """Return what the server got, which it says in its result."""
    told = json.loads(shown[shown.index('{"id"') : shown.rindex("}") + 1])
    return told["inputResponses"]["who"]


def conversation(
    directory: Path, words: Sequence[str], talk: Sequence[tuple[str, str | None]], **more: str
) -> tuple[str, int]:
    """Run the command on a terminal and type an answer after each prompt; None ends the input.

    Returns what was shown, and the exit code.
    """
    ours, theirs = pty.openpty()
    try:
        termios.tcsetwinsize(theirs, (40, 200))
        process = subprocess.Popen(
            [sys.executable, "manage.py", VERB, *words],
            cwd=ROOT,
            env=environment(directory, TERM="xterm", NO_COLOR="1", **more),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(theirs)
        theirs = -1
        shown = b""
        try:
            for prompt, typed in talk:
                told = len(shown)
                while prompt.encode() not in shown[told:]:
                    shown += (chunk := _read(ours))
                    assert chunk, f"{prompt!r} did not come: {shown.decode()}"
                os.write(ours, b"\x04" if typed is None else typed.encode() + b"\n")
            while chunk := _read(ours):
                shown += chunk
            return shown.decode().replace("\r\n", "\n"), process.wait(SECONDS)
        finally:
            process.kill()
            process.wait()
    finally:
        for descriptor in (ours, theirs):
            if descriptor >= 0:
                os.close(descriptor)


def _own_terminal() -> None:
    """Make standard input the controlling terminal, so that Ctrl-C is a signal; in the child."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _read(descriptor: int) -> bytes:
    # A terminal whose other side is closed gives an error instead of an end.
    with contextlib.suppress(OSError):
        if select.select([descriptor], [], [], SECONDS)[0]:
            return os.read(descriptor, 65536)
    return b""
