"""Twenty servers of which six are in trouble: the others never wait for them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.datatypes import ConnectionState, ServerSpec, ServerStatus, Transport
from tests.client.conftest import MakeManager, MakePeer
from tests.client.peers import PATIENCE, SERVERS, Peer, Recorder, stdio_spec

GOOD = [f"good-{number}" for number in range(14)]
HUNG = ["hung-0", "hung-1", "hung-2"]
CRASHED = ["crashed-0", "crashed-1"]
UNREACHABLE = "unreachable"


@pytest.fixture
def refusing_url() -> Iterator[str]:
    """An address where nobody listens, and nobody else will."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"


@pytest.fixture
def hung(peer: MakePeer) -> list[Peer]:
    return [peer(name, "mute", connect_timeout=2.5) for name in HUNG]


@pytest.fixture
def twenty(
    manage: MakeManager, peer: MakePeer, hung: list[Peer], refusing_url: str, recorder: Recorder
) -> MCPClientManager:
    good = [stdio_spec(name, SERVERS / "fast_stdio.py", bare=False, mode="legacy") for name in GOOD]
    crashed = [peer(name, "exit_at_start=3") for name in CRASHED]
    lost = ServerSpec(name=UNREACHABLE, transport=Transport.STREAMABLE_HTTP, url=refusing_url)
    # In the worst order: those in trouble come first.
    return manage(*hung, *crashed, lost, *good, observers=[recorder])


def test_fourteen_are_ready_and_six_explained(twenty: MCPClientManager):
    settled: list[tuple[str, ServerStatus]] = []
    statuses = twenty.connect_all(on_progress=lambda name, status: settled.append((name, status)))
    assert sorted(name for name, status in statuses.items() if status.is_ready) == sorted(GOOD)
    troubled = {name: status for name, status in statuses.items() if not status.is_ready}
    assert {status.state for status in troubled.values()} == {ConnectionState.BACKING_OFF}
    assert {name: status.code for name, status in troubled.items()} == {
        **dict.fromkeys(HUNG, "timeout"),
        **dict.fromkeys(CRASHED, "server_crashed"),
        UNREACHABLE: "server_unavailable",
    }
    assert all("was not ready within 2.5 s" in troubled[name].reason for name in HUNG)
    assert all("API_KEY is not set" in troubled[name].reason for name in CRASHED)
    assert "127.0.0.1" in troubled[UNREACHABLE].reason
    # Each was told when it was decided, the hung ones last of all.
    assert sorted(name for name, _ in settled) == sorted(statuses)
    assert {name for name, _ in settled[-3:]} == set(HUNG)
    assert all(status.is_ready is (name in GOOD) for name, status in settled)


def test_the_ready_ones_are_listed_and_called_while_the_hung_ones_are_still_waited_for(
    twenty: MCPClientManager, hung: list[Peer], recorder: Recorder, threads: ThreadPoolExecutor
):
    connecting = threads.submit(twenty.connect_all)
    for name in GOOD:
        recorder.wait_for_state(name, ConnectionState.READY)
    calls = [threads.submit(twenty.call_tool, f"{name}__echo", {"text": name}) for name in GOOD]
    texts = [call.result(PATIENCE).text for call in calls]
    listing = twenty.listing("tools", wait=0)
    states = {name: twenty.status(name).state for name in HUNG}
    still_running = connecting.running()
    assert texts == GOOD
    assert {tool.server for tool in listing.items} == set(GOOD)
    assert set(listing.errors) == {*HUNG, *CRASHED, UNREACHABLE}
    # All of the above happened before a single one of the hung servers was given up.
    assert states == dict.fromkeys(HUNG, ConnectionState.CONNECTING)
    assert still_running
    assert len(connecting.result(PATIENCE)) == 20


def test_hung_servers_hold_no_place_in_the_queue_of_starts(
    manage: MakeManager, peer: MakePeer, recorder: Recorder, threads: ThreadPoolExecutor
):
    # One start at a time: a hung handshake must give its place back at once.
    silent = [peer(f"silent-{number}", "mute") for number in range(3)]
    manager = manage(*silent, peer("good"), observers=[recorder], max_starts=1)
    attempts = [threads.submit(manager.connect, each.name) for each in silent]
    for each in silent:
        each.wait_for("server/discover")
    assert manager.connect("good").is_ready
    assert {manager.status(each.name).state for each in silent} == {ConnectionState.CONNECTING}
    manager.close()
    assert all(attempt.exception(PATIENCE) is not None for attempt in attempts)


def test_one_dead_server_among_ten_hides_nothing(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("dead", "exit_at_start=1"), *(peer(f"good-{n}", mode="legacy") for n in range(9)))
    assert {tool.server for tool in manager.list_tools()} == {f"good-{n}" for n in range(9)}
    assert sorted(manager.connected_servers()) == [f"good-{n}" for n in range(9)]


def test_progress_of_connecting_is_told_in_the_callers_thread(manage: MakeManager, peer: MakePeer):
    where: set[threading.Thread] = set()
    manage(peer("srv")).connect_all(on_progress=lambda name, status: where.add(threading.current_thread()))
    assert where == {threading.current_thread()}


def test_only_the_named_ones_are_connected(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("one"), peer("two"))
    assert list(manager.connect_all(["two"])) == ["two"]
    assert manager.connected_servers() == ["two"]
