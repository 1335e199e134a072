"""A server over HTTP that is restarted, forgets its sessions or goes away, as callers see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.exceptions import ServerConnectionError, ServerUnavailableError, TransportError
from tests.client.conftest import MakeHttpPeer, MakeManager
from tests.client.linking import LINKS
from tests.client.peers import Recorder
from tests.servers import http_faults

pytestmark = pytest.mark.parametrize("link", LINKS)

ERAS = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
MORE_TOOLS = ("echo", "added")
SCENARIOS = http_faults  # importing them has put them into the table


def life(modern: bool, session: str) -> dict[str, Any]:
    """Return the options of one life of a server."""
    return {"modern": True} if modern else {"sessions": session}


@pytest.mark.parametrize(
    "refusal",
    [
        {},
        {"forgets": 410, "message": "Gone"},
        {"forgets": 400, "message": "Bad Request: No valid session ID provided"},
        {"forgets": 400, "message": "Bad Request: Server not initialized"},
        {"forgets": 400, "message": "Invalid or missing session ID"},
    ],
)
def test_a_server_that_forgot_the_session_is_connected_anew_and_the_call_is_sent_again(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, refusal: dict[str, Any]
):
    """H01, H03: what the refused call asked for has not been done; the lists are those of the new life."""
    peer = http_peer().start(sessions="S1")
    manager = manage(peer.spec, default_link=link)
    manager.connect("srv")
    client = manager.get_client("srv")
    assert client is not None
    assert client.call_tool("echo", {"n": 1}).text == "{'n': 1}"
    peer.restart(sessions="S2", tools=MORE_TOOLS, **refusal)

    result = client.call_tool("echo", {"n": 2})

    assert (result.text, result.replayed) == ("{'n': 2}", False)
    assert manager.status("srv").connects == 2
    assert [tool.name for tool in client.tools] == ["echo", "added"]
    assert [item.headers.get("mcp-session-id") for item in peer.server.received("tools/call")] == ["S1", "S2"]
    assert "mcp-session-id" not in peer.server.received("initialize")[0].headers


def test_a_server_that_always_forgets_is_not_asked_for_ever(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str
):
    """H01: one new session for a call, no more, and then the usual back-off."""
    peer = http_peer().start("session_lost")
    manager = manage(peer.spec, default_link=link)

    for _ in range(3):
        with pytest.raises(ServerConnectionError, match="ended the session"):
            manager.call_tool("srv__echo", {})

    assert manager.status("srv").state is ConnectionState.BACKING_OFF
    assert len(peer.received("tools/call")) <= 3


@ERAS
def test_a_restart_while_nothing_was_called_goes_unnoticed(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, modern: bool
):
    """H01, H11: the kept connections are dead; nobody's call pays for that."""
    peer = http_peer().start(**life(modern, "S1"))
    manager = manage(peer.spec, default_link=link)
    manager.call_tool("srv__echo", {})
    for number in range(2, 5):
        peer.restart(**life(modern, f"S{number}"))
        assert manager.call_tool("srv__echo", {"n": number}).text == f"{{'n': {number}}}"

    assert len(peer.received("tools/call")) == (4 if modern else 7)


@ERAS
@pytest.mark.parametrize("scenario", ["hang", "sse_silent"])
def test_a_restart_during_a_call_leaves_its_outcome_unknown_and_the_next_call_works(
    manage: MakeManager, http_peer: MakeHttpPeer, threads, link: str, modern: bool, scenario: str
):
    """H01, H11: a call that may have been carried out is never sent again."""
    peer = http_peer().start(scenario, **life(modern, "S1"))
    manager = manage(peer.spec, default_link=link)
    manager.connect("srv")
    calling = threads.submit(manager.call_tool, "srv__echo", {"n": 1})
    peer.wait_for("tools/call")
    peer.restart(tools=MORE_TOOLS, **life(modern, "S2"))

    with pytest.raises(TransportError) as caught:
        calling.result(20)

    assert caught.value.details() == {"outcome": "unknown"}
    assert manager.call_tool("srv__echo", {"n": 2}).text == "{'n': 2}"
    arguments = [item.rpc["params"]["arguments"] for item in peer.received("tools/call")]
    assert arguments.count({"n": 1}) == 1
    assert manager.status("srv").is_ready


@ERAS
def test_while_the_server_is_away_calls_say_so_at_once_and_when_to_come_again(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, modern: bool
):
    """H28: one who calls is told the host and never gets a traceback of the network."""
    peer = http_peer().start(**life(modern, "S1"))
    manager = manage(peer.spec, default_link=link)
    manager.call_tool("srv__echo", {})
    peer.stop()

    with pytest.raises(ServerUnavailableError, match=r"http://127\.0\.0\.1:\d+ refused the connection"):
        manager.call_tool("srv__echo", {})
    with pytest.raises(ServerUnavailableError, match="next try in") as caught:
        manager.call_tool("srv__echo", {})

    assert caught.value.retry_after is not None
    assert manager.status("srv").state is ConnectionState.BACKING_OFF
    peer.start(**life(modern, "S2"))
    assert manager.connect("srv").is_ready
    assert manager.call_tool("srv__echo", {"n": 3}).text == "{'n': 3}"


