"""The servers of a toolset: stored ones, its own, and those that are down."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from mcp_client_app import services
from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.exceptions import (
    ConfigurationError,
    DuplicateServerError,
    MCPClientError,
    NotConnectedError,
    PermissionDeniedError,
    ServerConnectionError,
    UnknownServerError,
    UnknownToolError,
)
from mcp_client_app.models import ServerConfig, ToolCall
from mcp_client_app.runtime import close_mcp_manager, get_mcp_manager
from mcp_client_app.services.toolset import Toolset
from mcp_client_app.testing import fake_server
from tests.services.toolsets import code_of, logging_peer
from tests.stored import peer_entry, run_process, stored

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]


def own(name: str = "files", *options: str, **fields: object) -> dict[str, object]:
    """Return a configuration of a raw stdio peer."""
    return {"name": name, **peer_entry(*options), **fields}


def is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


# Servers of its own ----------------------------------------------------------------------


def test_a_configuration_is_a_server_of_the_toolset_alone():
    with Toolset([own()]) as toolset:
        assert "files__echo" in toolset.selection().names
        assert toolset.call_tool("files__echo", {"text": "hello"}).text == "hello"
        pid = toolset.call_tool("pid").text

        assert not ServerConfig.objects.exists()
        assert get_mcp_manager().list_servers() == []
        assert get_mcp_manager().status() == []
        assert services.list_tools().items == ()
        with pytest.raises(UnknownToolError):
            services.call_tool("files__echo", {"text": "x"})
        (internal,) = toolset.servers.own()
        with pytest.raises(UnknownServerError):
            services.call_tool("echo", {"text": "x"}, server=internal)
        with pytest.raises(UnknownServerError):
            services.server_status(internal)
        assert is_running(pid)

    assert not is_running(pid)
    told = ToolCall.objects.earliest("pk")
    assert (told.server, told.server_name, told.transport, told.tool) == (None, internal, "stdio", "echo")


def test_toolsets_may_call_their_servers_alike_and_as_stored_ones():
    stored("files")
    one, two = Toolset([own(env={"WHO": "one"})]), Toolset([own(env={"WHO": "two"})])

    with one, two:
        for toolset, who in ((one, "one"), (two, "two")):
            assert f'"WHO": "{who}"' in toolset.call_tool("files__env").text
        assert '"WHO"' not in services.call_tool("files__env").text


def test_the_audit_takes_no_own_server_for_a_stored_one_of_its_name():
    stored("files")
    with Toolset([own()], blocked_tools=["write"]) as toolset:
        (internal,) = toolset.servers.own()
        for name, arguments in (("files__echo", {"text": "x"}), ("files__echo", {}), ("files__write", {})):
            toolset.answer(name, arguments)
        toolset.answer("files__fail", {"message": "x"})
        toolset.answer("files__nope")

    rows = ToolCall.objects.order_by("pk")
    assert [row.code for row in rows] == [
        "ok",
        "invalid_arguments",
        "tool_blocked",
        "tool_failed",
        "unknown_tool",
    ]
    assert {(row.server, row.server_name) for row in rows} == {(None, internal)}


def test_an_own_server_stands_before_a_stored_one_of_its_name():
    stored("files")
    stored("other")
    with Toolset([own(env={"WHO": "own"})], all_servers=True) as toolset:
        names = toolset.selection().names
        assert len([name for name in names if name.startswith("files__")]) == len(names) / 2
        assert '"WHO": "own"' in toolset.call_tool("files__env").text


def test_what_a_stored_server_offers_beyond_an_own_one_of_its_name_is_not_there(add_mcp_server):
    add_mcp_server("files", fake_server(tools={"extra": lambda: "stored"}))
    with Toolset([own()], all_servers=True) as toolset:
        assert "files__extra" not in toolset.selection().names
        assert code_of(toolset.answer("files__extra")) == "unknown_tool"


def test_a_dead_server_of_its_own_comes_back_with_disconnect_and_connect():
    toolset = Toolset([own("files", "--scenario", "die_on_call=7", auto_reconnect=False)])
    with toolset:
        with pytest.raises(MCPClientError) as caught:
            toolset.call_tool("files__echo", {"text": "x"})
        assert (caught.value.code, caught.value.server) == ("server_crashed", "files")
        (internal,) = toolset.servers.own()
        assert internal not in str(caught.value)

        assert toolset.selection().names == ()
        assert [status.state for status in toolset.status()] == [ConnectionState.FAILED]
        assert toolset.connect()[0].state is ConnectionState.FAILED
        toolset.disconnect()
        (status,) = toolset.connect()
        assert (status.name, status.state) == ("files", ConnectionState.READY)


def test_what_is_disconnected_stays_so_until_connect():
    toolset = Toolset([own()])
    pid = toolset.call_tool("pid").text
    toolset.disconnect()
    toolset.disconnect()

    assert not is_running(pid)
    for use in (toolset.selection, toolset.list_tools, toolset.for_openai, lambda: toolset.call_tool("pid")):
        with pytest.raises(NotConnectedError):
            use()
    assert toolset.answer("pid").is_error

    toolset.connect()
    toolset.connect()
    assert toolset.call_tool("pid").text != pid
    toolset.disconnect()


def test_disconnecting_leaves_stored_servers_alone(tmp_path):
    logging_peer(tmp_path)
    with Toolset(["peer"]) as toolset:
        pid = toolset.call_tool("pid").text

    assert services.call_tool("peer__pid").text == pid


def test_servers_come_and_go_while_the_toolset_is_used():
    stored("peer")
    toolset = Toolset(["peer"], allowed_tools=["echo", "pid"])
    with toolset:
        first = toolset.selection()
        toolset.add_server("files", peer_entry())
        assert toolset.server_names == ("peer", "files")
        assert toolset.status()[1].is_ready  # at once
        assert toolset.selection().names == ("peer__echo", "peer__pid", "files__echo", "files__pid")
        assert first.names == ("peer__echo", "peer__pid")
        pid = toolset.call_tool("files__pid").text

        for name, config in (("FILES", peer_entry()), ("Peer", None), ("peer", peer_entry())):
            with pytest.raises(DuplicateServerError):
                toolset.add_server(name, config)
        toolset.remove_server("files")
        toolset.remove_server("files")
        toolset.remove_server("nothing")
        assert not is_running(pid)
        assert [status.name for status in toolset.status()] == ["peer"]
        with pytest.raises(UnknownToolError):
            toolset.call_tool("files__pid")

        toolset.remove_server("peer")
        assert toolset.selection().names == ()
        toolset.add_server("peer")
        assert toolset.call_tool("peer__echo", {"text": "back"}).text == "back"


def test_a_removed_server_is_not_let_in_by_all_servers():
    stored("one")
    stored("two")
    toolset = Toolset(all_servers=True, allowed_tools=["echo"])
    assert set(toolset.selection().names) == {"one__echo", "two__echo"}

    toolset.remove_server("One")
    assert toolset.selection().names == ("two__echo",)


def test_a_toolset_that_is_forgotten_leaves_nothing_running():
    toolset = Toolset([own()])
    pid = int(toolset.call_tool("pid").text)
    manager = get_mcp_manager()
    del toolset
    gc.collect()

    _wait_for_end(manager, pid)


def _wait_for_end(manager, pid):
    """Use the manager until the process is gone; the test's time limit ends what never comes."""
    while is_running(str(pid)):
        manager.status()


