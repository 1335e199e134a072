"""The faulty peer is itself trusted by many tests: it must do what its table says, and else behave well."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.servers import payloads, process_faults

PEER = str(Path(__file__).with_name("faulty_stdio.py"))
COMMAND = [sys.executable, "-S", "-E", PEER]


class Driver:
    """A raw client: sends what it is told and returns frames as they come."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr

    def send(self, method: str, request_id: Any = None, **params: Any) -> None:
        frame = {"jsonrpc": "2.0", "method": method, "params": params}
        if request_id is not None:
            frame["id"] = request_id
        self.send_frame(frame)

    def send_frame(self, frame: Any) -> None:
        self.stdin.write(json.dumps(frame).encode() + b"\n")
        self.stdin.flush()

    def call(self, tool: str, request_id: Any = 1, **arguments: Any) -> None:
        self.send(
            "tools/call", request_id, name=tool, arguments=arguments, _meta={"progressToken": request_id}
        )

    def read(self) -> Any:
        line = self.stdout.readline()
        assert line, "the peer closed its output"
        return json.loads(line)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            # What could not be written to a dead peer stays in the buffer.
            with contextlib.suppress(BrokenPipeError):
                stream.close()


@pytest.fixture
def start() -> Iterator[Any]:
    drivers: list[Driver] = []

    def start(*scenarios: str, options: tuple[str, ...] = ()) -> Driver:
        drivers.append(Driver(*(f"--scenario={scenario}" for scenario in scenarios), *options))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.close()


@pytest.mark.parametrize(("era", "mode"), [("handshake", "legacy"), ("2026-07-28", "auto")])
async def test_without_a_scenario_the_sdk_client_is_content(era: str, mode: str, tmp_path: Path) -> None:
    log = tmp_path / "wire"
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "--era", era, "--wire-log", str(log)], cwd=str(tmp_path)
    )
    with (tmp_path / "stderr").open("w") as stderr:
        async with Client(stdio_client(parameters, errlog=stderr), mode=mode) as client:
            tools = await client.list_tools()
            assert [tool.name for tool in tools.tools] == [tool["name"] for tool in payloads.TOOLS]
            result = await client.call_tool("add", {"a": 1, "b": 2})
            assert result.structured_content == {"result": 3}
            assert (await client.call_tool("cwd", {})).content[0].text == str(tmp_path)  # type: ignore[union-attr]
    methods = [json.loads(line)["method"] for line in log.read_text().splitlines()]
    assert methods[0] == ("initialize" if mode == "legacy" else "server/discover")
    assert methods[-2:] == ["tools/call", "tools/call"]


def test_calls_that_meet_are_answered_in_reverse_order(start: Any) -> None:
    peer = start()
    for number in (1, 2, 3):
        peer.call("meet", number, count=3)
    assert [peer.read()["id"] for _ in range(3)] == [3, 2, 1]


def test_a_cancelled_call_is_not_answered(start: Any, tmp_path: Path) -> None:
    peer = start()
    peer.call("meet", 1, count=2)
    peer.send("notifications/cancelled", requestId=1)
    peer.call("meet", 2, count=2)
    peer.call("meet", 3, count=2)
    assert [peer.read()["id"] for _ in range(2)] == [3, 2]


def test_a_cancelled_call_goes_on_if_the_scenario_says_so(start: Any) -> None:
    peer = start("ignore_cancel")
    peer.call("meet", 1, count=2)
    peer.send("notifications/cancelled", requestId=1)
    peer.call("meet", 2, count=2)
    assert [peer.read()["id"] for _ in range(2)] == [2, 1]


def test_a_cancelled_call_is_answered_late_if_the_scenario_says_so(start: Any) -> None:
    peer = start("late_reply")
    peer.call("hang", 1)
    peer.send("notifications/cancelled", requestId=1)
    assert peer.read()["result"] == payloads.text_result("too late")


