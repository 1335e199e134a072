"""The verbs connect and disconnect."""

from __future__ import annotations

from mcp_client_app import services
from mcp_client_app.models import ServerConfig
from mcp_client_app.runtime import get_mcp_manager, started_manager


def test_connecting_says_what_each_server_told_or_why_not(servers):
    result = servers("connect", "good", "dead")
    assert result.code == 3
    rows = {line.split()[0]: line.split()[1:3] for line in result.lines[1:]}
    assert rows["good"][0] == "ready"
    assert int(rows["good"][1]) > 0
    assert rows["dead"][0] == "failed"
    assert "'/no/such/program'" in result.out
    assert "Could not be connected: dead." in result.err


def test_progress_has_a_line_for_each_server_and_machines_get_none(servers):
    progress = [line for line in servers("connect", "--all").err.splitlines() if line.startswith("[")]
    assert [line.partition("]")[0] for line in progress] == ["[1/2", "[2/2"]
    assert {line.partition("] ")[2] for line in progress} == {"good: ready", "dead: failed"}
    assert servers("connect", "good", "--json").err == ""
    assert servers("connect", "good", "--verbosity=0").err == ""


def test_all_means_all_that_are_enabled(servers):
    result = servers("connect", "--all", "--json")
    assert result.code == 3
    states = {server["name"]: server["state"] for server in result.document["servers"]}
    assert states == {"good": "ready", "dead": "failed"}


def test_without_a_server_there_is_nothing_to_connect(run):
    result = run("connect", "--all")
    assert (result.code, result.out) == (0, "There are no enabled servers.\n")
    assert run("tools").out == "No tools.\n"


def test_success_alone_is_success_and_failure_alone_is_failure(servers):
    assert servers("connect", "good").code == 0
    assert servers("connect", "dead").code == 1


def test_names_or_all_must_be_given_but_not_both(servers):
    for verb in ("connect", "disconnect"):
        assert servers(verb).code == 2
        assert servers(verb, "good", "--all").code == 2


def test_unknown_and_disabled_servers_are_refused_with_the_cure(servers):
    assert servers("connect", "nobody").code == 2
    result = servers("connect", "off")
    assert result.code == 2
    assert "mcp_client enable off" in result.err


def test_disconnecting_stops_a_server_for_every_process_and_connecting_lifts_that(servers):
    assert servers("disconnect", "good").out == "Stopped good.\n"
    assert ServerConfig.objects.get(name="good").stopped
    assert servers("call", "good__echo", "text=hi").code == 1
    assert servers("connect", "good").code == 0
    assert not ServerConfig.objects.get(name="good").stopped
    assert servers("call", "good__echo", "text=hi").code == 0


def test_machines_are_told_the_states_after_disconnecting(servers):
    result = servers("disconnect", "--all", "--json")
    assert {server["name"]: server["state"] for server in result.document["servers"]} == {
        "good": "stopped",
        "dead": "stopped",
    }


def test_the_command_closes_the_manager_that_it_needed(servers):
    assert servers("connect", "good").code == 0
    assert started_manager() is None


def test_a_manager_that_the_process_had_before_goes_on(servers):
    manager = get_mcp_manager()
    pid = manager.connect("good").pid
    assert servers("tools", "good").code == 0
    assert started_manager() is manager
    assert services.server_status("good").pid == pid