def test_own_servers_live_on_when_the_manager_is_made_anew():
    toolset = Toolset([own()])
    pid = toolset.call_tool("pid").text
    close_mcp_manager()
    assert not is_running(pid)
    try:
        assert toolset.call_tool("pid").text != pid
        toolset.disconnect()
    finally:
        close_mcp_manager()


# What cannot be --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "a__b", "9lives", "a b", "x" * 41, "tail_", 7, None])
def test_a_malformed_name_is_refused(name):
    with pytest.raises(ConfigurationError, match="cannot name a server") as caught:
        Toolset([{"name": name, "command": "npx"}])
    assert caught.value.field == "name"


@pytest.mark.parametrize("servers", ["peer", {"peer": {}}, [7], [None], [""], [["peer"]]])
def test_what_is_no_list_of_servers_is_refused(servers):
    with pytest.raises(ConfigurationError) as caught:
        Toolset(servers)
    assert caught.value.field == "servers"


def test_two_servers_of_one_name_are_refused():
    pairs: list[list[Any]] = [["peer", "PEER"], [own("a"), own("A")], ["files", own()]]
    for servers in pairs:
        with pytest.raises(DuplicateServerError):
            Toolset(servers)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"url": "ftp://example.com"}, "url"),
        ({"url": "not a url", "type": "http"}, "url"),
        ({"comand": "npx"}, "neither a command nor a URL"),
        ({"command": "npx", "type": "carrier-pigeon"}, "unknown transport"),
        ({"command": "/nowhere/at/all"}, "was not found"),
        ({"command": "${UNSET_HERE}"}, "UNSET_HERE"),
        ({"in_process": "nowhere"}, "MCP_CLIENT_IN_PROCESS_SERVERS"),
    ],
)
def test_a_configuration_that_cannot_work_is_a_dead_server_with_a_reason(config, reason):
    stored("peer")
    with Toolset(["peer", {"name": "bad", **config}]) as toolset:
        selection = toolset.selection()
        assert selection.unavailable == ("bad",)
        assert reason in selection.reasons["bad"]
        status = toolset.status()[1]
        assert (status.name, status.state, status.code) == ("bad", ConnectionState.FAILED, "configuration")
        (internal,) = toolset.servers.own()
        assert reason in status.reason
        assert internal not in status.reason
        assert not toolset.call_tool("peer__pid").is_error
        answer = toolset.answer("bad__anything")
        assert answer.text.startswith("Error calling mcp tool bad__anything: ")
        assert code_of(answer) == "configuration"


