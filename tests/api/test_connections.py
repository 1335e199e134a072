from __future__ import annotations

import threading

import pytest
from django.db import connections

from mcp_client_app import services
from mcp_client_app.models import ServerConfig
from mcp_client_app.runtime import get_mcp_manager
from tests.api.conftest import Api
from tests.stored import stored


def states(answer) -> dict[str, str]:
    return {status["name"]: status["state"] for status in answer.data["results"]}


def test_a_server_is_connected_and_disconnected_for_all_processes(api):
    stored("peer")

    connected = api.post("servers/PEER/connect")
    assert (connected.status_code, connected.data["state"], connected.data["tools"]) == (200, "ready", 13)

    disconnected = api.post("servers/peer/disconnect/")
    assert (disconnected.status_code, disconnected.data["state"]) == (200, "stopped")
    assert ServerConfig.objects.get().stopped
    refused = api.call("peer__echo", {"text": "x"})
    assert (refused.status_code, refused.data["code"]) == (503, "not_connected")

    assert api.post("servers/peer/connect/").data["state"] == "ready"
    assert not ServerConfig.objects.get().stopped


def test_why_a_server_cannot_be_connected_is_answered_and_kept_in_its_state(api):
    stored("crashing", "--scenario=exit_at_start=3")
    stored("missing", command="/no/such/program")

    crashed = api.post("servers/crashing/connect/")
    missing = api.post("servers/missing/connect/")

    assert (crashed.status_code, crashed.data["code"], crashed.data["exit_code"]) == (
        503,
        "server_crashed",
        3,
    )
    assert (missing.status_code, missing.data["code"], missing.data["server"]) == (
        409,
        "configuration",
        "missing",
    )
    assert api.get("servers/missing/").data["status"]["state"] == "failed"


def test_connecting_goes_on_after_the_answer(api, settings, tmp_path):
    settings.MCP_CLIENT_REQUEST_TIMEOUT = 0.5
    go = tmp_path / "go"
    stored("slow", f"--scenario=slow_start={go}")

    pending = api.post("servers/slow/connect/")
    assert (pending.status_code, pending.data["state"]) == (202, "connecting")

    go.touch()
    settings.MCP_CLIENT_REQUEST_TIMEOUT = 25
    assert api.post("servers/slow/connect/").data["state"] == "ready"
    assert get_mcp_manager().status("slow").connects == 1


def test_several_servers_are_connected_at_once_and_each_failure_is_told(api):
    stored("one")
    stored("two")
    stored("dead", command="/no/such/program")
    stored("off", enabled=False)

    some = api.post("connect/", {"servers": ["ONE", "off"]})
    assert (some.status_code, states(some)) == (200, {"one": "ready", "off": "idle"})
    assert "disabled" in some.data["errors"]["off"]["detail"]

    every = api.post("connect", {"all": True})
    assert states(every) == {"one": "ready", "two": "ready", "dead": "failed"}
    assert {name: error["code"] for name, error in every.data["errors"].items()} == {"dead": "configuration"}

    assert states(api.post("disconnect/", {"server": "one"})) == {"one": "stopped"}
    assert set(states(api.post("disconnect", {"all": True})).values()) == {"stopped"}
    assert get_mcp_manager().connected_servers() == []


def test_servers_that_still_connect_when_the_request_ends_give_202(api, settings):
    settings.MCP_CLIENT_REQUEST_TIMEOUT = 2
    stored("good")
    stored("hung", "--scenario=mute")

    answer = api.post("connect/", {"all": True})

    assert (answer.status_code, states(answer)) == (202, {"good": "ready", "hung": "connecting"})


def test_an_unknown_server_among_several_is_404_and_nothing_is_connected(api):
    stored("one")
    answer = api.post("connect/", {"servers": ["one", "none"]})
    assert (answer.status_code, answer.data["server"]) == (404, "none")
    assert get_mcp_manager().connected_servers() == []


def test_disconnecting_tells_of_unknown_servers_and_disconnects_the_others(api):
    stored("one")
    services.connect("one")
    answer = api.post("disconnect/", {"servers": ["none", "one"]})
    assert (answer.status_code, states(answer)) == (200, {"one": "stopped"})
    assert answer.data["errors"]["none"]["code"] == "unknown_server"


@pytest.mark.parametrize("body", [{}, {"all": False}, {"server": "a", "all": True}, {"servers": "a"}])
def test_the_body_names_servers_in_exactly_one_way(api, body):
    answer = api.post("connect/", body)
    assert (answer.status_code, answer.data["code"]) == (400, "invalid")


def test_lists_are_read_anew(api):
    stored("peer", "--scenario=list_changed")
    services.connect("peer")

    answer = api.post("servers/peer/refresh/")

    assert (answer.status_code, answer.data["tools"]) == (200, 13)


def test_refreshing_ends_with_the_request(api, settings):
    settings.MCP_CLIENT_REQUEST_TIMEOUT = 0.5
    stored("hung", "--scenario=mute")
    answer = api.post("servers/hung/refresh/")
    assert (answer.status_code, answer.data["code"], answer.data["outcome"]) == (504, "timeout", "not_sent")


def test_a_server_is_tried_out_without_touching_its_connection(api):
    stored("peer")
    services.connect("peer")
    pid = get_mcp_manager().status("peer").pid

    answer = api.post("servers/peer/test/")

    assert (answer.status_code, answer.data["ok"]) == (200, True)
    assert [step["name"] for step in answer.data["steps"]] == ["connect", "list", "ping", "close"]
    assert answer.data["status"]["pid"] != pid
    assert get_mcp_manager().status("peer").pid == pid


def test_a_test_that_fails_says_where_and_ends_with_the_request(api, settings):
    settings.MCP_CLIENT_REQUEST_TIMEOUT = 0.5
    stored("hung", "--scenario=mute")

    answer = api.post("servers/hung/test/")

    assert (answer.status_code, answer.data["ok"]) == (200, False)
    [step] = answer.data["steps"]
    assert (step["name"], step["ok"]) == ("connect", False)
    assert "not ready within" in step["detail"]


def test_what_a_server_said_is_shown(api):
    stored("peer", "--scenario=log_messages", "--scenario=stderr_partial")
    services.connect("peer")
    services.call_tool("peer__echo", {"text": "x"})
    get_mcp_manager().disconnect("peer")

    answer = api.get("servers/peer/logs/")

    assert answer.status_code == 200
    assert answer.data["server"] == "peer"
    assert len(answer.data["logs"]) == 3
    assert set(answer.data["logs"][0]) == {"level", "logger", "data", "received_at"}
    assert answer.data["stderr"]


def test_many_requests_at_once_start_one_process(api, tmp_path):
    pids = tmp_path / "pids"
    stored("peer", f"--pid-file={pids}")
    together = threading.Barrier(10)
    results: list[int] = []

    def connect() -> None:
        mine = Api(api.user)
        try:
            together.wait(30)
            results.append(mine.post("servers/peer/connect/").status_code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=connect) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert results == [200] * 10
    assert len(pids.read_text().split()) == 1
