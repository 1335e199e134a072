"""The same scripts through the links ``own`` and ``stock``: the results must be the same."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.client.sources import StaticSource
from mcp_client_app.datatypes import (
    ConnectionState,
    InputAnswer,
    InputRequest,
    ManagerOptions,
    Progress,
    ProtocolMode,
    ServerSpec,
    StrictOptions,
    Transport,
)
from mcp_client_app.exceptions import MCPClientError, RequestTimeoutError
from tests.client.conftest import MakeManager, MakePeer
from tests.client.linking import LINKS, call, http_spec, linked, make, outcome, sdk_over_http
from tests.client.peers import FAULTY, SERVERS, Recorder, stdio_spec
from tests.servers.faulty_http import FaultyHttp

ERAS = [ProtocolMode.LEGACY, ProtocolMode.AUTO]
"""With these servers, AUTO finds the new era."""

STDIO: dict[str, Any] = {
    "transport": Transport.STDIO,
    "command": sys.executable,
    "args": (str(SERVERS / "sdk_stdio.py"),),
}

# A well-behaved server ---------------------------------------------------------------


@pytest.fixture(scope="module", params=["stdio", "json", "events"])
def answers(request: pytest.FixtureRequest) -> str:
    """How the SDK's server answers: over stdio, and over HTTP in both forms."""
    return str(request.param)


class Connected:
    """A manager with one SDK server, and what it tells."""

    def __init__(self, spec: ServerSpec, kind: str) -> None:
        self.recorder = Recorder()
        options = ManagerOptions(default_link=kind)
        self.manager = MCPClientManager(StaticSource([spec]), options, [self.recorder])
        self.manager.input_handlers["elicitation"] = accept
        self.manager.connect("sdk")
        self.recorder.wait_for(lambda: self.recorder.catalogues)


async def accept(request: InputRequest) -> InputAnswer:
    return request.accept({"name": "Ada"})


Connect = Callable[[ProtocolMode, str], Connected]


@pytest.fixture(scope="module")
def connect(answers: str) -> Iterator[Connect]:
    """Connect in an era through a link; once for all tests, as the SDK's servers start slowly."""
    made: dict[tuple[ProtocolMode, str], Connected] = {}
    with ExitStack() as stack:
        fields = STDIO
        if answers != "stdio":
            url = stack.enter_context(sdk_over_http("--json" if answers == "json" else "--resumable"))
            fields = {"transport": Transport.STREAMABLE_HTTP, "url": url}

        def make_once(mode: ProtocolMode, kind: str) -> Connected:
            if (mode, kind) not in made:
                made[mode, kind] = Connected(ServerSpec(name="sdk", mode=mode, **fields), kind)
                stack.callback(made[mode, kind].manager.close)
            return made[mode, kind]

        yield make_once