def test_users_need_the_right_to_run_code(make_user):
    user = make_user("call_tool")
    for config in (own(), {"name": "a", "in_process": "key"}):
        with pytest.raises(PermissionDeniedError) as caught:
            Toolset([config], user=user)
        assert caught.value.permission == "mcp_client_app.run_code_serverconfig"
    toolset = Toolset([{"name": "web", "url": "http://localhost:1/mcp"}], user=user)
    with pytest.raises(PermissionDeniedError):
        toolset.add_server("files", peer_entry())

    with Toolset([own()], user=make_user("call_tool", "run_code_serverconfig")) as toolset:
        assert not toolset.call_tool("pid").is_error


def test_users_need_the_right_to_read_variables(make_user, monkeypatch):
    monkeypatch.setenv("PLANTED", "planted-secret")
    config = own(env={"VALUE": "${PLANTED}"})
    user = make_user("call_tool", "run_code_serverconfig")
    toolset = Toolset([config], user=user)
    assert "needs a permission" in toolset.selection().reasons["files"]

    with Toolset([config]) as trusted:
        assert "planted-secret" in trusted.call_tool("env").text


def test_users_need_the_right_to_call(make_user):
    stored("peer")
    toolset = Toolset(["peer"], user=make_user("view_serverconfig"))
    for use in (toolset.selection, lambda: toolset.call_tool("pid"), toolset.connect):
        with pytest.raises(PermissionDeniedError) as caught:
            use()
        assert caught.value.permission == "mcp_client_app.call_tool"
    assert code_of(toolset.answer("pid")) == "permission_denied"
    assert ToolCall.objects.filter(code="permission_denied").count() == 2

    other = Toolset(["peer"], user=make_user("call_tool"))
    assert not other.call_tool("pid").is_error
    with pytest.raises(PermissionDeniedError):
        other.status()


# Servers that are down -------------------------------------------------------------------