def test_noise_comes_before_the_first_answer(start: Any) -> None:
    peer = start("banner", "non_utf8")
    peer.send("ping", 1)
    lines = [peer.stdout.readline() for _ in range(6)]
    assert lines[1] == b"\n"
    assert lines[4] == b"\xff\xfe\n"
    assert json.loads(lines[5]) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_a_peer_misbehaves_only_once_or_until_told(start: Any, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    options = ("--once", str(flag), "--pid-file", str(tmp_path / "pids"))
    assert start("exit_at_start=3", options=options).process.wait() == 3
    peer = start("exit_at_start=3", options=options)
    peer.send("ping", 1)
    assert peer.read()["id"] == 1
    assert len((tmp_path / "pids").read_text().splitlines()) == 2
    until = start("exit_at_start=4", options=("--until", str(tmp_path / "cure")))
    assert until.process.wait() == 4


def test_a_tool_has_had_its_effect_when_the_peer_dies_in_mid_call(start: Any, tmp_path: Path) -> None:
    peer = start("die_on_call")
    peer.call("write", path=str(tmp_path / "out"), text="line")
    assert peer.process.wait() == 7
    assert (tmp_path / "out").read_text() == "line\n"


def test_an_idle_peer_dies_on_a_signal(start: Any) -> None:
    peer = start("die_on_idle")
    peer.send("ping", 1)
    peer.read()
    peer.process.send_signal(signal.SIGUSR1)
    assert peer.process.wait() == 5


def test_a_stubborn_peer_stays_after_the_end_of_input_and_sigterm(start: Any) -> None:
    peer = start("ignore_eof_and_term")
    peer.send("ping", 1)
    peer.read()
    peer.stdin.close()
    peer.process.terminate()
    # It writes nothing more and it keeps its output open: only SIGKILL helps.
    descriptor = os.pidfd_open(peer.process.pid)
    assert select.select([descriptor], [], [], 0.1)[0] == []
    os.close(descriptor)


def test_a_grandchild_outlives_its_parent(start: Any, tmp_path: Path) -> None:
    path = tmp_path / "child"
    peer = start(f"grandchild={path}")
    peer.send("ping", 1)
    peer.read()
    child = int(path.read_text())
    peer.stdin.close()
    assert peer.process.wait() == 0
    assert os.getpgid(child) == peer.process.pid
    os.killpg(peer.process.pid, signal.SIGKILL)


def test_a_peer_that_has_stopped_reading_answers_no_more(start: Any) -> None:
    peer = start("stop_reading=2")
    for number in (1, 2, 3):
        peer.send("ping", number)
    assert [peer.read()["id"] for _ in range(2)] == [1, 2]
    assert select.select([peer.stdout], [], [], 0.1)[0] == []


def test_standard_error_comes_in_pieces(start: Any) -> None:
    peer = start("stderr_partial")
    for number in range(len(process_faults.PARTS)):
        peer.send("ping", number)
    peer.stdin.close()
    assert peer.stderr.read().decode() == ("first half, second half\n\n   \nnext café line\r\nunfinished")


def test_the_client_is_asked_questions_before_a_call_is_answered(start: Any) -> None:
    peer = start("server_request")
    peer.call("echo", 7, text="x")
    for asked in payloads.SERVER_REQUESTS:
        request = peer.read()
        assert request["method"] == asked["method"]
        peer.send_frame({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32600, "message": "no"}})
    replies = json.loads(peer.read()["result"]["content"][0]["text"])
    assert {reply["code"] for reply in replies.values()} == {-32600}


REPLIES: dict[str, dict[str, Any]] = {
    "string_ids": {"id": "1"},
    "null_id_error": {"id": None},
    "wrong_id": {"id": 987654},
    "error_on_call=-32602": {"error": {"code": -32602, "message": "faulty peer refuses with -32602"}},
    "result_not_object": {"result": []},
    "null_content": {"result": {"content": None}},
    "null_content=missing": {"result": {}},
    "empty_content": {"result": {"content": []}},
    "unknown_blocks": {"result": payloads.UNKNOWN_BLOCKS},
    "output_schema_mismatch=missing": {"result": payloads.OUTPUT_MISMATCHES["missing"]},
    "huge_line=10": {"result": payloads.text_result("x" * 10)},
}


