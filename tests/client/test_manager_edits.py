"""What happens to connections when their configuration is edited."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from mcp_client_app.client.sources import Snapshot, StaticSource
from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.exceptions import ConnectionLostError, UnknownServerError
from tests import leftovers
from tests.client.conftest import MakeManager, MakePeer
from tests.client.peers import PATIENCE, Recorder


def test_an_edit_lets_the_running_call_end_and_then_starts_the_new_process(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    """D17."""
    server = peer("srv")
    manager = manage(server)
    source = manager.source
    assert isinstance(source, StaticSource)
    manager.connect("srv")
    old = threads.submit(manager.call_tool, "srv__wait", {"path": str(server.directory / "go")})
    server.wait_for("tools/call")
    source.replace([replace(server.spec, revision=2, env={"EDITED": "yes"})])
    new = threads.submit(manager.call_tool, "srv__env")
    while manager.status("srv").revision != 2:
        manager.listing("tools", wait=0)
    assert len(server.pids) == 1  # the new one waits for the end of the old one
    server.let_go()
    assert old.result(PATIENCE).text == "there"
    assert '"EDITED": "yes"' in new.result(PATIENCE).text
    assert len(server.pids) == 2
    assert leftovers.survivors({server.pids[0]}) == []


def test_a_call_that_does_not_end_is_cut_after_the_shutdown_time(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    """D17."""
    server = peer("srv", shutdown_timeout=0.3)
    manager = manage(server)
    source = manager.source
    assert isinstance(source, StaticSource)
    manager.connect("srv")
    old = threads.submit(manager.call_tool, "srv__hang", timeout=0)
    server.wait_for("tools/call")
    source.replace([replace(server.spec, env={"EDITED": "yes"})])
    assert '"EDITED": "yes"' in manager.call_tool("srv__env").text
    with pytest.raises(ConnectionLostError):
        old.result(PATIENCE)


def test_a_call_that_waits_for_its_turn_goes_to_the_new_process(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    server = peer("srv", max_concurrency=1, shutdown_timeout=0.3)
    manager = manage(server)
    source = manager.source
    assert isinstance(source, StaticSource)
    manager.connect("srv")
    hanging = threads.submit(manager.call_tool, "srv__hang", timeout=0)
    server.wait_for("tools/call")
    queued = threads.submit(manager.call_tool, "srv__env")
    while manager.status("srv").calls_in_flight < 2:
        manager.list_tools("srv")
    source.replace([replace(server.spec, env={"EDITED": "yes"})])
    manager.connect("srv")
    assert hanging.exception(PATIENCE) is not None
    assert '"EDITED": "yes"' in queued.result(PATIENCE).text


@pytest.mark.parametrize(
    "change", [{"call_timeout": 9}, {"idle_timeout": 99}, {"max_result_size": 5}, {"trust_annotations": True}]
)
def test_changed_limits_keep_the_process(manage: MakeManager, peer: MakePeer, change: dict[str, Any]):
    server = peer("srv")
    manager = manage(server)
    source = manager.source
    assert isinstance(source, StaticSource)
    before = manager.connect("srv").pid
    source.replace([replace(server.spec, revision=2, **change)])
    result = manager.call_tool("srv__echo", {"text": "0123456789"})
    assert result.truncated is ("max_result_size" in change)
    status = manager.status("srv")
    assert (status.pid, status.revision) == (before, 2)


def test_a_removed_server_ends(manage: MakeManager, peer: MakePeer, recorder: Recorder):
    server, other = peer("srv"), peer("other")
    manager = manage(server, other, observers=[recorder])
    manager.connect_all()
    manager.source.replace([other.spec])  # type: ignore[attr-defined]
    assert {tool.server for tool in manager.list_tools()} == {"other"}
    assert leftovers.survivors(set(server.pids)) == []
    with pytest.raises(UnknownServerError):
        manager.status("srv")


def test_a_disabled_server_ends_and_cannot_be_used(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)
    manager.connect("srv")
    source = manager.source
    assert isinstance(source, StaticSource)
    entry = source.current().entry("srv")
    source._snapshot = Snapshot({"srv": replace(entry, enabled=False)})
    with pytest.raises(UnknownServerError, match="is disabled"):
        manager.call_tool("srv__echo", {"text": "hi"})
    assert leftovers.survivors(set(server.pids)) == []
    assert manager.list_tools() == []
    assert manager.connect_all() == {"srv": manager.status("srv")}
    assert manager.status("srv").enabled is False


def test_an_older_snapshot_never_replaces_a_newer_one(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)
    source = manager.source
    assert isinstance(source, StaticSource)
    old = source.current()
    source.replace([replace(server.spec, env={"EDITED": "yes"})])
    assert '"EDITED": "yes"' in manager.call_tool("srv__env").text
    source._snapshot = old
    assert '"EDITED": "yes"' in manager.call_tool("srv__env").text
    assert len(server.pids) == 1


def test_an_edit_clears_a_failure(manage: MakeManager, peer: MakePeer):
    server = peer("srv", "exit_at_start=3")
    manager = manage(server)
    with pytest.raises(Exception, match="exited with code 3"):
        manager.connect("srv")
    good = replace(server.spec, args=tuple(a for a in server.spec.args if "exit_at_start" not in a))
    manager.source.replace([good])  # type: ignore[attr-defined]
    assert manager.call_tool("srv__echo", {"text": "mended"}).text == "mended"
    assert manager.status("srv").state is ConnectionState.READY