def attempt(verb: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what a verb gives, or how it fails."""
    try:
        return verb(*args, **kwargs)
    except MCPClientError as error:
        return type(error), str(error), error.details()


def script(manager: MCPClientManager) -> dict[str, Any]:
    """Do everything whose outcome depends on nothing but the server."""
    status = manager.status("sdk")
    progress: list[Progress] = []
    seen: dict[str, Any] = {
        "handshake": (
            status.protocol_version,
            status.server_name,
            status.server_version,
            status.instructions,
            status.capabilities,
            status.warnings,
        ),
        # Another test may have made the server offer one more.
        "tools": [tool for tool in manager.list_tools("sdk") if tool.name != "added"],
        "resources": manager.list_resources("sdk"),
        "templates": manager.list_resource_templates("sdk"),
        "prompts": manager.list_prompts("sdk"),
        "resource": manager.read_resource("sdk", "peer://notes"),
        "binary": manager.read_resource("sdk", "peer://pixel"),
        "templated": manager.read_resource("sdk", "peer://colours/red"),
        "no resource": attempt(manager.read_resource, "sdk", "peer://colours/loud"),
        "prompt": manager.get_prompt("sdk", "paint", {"thing": "it", "colour": "blue"}),
        "no prompt": attempt(manager.get_prompt, "sdk", "nonsense"),
        "completion": manager.complete("sdk", {"type": "ref/prompt", "name": "paint"}, "colour", "gr"),
        "big": manager.call_tool("sdk__big", {"size": 1_500_000}).text == "x" * 1_500_000,
        "progress": (manager.call_tool("sdk__slow", {"steps": 3}, on_progress=progress.append), progress),
    }
    calls: Mapping[str, Mapping[str, Any]] = {
        "echo": {"text": "é\u2028🦊 \ud83d\ude00"},
        "add": {"a": 1, "b": 2},
        "fail": {"message": "no"},
        "image": {},
        "audio": {},
        "mixed": {},
    }
    for tool, arguments in calls.items():
        seen[tool] = attempt(manager.call_tool, f"sdk__{tool}", arguments)
    seen["bad arguments"] = attempt(manager.call_tool, "sdk__add", {"a": "x"})
    seen["no tool"] = attempt(manager.call_tool, "nonsense", server="sdk")
    return seen


@pytest.mark.parametrize("mode", ERAS)
def test_a_good_server_is_the_same_through_both_links(connect: Connect, mode: ProtocolMode):
    own, stock = (script(connect(mode, kind).manager) for kind in LINKS)

    assert stock == own
    assert own["handshake"][0] == ("2025-11-25" if mode is ProtocolMode.LEGACY else "2026-07-28")
    assert own["add"].structured == {"result": 3.0}
    assert own["fail"].is_error


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("mode", ERAS)
def test_calls_of_many_threads_meet_at_the_server(
    connect: Connect, mode: ProtocolMode, kind: str, threads: ThreadPoolExecutor
):
    manager = connect(mode, kind).manager
    calls = [threads.submit(manager.call_tool, "sdk__meet", {"count": 20}) for _ in range(20)]

    assert {each.result().text for each in calls} == {"met 20"}


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("mode", ERAS)
def test_a_call_that_takes_too_long_is_cancelled_at_the_server(
    connect: Connect, answers: str, mode: ProtocolMode, kind: str
):
    if answers == "json" and mode is ProtocolMode.AUTO:
        pytest.skip("the SDK's modern server does not watch a connection on which it owes JSON")
    manager = connect(mode, kind).manager
    label = f"{kind} {mode}"
    cancelled: list[str] = []
    while label not in cancelled:
        with pytest.raises(RequestTimeoutError) as caught:
            manager.call_tool("sdk__hang", {"label": label}, timeout=0.3)
        assert caught.value.details()["outcome"] == "unknown"
        cancelled = manager.call_tool("sdk__cancellations").structured["result"]


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("mode", ERAS)
def test_a_changed_list_is_noticed(connect: Connect, mode: ProtocolMode, kind: str):
    connected = connect(mode, kind)
    before = len(connected.recorder.catalogues)
    while len(connected.recorder.catalogues) == before:
        # What the server says of its own accord comes by a stream that opens behind the scenes.
        connected.manager.call_tool("sdk__grow")

    assert connected.manager.call_tool("sdk__added").text == "here"


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("mode", ERAS)
def test_log_messages_come_in_order(connect: Connect, answers: str, mode: ProtocolMode, kind: str):
    if answers == "json":
        pytest.skip("a JSON answer has no room for them")
    connected = connect(mode, kind)
    numbers = [str(number) for number in range(50)]
    connected.manager.call_tool("sdk__log", {"messages": numbers})
    connected.recorder.wait_for(lambda: len(connected.recorder.logs) >= 50)

    assert [message.data for message in connected.recorder.logs] == numbers


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("mode", ERAS)
def test_a_tool_may_ask_back(connect: Connect, answers: str, mode: ProtocolMode, kind: str):
    if answers == "json" and mode is ProtocolMode.LEGACY:
        pytest.skip("a JSON answer has no room for a question")

    assert connect(mode, kind).manager.call_tool("sdk__greet").text == "Hello Ada"


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("mode", ERAS)
def test_a_server_that_dies_in_a_call_is_lost_and_comes_back(
    manage: MakeManager, mode: ProtocolMode, kind: str, recorder: Recorder
):
    spec = ServerSpec(name="sdk", mode=mode, **STDIO)
    manager = manage(spec, default_link=kind, observers=[recorder])
    failure = attempt(manager.call_tool, "sdk__crash", {"status": 9})

    assert failure[0].__name__ == "ServerCrashedError"
    assert (failure[2]["exit_code"], failure[2]["outcome"]) == (9, "unknown")
    recorder.wait_for_state("sdk", ConnectionState.LOST)
    assert manager.call_tool("sdk__echo", {"text": "again"}).text == "again"
    recorder.wait_for_state("sdk", ConnectionState.READY, count=2)
    assert recorder.path("sdk") == ["connecting", "ready", "lost", "connecting", "ready"]


# Faulty stdio ------------------------------------------------------------------------

STDIO_CALLS = [
    "banner",
    "non_utf8",
    "bad_progress",
    "duplicate_reply",
    "string_ids",
    "error_on_call",
    "error_on_call=-32602",
    "null_id_error",
    "null_id_error=missing",
    "result_not_object",
    'result_not_object="text"',
    "not_a_list_content",
    "null_content",
    "null_content=missing",
    "empty_content",
    "structured_only",
    "unknown_blocks",
    "strange_values",
    "output_schema_mismatch",
    "junk_notifications",
    "huge_line=3000000",
    "die_on_call=7",
    "close_output_on_call",
]


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["handshake", "2026-07-28"])
@pytest.mark.parametrize("scenario", STDIO_CALLS)
async def test_a_faulty_stdio_server_fails_the_same_way(scenario: str, era: str):
    async def play(kind: str) -> dict[str, Any]:
        spec = stdio_spec("docs", FAULTY, "--scenario", scenario, "--era", era)
        async with linked(kind, spec) as link:
            first = await call(link)
            # Some scenarios end the link at their leisure.
            second = first if link.closed.done() else await outcome(link.request("tools/list", {}))
            return {
                "handshake": link.handshake,
                "first": first,
                "second": second,
                "noise": link.diagnostics().noise_count,
                "lost": str(link.failure),
            }

    own, stock = await play("own"), await play("stock")

    assert stock == own


STDIO_STARTS = [
    "bare_initialize",
    "unknown_version",
    "no_capabilities",
    "error_on_initialize",
    "exit_at_start=3",
    "exit_unless_initialize_first",
    "mute_discover",
    "bad_tools",
    "bad_listing",
    "error_on_list",
]


@pytest.mark.anyio
@pytest.mark.parametrize("scenario", STDIO_STARTS)
@pytest.mark.parametrize("mode", list(ProtocolMode))
async def test_connecting_to_a_faulty_stdio_server_ends_the_same_way(scenario: str, mode: ProtocolMode):
    if scenario == "mute_discover" and mode is ProtocolMode.MODERN:
        pytest.skip("waits for the SDK's own ten seconds")

    async def play(kind: str) -> Any:
        spec = stdio_spec("docs", FAULTY, "--scenario", scenario, mode=mode, connect_timeout=2)
        link = make(kind, spec)
        try:
            failure = await outcome(link.open())
            if failure is not None:
                return failure
            return link.handshake, link.repairs, await outcome(link.request("tools/list", {}))
        finally:
            await link.close()

    own, stock = await play("own"), await play("stock")

    assert stock == own


@pytest.mark.parametrize("kind", LINKS)
def test_a_server_that_stops_reading_is_started_anew(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor, kind: str
):
    # It has read initialize, initialized, tools/list: nothing more.
    server = peer("srv", "stop_reading=3", once=True, mode="legacy", shutdown_timeout=0.5)
    manager = manage(server, default_link=kind)
    manager.connect("srv")
    large = {"path": "/dev/null", "text": "x" * 3_000_000}
    calls = [threads.submit(manager.call_tool, "srv__write", large, timeout=0.5) for _ in range(3)]
    sent = [error.sent for call in calls if isinstance(error := call.exception(20), RequestTimeoutError)]

    assert sent.count(True) == 1
    assert manager.call_tool("srv__echo", {"text": "anew"}).text == "anew"
    assert len(server.pids) == 2


@pytest.mark.anyio
@pytest.mark.parametrize("scenario", ["huge_line=300000", "never_newline=300000"])
async def test_a_line_over_the_limit_costs_its_own_call_only(scenario: str):
    async def play(kind: str) -> Any:
        spec = stdio_spec("docs", FAULTY, "--scenario", scenario)
        async with linked(kind, spec, options=ManagerOptions(max_frame_size=100_000)) as link:
            waiting = asyncio.create_task(call(link))
            if scenario.startswith("huge"):
                await waiting
            else:
                waiting.cancel()  # the line never ends, so nothing is known of it
                await asyncio.wait({waiting})
            return (waiting.cancelled() or waiting.result()), str(link.failure)

    own, stock = await play("own"), await play("stock")

    assert stock == own
    if scenario.startswith("huge"):
        assert own[0]["result"][1] == "result_too_large"


@pytest.mark.anyio
@pytest.mark.parametrize("kind", LINKS)
async def test_noise_ends_the_link_when_strict(kind: str):
    strict = StrictOptions.from_names(["parse_errors"])
    link = make(kind, stdio_spec("docs", FAULTY, "--scenario=banner", strict=strict))
    failure = await outcome(link.open())
    await link.close()

    assert failure[1] == "transport_error"
    assert "no JSON" in failure[2]


@pytest.mark.parametrize("kind", LINKS)
def test_frames_are_logged_without_secrets_when_debugging(
    manage: MakeManager, peer: MakePeer, caplog: pytest.LogCaptureFixture, kind: str
):
    caplog.set_level("DEBUG", "mcp_client_app.frames")
    manager = manage(peer("srv", env={"TOKEN": "tops3cret"}), debug=True, default_link=kind)
    manager.call_tool("srv__echo", {"text": "a tops3cret word"})
    frames = [record.getMessage() for record in caplog.records if record.name == "mcp_client_app.frames"]

    assert any(frame.startswith("srv -> ") and "tools/call" in frame for frame in frames)
    assert any(frame.startswith("srv <- ") and "a *** word" in frame for frame in frames)
    assert "tops3cret" not in "".join(frames)


# Faulty HTTP -------------------------------------------------------------------------

CHALLENGE = {"www-authenticate": "Bearer realm=x", "retry-after": "7"}
HTTP_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("plain", {}),
    ("plain", {"session": False}),
    *[
        ("status", {"status": status, "headers": CHALLENGE})
        for status in (400, 401, 403, 405, 408, 429, 500, 503)
    ],
    ("status", {"status": 404}),
    ("status", {"status": 200, "body": b"<html>", "type": "text/html"}),
    ("status", {"status": 200, "body": b"{half", "type": "application/json"}),
    ("status", {"status": 200, "body": b"", "type": "application/json"}),
    ("status", {"status": 202}),
    ("status", {"status": 204}),
    ("rpc_error", {"status": 400}),
    ("rpc_error", {"status": 400, "id": None}),
    ("rpc_error", {"status": 500}),
    ("rpc_error", {"status": 200, "code": -32603}),
    ("wrong_id", {}),
    ("batch", {}),
    ("gzip", {}),
    ("big_json", {"size": 3_000_000}),
    ("reset", {}),
    ("truncated", {}),
    ("redirect", {}),
    ("redirect", {"status": 302}),
    ("redirect", {"to": "http://127.0.0.2/mcp"}),
    ("redirect", {"to": "/login"}),
    ("cookie", {}),
    ("sse", {}),
    ("sse_odd", {}),
    ("sse_kept_open", {}),
    ("sse_cut", {}),
    ("sse_cut", {"cleanly": True}),
    ("resume", {}),
    ("resume", {"refuses": 404}),
    ("resume", {"refuses": 405}),
    ("resume", {"refuses": 503}),
    ("server_request", {}),
    ("session_lost", {}),
    ("session_lost", {"status": 400}),
    ("session_lost", {"bare": True}),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("scenario", "options"), HTTP_CALLS)
async def test_a_faulty_http_server_fails_the_same_way(scenario: str, options: dict[str, Any]):
    async def play(kind: str) -> dict[str, Any]:
        async with FaultyHttp(scenario, **options) as peer:
            spec = http_spec(peer.url, mode=ProtocolMode.LEGACY)
            link = make(kind, spec, input_handlers={"roots/list": no_roots})
            try:
                seen: dict[str, Any] = {"open": await outcome(link.open())}
                if seen["open"] is None:
                    seen["handshake"] = link.handshake
                    seen["call"] = await call(link)
                    if "connection_lost" in str(seen["call"]):
                        await link.closed
                    seen["failure"] = await outcome(_raise(link.failure))
                    seen["ping"] = await outcome(link.request("ping", {}))
            finally:
                await link.close()
        seen["wire"] = [
            (
                item.method,
                item.rpc_method,
                item.headers.get("mcp-session-id"),
                item.headers.get("mcp-protocol-version"),
            )
            for item in peer.requests
            if item.method != "GET"
        ]
        return seen

    own, stock = await play("own"), await play("stock")

    assert stock == own


async def no_roots(method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return {"roots": []}


async def _raise(error: MCPClientError | None) -> None:
    if error is not None:
        raise error


PROBES: list[tuple[str, dict[str, Any]]] = [
    ("status", {"status": 400}),
    ("status", {"status": 404}),
    ("status", {"status": 405}),
    ("rpc_error", {"status": 200, "code": -32601}),
    *[("status", {"status": status, "headers": CHALLENGE}) for status in (401, 403, 429, 500, 503)],
    ("status", {"status": 200, "body": b"<html>", "type": "text/html"}),
    ("reset", {}),
    ("truncated", {}),
    ("hang", {}),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("scenario", "options"), PROBES)
async def test_the_same_answers_to_the_probe_mean_an_old_server(scenario: str, options: dict[str, Any]):
    async def play(kind: str) -> dict[str, Any]:
        async with FaultyHttp(f"probe_{scenario}", **options) as peer:
            link = make(kind, http_spec(peer.url, connect_timeout=1))
            try:
                failure = await outcome(link.open())
            finally:
                await link.close()
        return {
            "failure": failure,
            "handshake": link.handshake,
            "methods": [item.rpc_method for item in peer.requests if item.rpc_method],
        }

    own, stock = await play("own"), await play("stock")

    assert stock == own
    downgrades = options.get("status", 400 if scenario == "hang" else 0) in (200, 400, 404, 405)
    assert ("initialize" in own["methods"]) is (downgrades and "body" not in options)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", LINKS)
async def test_a_stream_of_the_servers_own_messages_is_followed_and_its_end_of_session_noticed(kind: str):
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with FaultyHttp("get_stream", gone=404) as peer:
        spec = http_spec(peer.url, mode=ProtocolMode.LEGACY)
        async with linked(
            kind, spec, on_notification=lambda method, params: heard.put_nowait(method)
        ) as link:
            await peer.opened(1)
            await peer.push({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            assert await heard.get() == "notifications/tools/list_changed"
            await peer.drop_stream()
            await link.closed
            failure = str(link.failure)

    assert "ended the session (HTTP 404)" in failure


@pytest.mark.anyio
@pytest.mark.parametrize("kind", LINKS)
async def test_a_cancelled_call_lets_go_of_its_post_and_tells_the_server(kind: str):
    async with FaultyHttp("hang") as peer:
        spec = http_spec(peer.url, mode=ProtocolMode.LEGACY)
        async with linked(kind, spec) as link:
            calling = asyncio.create_task(link.request("tools/call", {"name": "echo"}))
            await peer.seen("tools/call")
            calling.cancel()
            await asyncio.wait({calling})
            cancelled = await peer.seen("notifications/cancelled")
            await peer.left.wait()

    assert cancelled.rpc["params"]["requestId"] == peer.received("tools/call")[0].rpc["id"]


@pytest.mark.anyio
@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("scenario", ["sse_silent", "resume_hangs"])
async def test_a_cancelled_call_lets_go_of_its_event_stream(kind: str, scenario: str):
    async with FaultyHttp(scenario) as peer:
        spec = http_spec(peer.url, mode=ProtocolMode.LEGACY)
        async with linked(kind, spec) as link:
            calling = asyncio.create_task(link.request("tools/call", {"name": "echo"}))
            if scenario == "resume_hangs":
                await peer.seen_where(lambda item: "last-event-id" in item.headers)
            else:
                await peer.seen("tools/call")
            calling.cancel()
            await asyncio.wait({calling})
            await peer.seen("notifications/cancelled")
            await peer.left.wait()
            assert await outcome(link.request("ping", {})) == {}


@pytest.mark.anyio
@pytest.mark.parametrize("scenario", ["big_json", "big_event"])
async def test_an_answer_over_the_limit_costs_its_own_call_only(scenario: str):
    async def play(kind: str) -> Any:
        async with FaultyHttp(scenario, size=300_000) as peer:
            spec = http_spec(peer.url, mode=ProtocolMode.LEGACY)
            async with linked(kind, spec, options=ManagerOptions(max_frame_size=100_000)) as link:
                return (await call(link))["result"][:3], await outcome(link.request("ping", {}))

    own, stock = await play("own"), await play("stock")

    assert stock == own
    assert own[0][1] == "result_too_large"


@pytest.mark.anyio
@pytest.mark.parametrize("kind", LINKS)
async def test_an_event_that_is_no_json_ends_the_link_when_strict(kind: str):
    strict = StrictOptions.from_names(["parse_errors"])
    async with FaultyHttp("sse_odd") as peer:
        spec = http_spec(peer.url, mode=ProtocolMode.LEGACY, strict=strict)
        async with linked(kind, spec) as link:
            failure = (await call(link))["result"]
            await link.closed

    assert failure[1] == "transport_error"
    assert "no JSON" in failure[2]


@pytest.mark.anyio
@pytest.mark.parametrize("kind", LINKS)
async def test_a_notification_that_finds_the_session_gone_ends_the_link(kind: str):
    async with FaultyHttp("notification_session_lost") as peer:
        spec = http_spec(peer.url, mode=ProtocolMode.LEGACY)
        async with linked(kind, spec) as link:
            await link.notify("notifications/roots/list_changed", {})
            await link.closed

    assert "ended the session (HTTP 404)" in str(link.failure)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", LINKS)
async def test_closing_does_not_wait_for_a_server_that_never_ends_the_session(kind: str):
    async with FaultyHttp("delete_hangs") as peer, asyncio.timeout(20):
        async with linked(kind, http_spec(peer.url, mode=ProtocolMode.LEGACY, shutdown_timeout=0.2)):
            pass
        await peer.seen("DELETE")


@pytest.mark.anyio
@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize(
    ("option", "options"),
    [
        ("session_header", {"session": False}),
        ("version_consistency", {"headers": {"mcp-protocol-version": "2024-11-05"}}),
    ],
)
async def test_a_handshake_that_breaks_a_strict_rule_is_refused(
    kind: str, option: str, options: dict[str, Any]
):
    async with FaultyHttp(**options) as peer:
        strict = StrictOptions.from_names([option])
        link = make(kind, http_spec(peer.url, mode=ProtocolMode.LEGACY, strict=strict))
        failure = await outcome(link.open())
        await link.close()

    assert failure[:2] == ("ProtocolError", "protocol_error")


@pytest.mark.anyio
@pytest.mark.parametrize("kind", LINKS)
async def test_an_answer_in_another_version_is_refused_when_strict(kind: str):
    options: dict[str, Any] = {"headers": {"mcp-protocol-version": "2025-06-18"}, "body": b"{}"}
    strict = StrictOptions(protocol_header=True)
    async with (
        FaultyHttp("status", **options) as peer,
        linked(kind, http_spec(peer.url, mode=ProtocolMode.LEGACY, strict=strict)) as link,
    ):
        answered = await call(link)

    assert answered["result"][0] == "ProtocolError"
    assert "2025-06-18" in answered["result"][2]