@pytest.mark.parametrize("scenario", REPLIES)
def test_a_call_is_answered_as_the_scenario_says(scenario: str, start: Any) -> None:
    peer = start(scenario)
    peer.call("echo", text="x")
    answer = peer.read()
    assert answer == {**answer, **REPLIES[scenario]}


BESIDE: dict[str, list[str | None]] = {
    "duplicate_reply": [None, None],
    "progress=2": ["notifications/progress"] * 2 + [None],
    "log_messages": ["notifications/message"] * 3 + [None],
    "list_changed": [None, "notifications/tools/list_changed"],
    "bad_progress": [*["notifications/progress"] * 5, None, "notifications/progress"],
}


@pytest.mark.parametrize("scenario", BESIDE)
def test_notifications_come_beside_the_answer_as_the_scenario_says(scenario: str, start: Any) -> None:
    peer = start(scenario)
    peer.call("echo", text="x")
    assert [peer.read().get("method") for _ in BESIDE[scenario]] == BESIDE[scenario]


def test_strange_values_are_sent_as_a_careless_serialiser_writes_them(start: Any) -> None:
    peer = start("strange_values")
    peer.call("echo", text="x")
    line = peer.stdout.readline()
    assert rb"\ud800" in line
    assert b"NaN" in line
    assert b"12345678901234567890123" in line


@pytest.mark.parametrize(
    ("scenario", "names"),
    [
        ("three_pages", ["echo", "add", "sleep"]),
        ("endless_cursor", ["echo"] * 4),
        ("cycling_cursor", ["echo"] * 4),
    ],
)
def test_listings_have_the_pages_that_the_scenario_says(scenario: str, names: list[str], start: Any) -> None:
    peer = start(scenario)
    cursor, seen = None, []
    for number in range(4):
        peer.send("tools/list", number, **({"cursor": cursor} if cursor else {}))
        page = peer.read()["result"]
        seen += [tool["name"] for tool in page["tools"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    assert seen == names


@pytest.mark.parametrize("kind", payloads.BAD_TOOLS)
def test_every_bad_tool_can_be_listed_beside_a_good_one(kind: str, start: Any) -> None:
    peer = start(f"bad_tools={kind}")
    peer.send("tools/list", 1)
    assert peer.read()["result"]["tools"] == [payloads.GOOD_TOOL, payloads.BAD_TOOLS[kind]]


@pytest.mark.parametrize("scenario", ["mute", "mute_list", "mute_discover"])
def test_a_mute_peer_leaves_out_the_answer_and_goes_on(scenario: str, start: Any) -> None:
    method = {"mute": "initialize", "mute_list": "tools/list", "mute_discover": "server/discover"}[scenario]
    peer = start(scenario)
    peer.send(method, 1)
    peer.send("ping", 2)
    assert peer.read()["id"] == 2


def test_an_older_server_leaves_when_it_is_not_initialized_first(start: Any) -> None:
    peer = start("exit_unless_initialize_first")
    peer.send("server/discover", 1)
    assert peer.process.wait() == 1


def test_a_slow_start_waits_for_a_file(start: Any, tmp_path: Path) -> None:
    peer = start(f"slow_start={tmp_path / 'go'}")
    peer.send("ping", 1)
    assert select.select([peer.stdout], [], [], 0.1)[0] == []
    (tmp_path / "go").touch()
    assert peer.read()["id"] == 1


def test_the_handshake_can_be_spoilt(start: Any) -> None:
    peer = start("unknown_version", "junk_notifications", "no_capabilities")
    peer.send("initialize", 1, protocolVersion="2025-11-25", capabilities={}, clientInfo={})
    answer = peer.read()["result"]
    assert answer["protocolVersion"] == "2099-01-01"
    assert answer["capabilities"] == {}
    assert [peer.read()["method"] for _ in payloads.JUNK_NOTIFICATIONS]


def test_an_unknown_scenario_is_refused(start: Any) -> None:
    assert start("no_such_scenario").process.wait() == 2
