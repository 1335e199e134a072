"""Connecting, stopping, idling, closing: one process for all who ask, and none that stays."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.client.sources import StaticSource
from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.exceptions import (
    AsyncContextError,
    ConfigurationError,
    DuplicateServerError,
    ManagerClosedError,
    MCPClientError,
    NotConnectedError,
    ServerConnectionError,
    ServerCrashedError,
    ServerUnavailableError,
    UnknownServerError,
)
from tests import leftovers
from tests.client.conftest import MakeManager, MakePeer
from tests.client.peers import PATIENCE, Recorder

# First use ---------------------------------------------------------------------------


def test_nothing_is_started_before_the_first_use(peer: MakePeer):
    """D09."""
    server = peer("srv")
    before = set(threading.enumerate())
    manager = MCPClientManager(StaticSource([server.spec]))
    assert manager.status("srv").state is ConnectionState.IDLE
    assert manager.list_servers() == ["srv"]
    assert manager.connected_servers() == []
    assert manager.get_client("srv") is None
    assert manager.server_logs("srv") == ()
    assert manager.stderr("srv") == ()
    assert set(threading.enumerate()) == before
    assert server.pids == []
    manager.close()


def test_twenty_threads_racing_the_first_use_get_one_process(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    server = peer("srv")
    manager = manage(server)
    barrier = threading.Barrier(20)

    def call() -> str:
        barrier.wait(PATIENCE)
        return manager.call_tool("srv__pid").text

    pids = [future.result(PATIENCE) for future in [threads.submit(call) for _ in range(20)]]
    assert set(pids) == {str(server.pids[0])}
    assert len(server.pids) == 1


def test_all_who_wait_get_the_error_of_a_failed_attempt_each_a_copy_of_its_own(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    server = peer("srv", "exit_at_start=3", until=True)
    manager = manage(server)
    barrier = threading.Barrier(10)

    def connect() -> None:
        barrier.wait(PATIENCE)
        manager.connect("srv")

    attempts = [threads.submit(connect) for _ in range(10)]
    errors = [attempt.exception(PATIENCE) for attempt in attempts]
    assert {type(error) for error in errors} == {ServerCrashedError}
    assert len({id(error) for error in errors}) == 10
    (server.directory / "until").touch()
    manager.connect("srv")
    assert manager.call_tool("srv__echo", {"text": "second try"}).text == "second try"


def test_after_a_failed_attempt_the_next_use_waits_and_an_explicit_connect_does_not(
    manage: MakeManager, peer: MakePeer
):
    server = peer("srv", "exit_at_start=3", until=True, mode="legacy")
    manager = manage(server)
    with pytest.raises(ServerCrashedError):
        manager.call_tool("srv__echo", {"text": "hi"})
    with pytest.raises(ServerUnavailableError, match="exited with code 3") as caught:
        manager.call_tool("srv__echo", {"text": "hi"})
    assert caught.value.retry_after is not None
    assert 0 < caught.value.retry_after <= 1.1
    assert len(server.pids) == 1
    status = manager.status("srv")
    assert (status.state, status.failures) == (ConnectionState.BACKING_OFF, 1)
    with pytest.raises(ServerCrashedError):
        manager.connect("srv")
    assert len(server.pids) == 2
    assert manager.status("srv").failures == 1  # an explicit connect starts counting anew
    (server.directory / "until").touch()
    assert manager.connect("srv").failures == 0


def test_without_auto_reconnect_a_loss_waits_for_an_explicit_connect(manage: MakeManager, peer: MakePeer):
    server = peer("srv", "die_on_call=7", auto_reconnect=False, once=True)
    manager = manage(server)
    with pytest.raises(ServerCrashedError):
        manager.call_tool("srv__echo", {"text": "hi"})
    for _ in range(2):
        with pytest.raises(ServerCrashedError):
            manager.call_tool("srv__echo", {"text": "hi"})
    assert manager.status("srv").state is ConnectionState.FAILED
    assert len(server.pids) == 1
    manager.connect("srv")
    assert manager.call_tool("srv__echo", {"text": "back"}).text == "back"


# Stopping ----------------------------------------------------------------------------


def test_disconnect_holds_until_connect(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)
    manager.connect("srv")
    manager.disconnect("srv")
    assert leftovers.survivors(set(server.pids)) == []
    assert manager.connected_servers() == []
    with pytest.raises(NotConnectedError, match="has been disconnected; connect it first"):
        manager.call_tool("srv__echo", {"text": "hi"})
    assert "srv" in manager.listing("tools").errors
    assert len(server.pids) == 1
    assert manager.status("srv").state is ConnectionState.STOPPED
    manager.disconnect("srv")  # again does no harm
    manager.connect("srv")
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"
    assert manager.connected_servers() == ["srv"]


def test_disconnect_before_the_first_use_holds_too(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)
    manager.disconnect("srv")
    with pytest.raises(NotConnectedError):
        manager.call_tool("srv__echo", {"text": "hi"})
    assert server.pids == []


def test_disconnect_ends_an_attempt_and_whoever_waits_for_it(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    server = peer("srv", "mute")
    manager = manage(server)
    attempt = threads.submit(manager.connect, "srv")
    server.wait_for("server/discover")
    manager.disconnect("srv")
    with pytest.raises(NotConnectedError):
        attempt.result(PATIENCE)
    assert leftovers.survivors(set(server.pids)) == []
    assert manager.status("srv").state is ConnectionState.STOPPED


def test_disconnect_ends_the_calls_in_flight(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    server = peer("srv")
    manager = manage(server)
    manager.connect("srv")
    call = threads.submit(manager.call_tool, "srv__hang")
    server.wait_for("tools/call")
    manager.disconnect("srv")
    with pytest.raises(ServerConnectionError):
        call.result(PATIENCE)


def test_disconnect_all_stops_what_is_connected(manage: MakeManager, peer: MakePeer):
    first, second, unused = peer("first"), peer("second"), peer("unused")
    manager = manage(first, second, unused)
    manager.connect("first")
    manager.connect("second")
    manager.disconnect_all()
    assert manager.connected_servers() == []
    assert leftovers.survivors({*first.pids, *second.pids}) == []
    assert manager.status("unused").state is ConnectionState.IDLE


def test_a_stop_flag_of_the_row_is_followed_both_ways(
    manage: MakeManager, peer: MakePeer, recorder: Recorder
):
    server = peer("srv")
    manager = manage(server, observers=[recorder])
    source = manager.source
    assert isinstance(source, StaticSource)
    manager.connect("srv")
    source.replace([server.spec], stopped=["srv"])
    with pytest.raises(MCPClientError):
        manager.call_tool("srv__hang", timeout=5)
    recorder.wait_for_state("srv", ConnectionState.STOPPED)
    assert manager.status("srv").reason == "disconnected by an operator"
    with pytest.raises(NotConnectedError):
        manager.call_tool("srv__echo", {"text": "hi"})
    source.replace([server.spec])
    assert manager.call_tool("srv__echo", {"text": "back"}).text == "back"


def test_a_row_that_is_stopped_from_the_start_is_not_connected(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)
    manager.source.replace([server.spec], stopped=["srv"])  # type: ignore[attr-defined]
    assert manager.status("srv").state is ConnectionState.STOPPED
    with pytest.raises(NotConnectedError):
        manager.call_tool("srv__echo", {"text": "hi"})
    assert server.pids == []


# Idling ------------------------------------------------------------------------------


def test_an_unused_server_is_stopped_and_starts_again_unnoticed(
    manage: MakeManager, peer: MakePeer, recorder: Recorder
):
    server = peer("srv", idle_timeout=0.2)
    manager = manage(server, observers=[recorder])
    assert manager.call_tool("srv__echo", {"text": "one"}).text == "one"
    idle = recorder.wait_for_state("srv", ConnectionState.IDLE)
    assert "without use" in idle.reason
    assert leftovers.survivors(set(server.pids)) == []
    assert len(manager.list_tools("srv")) == 13  # as last known; starts nothing
    assert len(server.pids) == 1
    assert manager.call_tool("srv__echo", {"text": "two"}).text == "two"
    assert len(server.pids) == 2


def test_a_call_in_flight_keeps_an_otherwise_idle_server(
    manage: MakeManager, peer: MakePeer, recorder: Recorder
):
    server = peer("srv", idle_timeout=0.1)
    manager = manage(server, observers=[recorder])
    assert manager.call_tool("srv__sleep", {"seconds": 0.6}).text == "slept 0.6"
    recorder.wait_for_state("srv", ConnectionState.READY)
    assert recorder.path("srv")[:2] == ["connecting", "ready"]
    assert len(server.pids) == 1


# Closing -----------------------------------------------------------------------------


def test_close_ends_processes_and_threads_and_refuses_what_comes_later(peer: MakePeer):
    """D11."""
    server = peer("srv")
    manager = MCPClientManager(StaticSource([server.spec]))
    manager.connect("srv")
    manager.close()
    manager.close()
    assert leftovers.survivors(set(server.pids)) == []
    assert leftovers.our_threads() == []
    with pytest.raises(ManagerClosedError):
        manager.call_tool("srv__echo", {"text": "hi"})
    assert manager.status("srv").state is ConnectionState.IDLE


def test_close_from_several_threads_during_calls_and_attempts(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    busy, silent = peer("busy"), peer("silent", "mute")
    manager = manage(busy, silent)
    manager.connect("busy")
    work: list[Future[Any]] = [
        threads.submit(manager.call_tool, "busy__hang", timeout=0),
        threads.submit(manager.connect, "silent"),
        threads.submit(manager.connect_all),
    ]
    busy.wait_for("tools/call")
    silent.wait_for("server/discover")
    closing = [threads.submit(manager.close) for _ in range(4)]
    assert [close.result(PATIENCE) for close in closing] == [None] * 4
    for each in work[:2]:
        assert isinstance(each.exception(PATIENCE), MCPClientError)
    work[2].exception(PATIENCE)
    assert leftovers.survivors({*busy.pids, *silent.pids}) == []


def test_a_server_that_ignores_all_requests_to_end_is_killed(manage: MakeManager, peer: MakePeer):
    stubborn = peer("srv", "ignore_eof_and_term", shutdown_timeout=0.5)
    manager = manage(stubborn)
    manager.connect("srv")
    manager.close()
    assert leftovers.survivors(set(stubborn.pids)) == []


def test_what_a_server_has_started_in_its_group_ends_with_it(
    manage: MakeManager, peer: MakePeer, tmp_path: Path
):
    child_file = tmp_path / "child"
    server = peer("srv", f"grandchild={child_file}")
    manager = manage(server)
    manager.connect("srv")
    grandchild = int(child_file.read_text())
    manager.disconnect("srv")
    assert leftovers.survivors({*server.pids, grandchild}) == []


def test_connecting_a_hundred_times_leaves_no_descriptor(manage: MakeManager, peer: MakePeer):
    server = peer("srv", mode="legacy")
    manager = manage(server)
    manager.connect("srv")
    manager.disconnect("srv")
    before = leftovers.descriptors()
    for _ in range(100):
        manager.connect("srv")
        manager.disconnect("srv")
    assert leftovers.new_descriptors(before) == []
    assert len(server.pids) == 101


def test_failing_to_connect_leaves_no_descriptor(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "exit_at_start=1"))
    attempts = []
    for _ in range(11):
        with pytest.raises(ServerCrashedError):
            manager.connect("srv")
        attempts.append(leftovers.descriptors())
    assert attempts[-1] - attempts[0] == {}


def test_managers_come_and_go_without_a_trace(peer: MakePeer):
    """D11."""
    server = peer("srv")
    gc.collect()
    before = leftovers.descriptors()
    for _ in range(5):
        manager = MCPClientManager(StaticSource([server.spec]))
        manager.connect("srv")
        manager.close()
    assert leftovers.new_descriptors(before) == []


# Callers -----------------------------------------------------------------------------


def test_a_sync_verb_on_a_running_loop_names_its_twin(
    manage: MakeManager, peer: MakePeer, monkeypatch: pytest.MonkeyPatch
):
    manager = manage(peer("srv"))

    async def block_the_loop() -> None:
        manager.call_tool("srv__echo", {"text": "hi"})

    with pytest.raises(AsyncContextError, match=r"await acall_tool\(\.\.\.\)"):
        asyncio.run(block_the_loop())
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    asyncio.run(block_the_loop())


def test_coroutines_of_several_loops_share_one_connection(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    """D12."""
    server = peer("srv")
    manager = manage(server)

    async def several(label: str) -> list[str]:
        calls = (manager.acall_tool("srv__echo", {"text": f"{label}{n}"}) for n in range(20))
        return [result.text for result in await asyncio.gather(*calls)]

    loops = [threads.submit(asyncio.run, several(label)) for label in "abcd"]
    assert [loop.result(PATIENCE) for loop in loops] == [[f"{x}{n}" for n in range(20)] for x in "abcd"]
    assert len(server.pids) == 1


def test_a_loop_per_call_is_fine(manage: MakeManager, peer: MakePeer):
    """D03."""
    server = peer("srv")
    manager = manage(server)
    for text in "abc":
        assert asyncio.run(manager.acall_tool("srv__echo", {"text": text})).text == text
    assert len(server.pids) == 1


# Scoped connections ------------------------------------------------------------------


def test_a_scoped_connection_is_its_own_and_ends_with_its_block(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)
    shared = manager.call_tool("srv__pid").text
    with manager.connect_server("srv") as connection:
        own = connection.call_tool("pid").text
        assert own != shared
        assert [tool.name for tool in connection.tools][:2] == ["echo", "add"]
        assert connection.resources == ()
        assert connection.prompts == ()
        assert connection.status.pid == int(own)
        assert repr(connection) == "<ScopedConnection 'srv'>"
    assert leftovers.survivors({int(own)}) == []
    assert manager.call_tool("srv__pid").text == shared


async def test_a_scoped_connection_is_not_used_outside_of_its_block(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    connection = manage(server).connect_server("srv")
    verbs = [
        lambda: connection.acall_tool("echo", {"text": "hi"}),
        lambda: connection.aread_resource("x://y"),
        lambda: connection.aget_prompt("p"),
    ]
    for use in verbs:
        with pytest.raises(NotConnectedError, match="belongs to a 'with' block"):
            await use()
    async with connection:
        assert (await connection.acall_tool("echo", {"text": "hi"})).text == "hi"
    for use in verbs:
        with pytest.raises(NotConnectedError, match="belongs to a 'with' block"):
            await use()
    assert len(server.pids) == 1


def test_a_scoped_connection_that_fails_leaves_nothing(manage: MakeManager, peer: MakePeer):
    dead = peer("srv", "exit_at_start=3")
    manager = manage(dead)
    with pytest.raises(ServerCrashedError), manager.connect_server("srv"):
        pytest.fail("it was not connected")
    assert leftovers.survivors(set(dead.pids)) == []


def test_a_scope_whose_server_is_removed_meanwhile_ends_quietly(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)
    with manager.connect_server("srv") as connection:
        assert connection.call_tool("echo", {"text": "hi"}).text == "hi"
        manager.remove_server("srv")
    assert leftovers.survivors(set(server.pids)) == []


# Servers come and go -----------------------------------------------------------------


def test_servers_can_be_added_and_removed(
    manage: MakeManager, peer: MakePeer, caplog: pytest.LogCaptureFixture
):
    server = peer("srv")
    manager = manage()
    config = {"command": server.spec.command, "args": server.spec.args}
    handle = manager.add_server("srv", config)
    assert handle.call_tool("echo", {"text": "hi"}).text == "hi"
    assert manager.get_client("srv") is not None
    with pytest.raises(DuplicateServerError):
        manager.add_server("srv", config)
    with pytest.raises(ConfigurationError):
        manager.add_server("other", {"nonsense": 1})
    manager.remove_server("srv")
    with pytest.raises(UnknownServerError):
        manager.call_tool("srv__echo", server="srv")
    assert leftovers.survivors(set(server.pids)) == []
    manager.remove_server("srv")
    assert "There is no server 'srv' to remove" in caplog.text


def test_server_names_are_found_in_any_case(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("Files"))
    assert manager.connect("files").name == "Files"
    assert manager.call_tool("FILES__echo", {"text": "hi"}).text == "hi"


def test_options_reach_the_server(manage: MakeManager, peer: MakePeer, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HIDDEN", "secret")
    monkeypatch.setenv("NAMED", "passed on")
    server = peer("srv", env={"OWN": "1"}, inherited_names=("NAMED",), cwd=str(tmp_path))
    manager = manage(server, client_name="tester", client_version="9")
    environment = manager.call_tool("srv__env").text
    assert '"OWN": "1"' in environment
    assert '"NAMED": "passed on"' in environment
    assert '"PATH"' in environment
    assert "HIDDEN" not in environment
    assert manager.call_tool("srv__cwd").text == os.path.realpath(tmp_path)
    info = server.wait_for("initialize")["params"]["clientInfo"]
    assert (info["name"], info["version"]) == ("tester", "9")


def test_only_the_servers_own_environment_is_passed_if_that_is_asked_for(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", env={"OWN": "1"}, inherit_environment=False))
    environment = manager.call_tool("srv__env").text
    assert '"PATH"' not in environment
    assert '"OWN": "1"' in environment


def test_processes_may_be_forbidden(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server, allow_stdio=False)
    with pytest.raises(ConfigurationError, match="MCP_CLIENT_ALLOW_STDIO"):
        manager.connect("srv")
    assert server.pids == []


def test_the_reaper_is_one_process_more_and_can_be_left_out(manage: MakeManager, peer: MakePeer):
    first, second = peer("first"), peer("second")
    before = set(leftovers.child_pids())
    manager = manage(first, second, reaper=False)
    manager.connect_all()
    assert set(leftovers.child_pids()) - before == {*first.pids, *second.pids}
    manager.close()
    manager = manage(first, second)
    manager.connect_all()
    assert len(set(leftovers.child_pids()) - before) == 3
    manager.close()
    assert set(leftovers.child_pids()) - before == set()


class NoDescriptor(io.StringIO):
    """A stream as notebooks, Celery and mod_wsgi put them into ``sys``."""

    def fileno(self) -> int:
        return None  # type: ignore[return-value]


@pytest.mark.parametrize("stream", [io.StringIO, NoDescriptor])
def test_standard_streams_without_descriptors_are_no_obstacle(
    manage: MakeManager, peer: MakePeer, monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO]
):
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, stream())
    assert manage(peer("srv")).call_tool("srv__echo", {"text": "hi"}).text == "hi"


def test_a_coroutine_may_close_the_manager(peer: MakePeer):
    server = peer("srv")
    manager = MCPClientManager(StaticSource([server.spec]))

    async def use_and_close() -> None:
        assert (await manager.acall_tool("srv__echo", {"text": "hi"})).text == "hi"
        manager.close()

    asyncio.run(use_and_close())
    assert leftovers.survivors(set(server.pids)) == []
    assert leftovers.our_threads() == []