@pytest.mark.parametrize(
    "refusal", ["Bad Request: Missing session ID", "Bad Request: Unsupported protocol version: 2026-07-28"]
)
def test_a_server_that_comes_back_in_an_older_era_is_met_there(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, refusal: str
):
    """H01: it refuses the call for want of a handshake, so that it was not carried out."""
    peer = http_peer().start(modern=True)
    manager = manage(peer.spec, default_link=link)
    manager.call_tool("srv__echo", {})
    assert manager.status("srv").protocol_version == "2026-07-28"
    peer.restart(sessions="S1", forgets=400, message=refusal)

    assert manager.call_tool("srv__echo", {"n": 3}).text == "{'n': 3}"

    assert manager.status("srv").protocol_version == "2025-11-25"


def test_a_restart_is_noticed_on_the_servers_own_stream(
    manage: MakeManager, http_peer: MakeHttpPeer, recorder: Recorder, link: str
):
    """H01: without any call the state says what happened, and the next call connects."""
    peer = http_peer().start("get_stream", sessions="S1")
    manager = manage(peer.spec, default_link=link, observers=[recorder])
    manager.connect("srv")
    peer.do(peer.server.opened(1))
    peer.restart("get_stream", sessions="S2")

    lost = recorder.wait_for_state("srv", ConnectionState.LOST)

    assert "ended the session (HTTP 404)" in lost.reason
    assert manager.call_tool("srv__echo", {"n": 2}).text == "{'n': 2}"


@pytest.mark.parametrize("how", ["in good order", "killed"])
def test_a_restart_of_a_modern_server_leads_to_new_lists_and_a_new_subscription(
    manage: MakeManager,
    http_peer: MakeHttpPeer,
    recorder: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    link: str,
    how: str,
):
    """H01: the era knows no sessions; the end of ``subscriptions/listen`` is the sign, whoever ended it."""
    monkeypatch.setattr("mcp_client_app.client.backoff.FIRST", 0.0)
    monkeypatch.setattr("mcp_client_app.client.backoff.BREAKER", 10**9)
    peer = http_peer().start(modern=True)
    manager = manage(peer.spec, default_link=link, observers=[recorder])
    manager.connect("srv")
    peer.do(peer.server.opened(1))
    if how == "killed":
        peer.restart(modern=True, tools=MORE_TOOLS)
    else:
        peer.server.options["tools"] = MORE_TOOLS
        peer.hang_up()

    recorder.wait_for(lambda: any(status.tools == 2 for status in recorder.catalogues))

    peer.do(peer.server.opened(1 if how == "killed" else 2))
    assert manager.status("srv").connects == 1


LOOKS: dict[str, Callable[[MCPClientManager], Any]] = {
    "tools": lambda manager: [tool.name for tool in manager.list_tools("srv", refresh=True)],
    "all tools": lambda manager: [tool.name for tool in manager.list_tools(refresh=True)],
    "a new tool": lambda manager: manager.call_tool("srv__added", {}).tool,
    "resource": lambda manager: manager.read_resource("srv", "a://b").uri,
    "prompt": lambda manager: manager.get_prompt("srv", "x").prompt,
    "completion": lambda manager: (
        manager.complete("srv", {"type": "ref/prompt", "name": "p"}, "a", "b").values
    ),
    "ping": lambda manager: manager.ping("srv"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_whatever_finds_the_session_gone_is_done_on_a_new_one(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, look: str
):
    """H01: lists, resources, prompts, completions and pings like calls."""
    peer = http_peer().start(sessions="S1")
    manager = manage(peer.spec, default_link=link)
    manager.call_tool("srv__echo", {})
    peer.restart(sessions="S2", tools=MORE_TOOLS)
    seen = LOOKS[look](manager)

    expected: dict[str, Any] = {"tools": ["echo", "added"], "all tools": ["echo", "added"]}
    expected |= {"a new tool": "added", "resource": "a://b", "prompt": "x", "completion": (), "ping": None}
    assert seen == expected[look]
    assert manager.status("srv").connects == 2


def test_all_calls_that_find_the_session_gone_together_are_sent_again(
    manage: MakeManager, http_peer: MakeHttpPeer, threads, link: str
):
    """H01, H11: the first to find out does not fail the others, whose answers say the same."""
    peer = http_peer().start("hang", sessions="S1")
    manager = manage(peer.spec, default_link=link)
    manager.connect("srv")
    peer.restart("forgets_together", sessions="S2", together=8)
    calls = [threads.submit(manager.call_tool, "srv__echo", {"n": n}) for n in range(8)]

    assert [call.result(20).text for call in calls] == [f"{{'n': {n}}}" for n in range(8)]

    assert manager.status("srv").connects == 2


def test_a_call_that_is_under_way_when_the_session_ends_may_still_be_answered(
    manage: MakeManager, http_peer: MakeHttpPeer, threads, link: str
):
    """H01, H11: what the server has accepted is its own business."""
    peer = http_peer().start("first_hangs", sessions="S1")
    manager = manage(peer.spec, default_link=link)
    manager.connect("srv")
    first = threads.submit(manager.call_tool, "srv__echo", {"n": 1})
    peer.wait_for("tools/call")
    peer.server.options["sessions"] = "S2"
    second = threads.submit(manager.call_tool, "srv__echo", {"n": 2})
    peer.wait_for("tools/call", 2)
    peer.go_on()

    assert first.result(20).text == "{'n': 1}"
    assert second.result(20).text == "{'n': 2}"
