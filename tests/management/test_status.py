"""The verb status."""

from __future__ import annotations

import os

import pytest

from mcp_client_app.models import ServerConfig, ServerState, WorkerProcess
from mcp_client_app.runtime import get_mcp_manager
from tests.management.conftest import faulty


def state_of(name: str, **fields: object) -> ServerState:
    worker, _ = WorkerProcess.objects.get_or_create(host="web-1", pid=4711)
    return ServerState.objects.create(worker=worker, server=ServerConfig.objects.get(name=name), **fields)


def rows(result) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in result.lines[1:]}


@pytest.mark.parametrize("zones", [True, False])
def test_states_of_other_processes_are_shown_with_their_reasons(servers, settings, zones):
    settings.USE_TZ = zones
    state_of("good", state="ready", tools=12)
    state_of("dead", state="failed", code="configuration", reason="Not found.")
    result = servers("status")
    assert result.code == 0
    assert rows(result)["good"][:2] == ["ready", "web-1:4711"]
    assert rows(result)["good"][-1] == "12"
    assert rows(result)["dead"][-3:] == ["configuration:", "Not", "found."]


def test_servers_that_no_process_has_connected_show_the_wish(servers):
    servers("disconnect", "good")
    found = {name: row[0] for name, row in rows(servers("status")).items()}
    assert found == {"dead": "idle", "good": "stopped", "off": "disabled"}


def test_states_of_processes_that_were_not_seen_for_long_do_not_count(servers):
    state = state_of("good", state="ready")
    WorkerProcess.objects.filter(pk=state.worker_id).update(seen_at="2020-01-01T00:00:00Z")
    assert rows(servers("status", "good"))["good"][0] == "idle"


def test_nothing_is_connected_for_a_status(servers):
    servers("status")
    document = servers("status", "good", "--json").document
    assert document["servers"][0]["here"]["state"] == "idle"
    assert not ServerState.objects.exists()


def test_details_of_this_process_show_warnings_and_standard_error(run, settings, tmp_path):
    settings.MCP_CLIENT_ENV_ALLOW = ["UNSET_*"]
    command = faulty("stderr_partial")
    assert run("add", "chatty", command, "--env", "A=$UNSET_VARIABLE", "--no-connect").code == 0
    manager = get_mcp_manager()
    manager.connect("chatty")
    manager.call_tool("chatty__echo", {"text": "hi"})
    result = run("status", "chatty")
    assert "warning: " in result.out
    assert "UNSET_VARIABLE" in result.out
    assert "chatty: stderr: " in result.out


def test_machines_get_this_process_and_the_others_apart(servers):
    state_of("good", state="backing_off", code="server_crashed", reason="It ended.", failures=2)
    get_mcp_manager().connect("good")
    [server] = servers("status", "good", "--json").document["servers"]
    assert server["here"]["state"] == "ready"
    others = {process["host"]: process for process in server["processes"]}
    assert others["web-1"]["state"] == "backing_off"
    assert others["web-1"]["failures"] == 2
    assert {process["pid"] for process in server["processes"]} <= {4711, os.getpid()}


def test_an_unknown_server_is_refused(servers):
    assert servers("status", "nobody").code == 2
