"""Servers of one holder alone: beside the others, and hidden from whoever does not hold them."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.client.private_servers import PrivateServers, private_name, private_principal
from mcp_client_app.client.sources import ServerEntry, Snapshot, StaticSource
from mcp_client_app.datatypes import ConnectionState, ServerSpec
from mcp_client_app.exceptions import UnknownServerError, UnknownToolError
from mcp_client_app.naming import is_server_name
from tests.client.conftest import MakeManager, MakePeer
from tests.client.peers import Recorder


def entry_of(spec: ServerSpec, principal: str) -> ServerEntry:
    spec = replace(spec, name=private_name(spec.name))
    return ServerEntry(name=spec.name, transport=spec.transport, spec=spec, principal=principal)


def test_only_its_principal_reaches_it(manage: MakeManager, peer: MakePeer):
    public, hidden = peer("public"), peer("hidden")
    manager = manage(public)
    holder, other = private_principal(), private_principal()
    entry = entry_of(hidden.spec, holder)
    manager.private.offer([entry])

    found = manager.listings("tools", [("public", "shared"), (entry.name, holder)])
    assert {tool.server for tool in found.items} == {"public", entry.name}
    assert manager.call_tool("echo", {"text": "x"}, server=entry.name, principal=holder).text == "x"
    assert manager.status(entry.name, principal=holder).is_ready

    for principal in ("shared", other):
        with pytest.raises(UnknownServerError):
            manager.call_tool("echo", {"text": "x"}, server=entry.name, principal=principal)
        with pytest.raises(UnknownServerError):
            manager.connect(entry.name, principal=principal)
        with pytest.raises(UnknownServerError):
            manager.status(entry.name, principal=principal)
    assert manager.list_servers() == ["public"]
    assert entry.name not in manager.connected_servers()
    assert [status.name for status in manager.status()] == ["public"]
    assert {tool.server for tool in manager.list_tools()} == {"public"}
    assert set(manager.connect_all()) == {"public"}
    assert manager.call_tool("echo", {"text": "x"}).server == "public"
    with pytest.raises(UnknownToolError):
        manager.call_tool(f"{entry.name}__echo", {"text": "x"})


def test_no_other_server_can_have_its_name():
    assert not is_server_name(private_name("files"))
    assert private_name("files") != private_name("files")


def test_nothing_is_left_of_it_when_it_is_withdrawn(manage: MakeManager, peer: MakePeer, recorder: Recorder):
    server = peer("hidden", "log_messages")
    manager = manage(observers=[recorder])
    holder = private_principal()
    entry = entry_of(server.spec, holder)
    manager.private.offer([entry])
    manager.call_tool("echo", {"text": "x"}, server=entry.name, principal=holder)
    recorder.wait_for(lambda: recorder.logs)
    (pid,) = server.pids

    manager.private.withdraw([entry.name, "unknown"])
    manager.release(entry.name, holder)

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(UnknownServerError):
        manager.call_tool("echo", {"text": "x"}, server=entry.name, principal=holder)
    # Observers may forget it, too: they keep nothing of a scoped connection that is idle.
    recorder.wait_for_state(entry.name, ConnectionState.IDLE)
    assert manager.server_logs(entry.name) == ()
    pool = manager._engine.pool  # type: ignore[union-attr]
    assert (pool._connections, pool._backoffs, pool._retiring, pool.host.eras) == ({}, {}, {}, {})


def test_edits_of_other_servers_leave_it_alone(manage: MakeManager, peer: MakePeer):
    public, hidden = peer("public"), peer("hidden")
    manager = manage(public)
    holder = private_principal()
    entry = entry_of(hidden.spec, holder)
    manager.private.offer([entry])

    def pid() -> str:
        text: str = manager.call_tool("pid", server=entry.name, principal=holder).text
        return text

    before = pid()
    assert isinstance(manager.source, StaticSource)
    manager.source.replace([])
    assert pid() == before
    manager.private.offer([entry])
    assert pid() == before
    assert len(hidden.pids) == 1


def test_an_older_snapshot_never_hides_a_newer_one():
    private = PrivateServers()
    entry = ServerEntry(name="a~1", transport=ServerSpec(name="x", transport="stdio").transport)  # type: ignore[arg-type]
    older, newer = Snapshot(), Snapshot()
    assert private.beside(newer) is newer
    private.offer([entry])

    merged = private.beside(newer)
    assert (merged.entries, merged.private) == (newer.entries, {"a~1": entry})
    assert merged.version > newer.version
    assert private.beside(older) is merged
    assert private.beside(newer) is merged
    private.withdraw(["a~1"])
    assert private.latest().version > merged.version
    assert private.latest().private == {}


def test_before_anything_is_known_nothing_is_retired():
    manager = MCPClientManager(StaticSource())
    manager.private.offer([])
    manager.apply_soon()  # no engine yet
    assert manager.private.latest().entries == {}
    manager.close()