def test_a_dead_server_is_left_out_for_models_and_shown_to_people():
    stored("peer")
    stored("broken", "--scenario", "exit_at_start=3")
    stored("off", enabled=False)
    stored("halted", stopped=True)
    toolset = Toolset(["peer", "broken", "off", "halted", "missing"], allowed_tools=["echo"])

    selection = toolset.selection()

    assert selection.names == ("peer__echo",)
    assert selection.unavailable == ("broken", "off", "halted", "missing")
    assert "exited with code 3" in selection.reasons["broken"]
    assert "disabled" in selection.reasons["off"]
    assert "disconnected" in selection.reasons["halted"]
    assert "no server" in selection.reasons["missing"]
    assert [tool["function"]["name"] for tool in toolset.for_openai().tools] == ["peer__echo"]
    states = {status.name: status.state.value for status in toolset.status()}
    assert states == {
        "peer": "ready",
        "broken": "backing_off",
        "off": "idle",
        "halted": "stopped",
        "missing": "failed",
    }


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("broken", "server_unavailable", "next try in"),
        ("off", "unknown_server", "is disabled"),
        ("halted", "not_connected", "has been disconnected"),
        ("missing", "unknown_server", "There is no server 'missing'"),
    ],
)
def test_a_call_to_a_dead_server_is_answered_with_the_reason(name, code, reason):
    stored("broken", "--scenario", "exit_at_start=3")
    stored("off", enabled=False)
    stored("halted", stopped=True)
    toolset = Toolset(["broken", "off", "halted", "missing"])
    toolset.selection()

    answer = toolset.answer(f" {name.upper()}__echo", {"text": "x"})

    assert code_of(answer) == code
    assert reason in answer.text
    assert answer.text.startswith("Error calling mcp tool  ")
    assert len(answer.text) < 300


def test_a_hanging_server_keeps_nobody_waiting():
    stored("peer")
    stored("mute", "--scenario", "mute", connect_timeout=0)
    toolset = Toolset(["peer", "mute"], allowed_tools=["echo"])
    services.connect("peer")

    selection = toolset.selection(wait=0.1)

    assert (selection.names, selection.unavailable) == (("peer__echo",), ("mute",))
    assert selection.reasons["mute"] == "The server 'mute' is still connecting."
    assert toolset.call_tool("peer__echo", {"text": "x"}).text == "x"
    assert toolset.selection(wait=0.1) is selection


def test_a_server_that_dies_in_mid_conversation_costs_its_own_calls_alone():
    stored("peer")
    stored("frail", "--scenario", "die_on_call=7")
    toolset = Toolset(["peer", "frail"])

    first = toolset.answer("frail__echo", {"text": "x"})
    assert code_of(first) == "server_crashed"
    assert toolset.answer("peer__echo", {"text": "x"}).text == "x"


def test_connecting_is_parallel_and_fails_for_nobody():
    for name in ("one", "two"):
        stored(name)
    stored("broken", "--scenario", "exit_at_start=3")
    toolset = Toolset(["one", "broken", "two"])

    statuses = toolset.connect()

    assert [(status.name, status.is_ready) for status in statuses] == [
        ("one", True),
        ("broken", False),
        ("two", True),
    ]
    assert [status.connects for status in toolset.connect()] == [1, 0, 1]


def test_connecting_ends_when_each_server_has_come_up_or_failed():
    limits = {"connect_timeout": 0.5, "list_timeout": 0.1}
    stored("mute", "--scenario", "mute", **limits)

    assert Toolset(["mute"]).connect()[0].state is ConnectionState.BACKING_OFF
    assert Toolset([own("silent", "--scenario", "mute", **limits)]).connect(wait=0.05)[0].code == ""


def test_threads_that_come_together_start_one_process(tmp_path):
    pids = tmp_path / "pids"

    def tell(_: int) -> str:
        try:
            return toolset.call_tool("pid").text
        finally:
            connections.close_all()

    with Toolset([own("files", "--pid-file", str(pids))]) as toolset, ThreadPoolExecutor(8) as threads:
        told = set(threads.map(tell, range(16)))

    assert told == set(pids.read_text().split())
    assert len(told) == 1


def test_a_forked_child_has_own_servers_of_its_own():
    told = run_process(FORKING)
    assert told.splitlines() == ["child: another one, ready", "parent: the same"]


