"""Servers that run in this very process, on a loop of their own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer

from mcp_client_app.client import in_process
from mcp_client_app.datatypes import SHARED, ConnectionState, ProtocolMode, ServerSpec, Transport
from mcp_client_app.exceptions import (
    ConfigurationError,
    InvalidArgumentsError,
    RequestTimeoutError,
    ServerCrashedError,
)
from tests import leftovers
from tests.client.conftest import MakeManager, MakePeer
from tests.client.peers import MODERN, PATIENCE, Recorder
from tests.servers.sdk_server import make_server

PEER = "tests.servers.sdk_server.make_server"


def a_server(path: str, name: str = "inside", **fields: object) -> ServerSpec:
    return ServerSpec(name=name, transport=Transport.IN_PROCESS, in_process=path, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [PEER, "tests.servers.sdk_server:make_server"])
@pytest.mark.parametrize("mode", [ProtocolMode.LEGACY, ProtocolMode.MODERN, ProtocolMode.AUTO])
def test_a_server_in_process_works_in_both_eras(manage: MakeManager, path: str, mode: ProtocolMode):
    manager = manage(a_server(path, mode=mode))
    status = manager.connect("inside")
    assert status.protocol_version == ("2025-11-25" if mode is ProtocolMode.LEGACY else MODERN)
    assert status.target == path
    assert manager.call_tool("inside__add", {"a": 1, "b": 2}).structured == {"result": 3}
    assert manager.read_resource("inside", "peer://notes").text == "one\ntwo\n"
    seen: list[float] = []
    manager.call_tool("inside__slow", {"steps": 3}, on_progress=lambda p: seen.append(p.progress))
    assert seen == [1, 2, 3]


def test_it_runs_on_a_loop_thread_of_its_own(manage: MakeManager):
    names: list[str] = []
    server: MCPServer[None] = MCPServer("where")

    @server.tool()
    def where() -> str:
        """Say which thread this is."""
        names.append(threading.current_thread().name)
        return "here"

    in_process.registered_servers["where"] = server
    try:
        assert manage(a_server("where")).call_tool("inside__where").text == "here"
    finally:
        del in_process.registered_servers["where"]
    assert "mcp-client-loop" not in names


@pytest.mark.parametrize("mode", [ProtocolMode.LEGACY, ProtocolMode.MODERN])
def test_what_it_is_given_is_json_and_a_copy(manage: MakeManager, mode: ProtocolMode):
    server: MCPServer[None] = MCPServer("taking")

    @server.tool()
    def take(items: list[Any]) -> str:
        """Take what is in the list."""
        taken = repr(items)
        items.clear()
        return taken

    in_process.registered_servers["taking"] = server
    try:
        manager = manage(a_server("taking", mode=mode))
        items = ["a", (1, None)]
        assert manager.call_tool("inside__take", {"items": items}).text == "['a', [1, None]]"
        assert items == ["a", (1, None)]
        with pytest.raises(InvalidArgumentsError, match="cannot be written as JSON"):
            manager.call_tool("inside__take", {"items": [object()]})
    finally:
        del in_process.registered_servers["taking"]


@pytest.fixture
def blocking() -> Iterator[threading.Event]:
    """Register a server whose tool blocks its thread until the event is set."""
    gate, entered = threading.Event(), threading.Event()
    server: MCPServer[None] = MCPServer("blocking")

    @server.tool()
    async def block() -> str:
        """Block the loop, as a tool must not."""
        entered.set()
        gate.wait(PATIENCE)
        return "done"

    in_process.registered_servers["blocking"] = server
    yield gate
    gate.set()
    del in_process.registered_servers["blocking"]


def test_a_tool_that_blocks_its_loop_delays_no_other_server(
    manage: MakeManager, peer: MakePeer, blocking: threading.Event, threads: ThreadPoolExecutor
):
    manager = manage(a_server("blocking"), peer("other"))
    manager.connect_all()
    call = threads.submit(manager.call_tool, "inside__block")
    assert manager.call_tool("other__echo", {"text": "not delayed"}).text == "not delayed"
    assert not call.done()
    with pytest.raises(RequestTimeoutError):
        manager.call_tool("inside__block", timeout=0.1)
    blocking.set()
    assert call.result(PATIENCE).text == "done"


def test_a_time_out_cancels_the_tool(manage: MakeManager):
    manager = manage(a_server(PEER, mode="legacy"))
    manager.connect("inside")
    with pytest.raises(RequestTimeoutError):
        manager.call_tool("inside__hang", {"label": "this one"}, timeout=0.5)
    assert manager.call_tool("inside__cancellations").structured == {"result": ["this one"]}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no.such.module.server", "could not be loaded: ModuleNotFoundError"),
        ("tests.servers.sdk_server.nothing", "could not be loaded: AttributeError"),
        ("nodots", "could not be loaded: ValueError"),
        ("tests.servers.sdk_server.COLOURS", "is a list, not an MCP server"),
    ],
)
def test_a_path_that_leads_nowhere_is_a_configuration_error(manage: MakeManager, path: str, message: str):
    manager = manage(a_server(path))
    with pytest.raises(ConfigurationError, match=message):
        manager.connect("inside")
    assert manager.status("inside").state is ConnectionState.FAILED


def test_a_factory_that_fails_is_a_crash_with_its_reason(
    manage: MakeManager, caplog: pytest.LogCaptureFixture
):
    def fail() -> None:
        raise ZeroDivisionError

    in_process.registered_servers["failing"] = fail
    try:
        with pytest.raises(ServerCrashedError, match="failed: ZeroDivisionError"):
            manage(a_server("failing")).connect("inside")
    finally:
        del in_process.registered_servers["failing"]
    assert "ZeroDivisionError" in caplog.text


def test_list_changes_are_followed(manage: MakeManager, recorder: Recorder):
    manager = manage(a_server(PEER), observers=[recorder])
    before = manager.connect("inside").tools
    manager.call_tool("inside__grow")
    recorder.wait_for(lambda: recorder.catalogues[-1].tools == before + 1)
    assert manager.call_tool("inside__added").text == "here"


def test_lists_announced_with_an_answer_are_read_before_they_are_shown_to_who_may_wait(manage: MakeManager):
    manager = manage(a_server(PEER, mode=ProtocolMode.LEGACY))
    manager.connect("inside")
    manager.call_tool("inside__grow")
    known = manager.listings("known_tools", [("inside", SHARED)], wait=5)
    assert "inside__added" in [tool.public_name for tool in known.items]


def test_closing_ends_its_thread(manage: MakeManager):
    manager = manage(a_server(PEER))
    manager.connect("inside")
    manager.disconnect("inside")
    manager.connect("inside")
    assert manager.call_tool("inside__echo", {"text": "again"}).text == "again"
    manager.close()
    assert leftovers.our_threads() == []


def test_an_object_can_be_registered(manage: MakeManager):
    in_process.registered_servers["object"] = make_server()
    try:
        assert manage(a_server("object")).call_tool("inside__echo", {"text": "hi"}).text == "hi"
    finally:
        del in_process.registered_servers["object"]