FORKING = """
import os
from mcp_client_app.runtime import close_mcp_manager
from mcp_client_app.services import Toolset
from mcp_client_app.testing import override_servers
from tests.stored import peer_entry

with override_servers({}), Toolset([{"name": "files", **peer_entry()}]) as toolset:
    before = toolset.call_tool("pid").text
    child = os.fork()
    if not child:
        is_other = toolset.call_tool("pid").text != before
        is_ready = toolset.status()[0].is_ready
        who = "another one," if is_other else "the same,"
        print("child:", who, "ready" if is_ready else "down", flush=True)
        close_mcp_manager()
        os._exit(0)
    os.waitpid(child, 0)
    print("parent:", "the same" if toolset.call_tool("pid").text == before else "another one")
"""


def test_a_toolset_does_not_undo_an_operators_stop():
    stored("peer", stopped=True)
    toolset = Toolset(["peer"])

    assert toolset.connect()[0].state is ConnectionState.STOPPED
    with pytest.raises(ServerConnectionError):
        toolset.call_tool("peer__echo", {"text": "x"})
    assert ServerConfig.objects.get().stopped


# Changes ---------------------------------------------------------------------------------


def test_changed_lists_count_in_the_next_selection(add_mcp_server):
    server = fake_server("shop", tools={"price": lambda: "3"})
    add_mcp_server("shop", server)
    toolset = Toolset(["shop"])
    first = toolset.selection()
    assert first.names == ("shop__price",)
    assert toolset.selection() is first

    server.add_tool(lambda: "sold", name="sell")
    services.refresh("shop")
    assert toolset.selection().names == ("shop__price", "shop__sell")


def test_a_name_that_the_server_does_not_know_stays_unknown(add_mcp_server):
    add_mcp_server("shop", fake_server("shop", tools={"price": lambda: "3"}))
    toolset = Toolset(["shop"])

    with pytest.raises(UnknownToolError, match="Valid names: shop__price"):
        toolset.call_tool("shop__sell")
    services.disconnect("shop")
    with pytest.raises(NotConnectedError):
        toolset.call_tool("shop__sell")


def test_a_tool_that_the_server_has_learnt_is_found_by_a_call(add_mcp_server):
    server = fake_server("shop", tools={"price": lambda: "3"})
    add_mcp_server("shop", server)
    toolset = Toolset(["shop"])
    toolset.selection()
    server.add_tool(lambda: "sold", name="sell")

    assert toolset.call_tool("shop__sell").text == "sold"


def test_a_server_cannot_take_the_place_of_one_that_is_away(add_mcp_server):
    taken: list[str] = []
    add_mcp_server("rogue", fake_server(tools={"dead__echo": taken.append, "dead__more": taken.append}))
    stored("dead", "--scenario=exit_at_start=1")

    with Toolset(all_servers=True, allowed_tools=["dead__*", "rogue__dead__more"]) as toolset:
        assert toolset.selection().names == ("rogue__dead__more",)
        for name in ("dead__echo", "dead__more"):
            assert code_of(toolset.answer(name, {"object": "x"})) == "server_unavailable"

    assert taken == []


@pytest.mark.parametrize("fields", [{"enabled": False}, {"stopped": True}])
def test_a_server_cannot_take_the_place_of_one_that_may_not_be_used(add_mcp_server, fields):
    add_mcp_server(
        "rogue", fake_server(tools={"Gone__echo": lambda: "taken", "github__echo": lambda: "mine"})
    )
    ServerConfig.objects.filter(pk=stored("gone").pk).update(**fields)

    # What names no server is a name like any other.
    toolset = Toolset(all_servers=True, allowed_tools=["gone__*", "github__*"])

    assert toolset.selection().names == ("rogue__github__echo",)
    assert toolset.answer("gone__echo").is_error


def test_new_and_edited_servers_count_with_all_servers():
    stored("one")
    toolset = Toolset(all_servers=True, allowed_tools=["echo"])
    assert toolset.selection().names == ("one__echo",)

    stored("two")
    ServerConfig.objects.filter(name="one").update(blocked_tools=["echo"])
    assert toolset.selection().names == ("two__echo",)
    ServerConfig.objects.filter(name="two").update(enabled=False)
    assert toolset.selection().names == ()
