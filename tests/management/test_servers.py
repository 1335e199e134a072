"""The verbs list, add, remove, enable, disable."""

from __future__ import annotations

import io

import pytest

from mcp_client_app.models import ServerConfig
from tests.management.conftest import faulty


class Answering(io.StringIO):
    """A person at a terminal who answers so."""

    def isatty(self) -> bool:
        return True


def test_an_empty_list_says_how_to_add_a_server(run):
    result = run("list")
    assert result.code == 0
    assert "mcp_client add" in result.out
    assert run("list", "--json").document == {"servers": []}


def test_the_list_shows_wish_transport_target_and_source(servers):
    result = servers("list")
    rows = {line.split()[0]: line.split()[1:3] for line in result.lines[1:]}
    assert rows == {"dead": ["enabled", "stdio"], "good": ["enabled", "stdio"], "off": ["disabled", "stdio"]}
    assert "/no/such/program" in result.out
    assert "database" in result.out


def test_servers_of_the_settings_are_listed_with_their_source(run, settings):
    settings.MCP_CLIENT_SERVERS = {"configured": {"url": "https://mcp.example.com/secret-path?key=s3cret"}}
    [server] = run("list", "--json").document["servers"]
    assert (server["name"], server["source"]) == ("configured", "settings")
    assert server["target"] == "https://mcp.example.com"


def test_an_address_that_cannot_be_filled_in_here_is_said_to_be_so(run, settings):
    settings.MCP_CLIENT_SERVERS = {
        "one": {"url": "${UNSET_ADDRESS}/mcp"},
        "two": {"url": "${UNSET_ADDRESS:-https://mcp.example.com}/mcp"},
    }
    targets = {server["name"]: server["target"] for server in run("list", "--json").document["servers"]}
    assert targets == {"one": "(not resolvable here)", "two": "https://mcp.example.com"}


def test_a_command_line_is_stored_as_words(run):
    assert run("add", "files", "npx -y '@scope/a package' /srv", "--no-connect").code == 0
    row = ServerConfig.objects.get()
    assert (row.transport, row.command, row.args) == ("stdio", "npx", ["-y", "@scope/a package", "/srv"])
    assert row.enabled


def test_words_after_two_dashes_are_the_command(run):
    assert run("add", "files", "--no-connect", "--", "npx", "-y", "a package").code == 0
    assert ServerConfig.objects.get().args == ["-y", "a package"]


def test_an_http_server_takes_its_options(run):
    words = ["add", "api", "--url", "https://mcp.example.com/mcp", "--header", "Authorization: Bearer t0ken"]
    words += ["--header", "X-Team=blue", "--label", "The API", "--description", "Tickets", "--timeout", "5"]
    words += ["--connect-timeout", "0", "--allow-tool", "get_*", "--block-tool", "get_secret", "--no-connect"]
    assert run(*words).code == 0
    row = ServerConfig.objects.get()
    assert (row.transport, row.url) == ("streamable_http", "https://mcp.example.com/mcp")
    assert row.headers == {"Authorization": "Bearer t0ken", "X-Team": "blue"}
    assert (row.label, row.description) == ("The API", "Tickets")
    assert (row.call_timeout, row.connect_timeout) == (5, 0)
    assert (row.allowed_tools, row.blocked_tools) == (["get_*"], ["get_secret"])


def test_the_older_http_transport_can_be_chosen(run):
    run("add", "old", "--url", "http://localhost:1/sse", "--transport", "sse", "--no-connect")
    assert ServerConfig.objects.get().transport == "sse"


def test_a_process_takes_variables_and_a_directory(run, tmp_path):
    words = ["add", "files", "npx", "--env", "TOKEN=${MY_TOKEN}", "--env", "A=b=c", "--cwd", str(tmp_path)]
    assert run(*words, "--no-connect").code == 0
    row = ServerConfig.objects.get()
    assert (row.env, row.cwd) == ({"TOKEN": "${MY_TOKEN}", "A": "b=c"}, str(tmp_path))


def test_a_server_in_this_process_is_named_by_its_key(run, settings):
    settings.MCP_CLIENT_IN_PROCESS_SERVERS = {"desk": "tests.servers.sdk_server:server"}
    assert run("add", "desk", "--in-process", "desk", "--no-connect").code == 0
    assert run("list", "--json").document["servers"][0]["target"] == "desk"


def test_no_value_of_a_secret_is_ever_shown(run):
    words = ["--env", "TOKEN=s3cret", "--disabled"]
    shown = run("add", "one", "npx", *words, "--json")
    url = ["--url", "https://mcp.example.com/s3cret?key=s3cret", "--header", "Authorization=s3cret"]
    more = run("add", "two", *url, "--disabled", "--json")
    assert shown.document["server"]["env"] == {"TOKEN": "set"}
    assert more.document["server"]["headers"] == {"Authorization": "set"}
    everything = [
        shown,
        more,
        run("list"),
        run("list", "--json"),
        run("status"),
        run("status", "two", "--json"),
    ]
    assert not [result for result in everything if "s3cret" in result.out + result.err]


def test_adding_connects_and_shows_the_tools(run):
    result = run("add", "good", faulty())
    assert result.code == 0, result.err
    assert result.lines[0] == "Stored good."
    assert any(line.startswith("good__echo") for line in result.lines)


def test_a_server_that_cannot_be_connected_stays_stored_and_the_reason_is_told(run):
    result = run("add", "broken", faulty("exit_at_start=3"))
    assert result.code == 1
    assert ServerConfig.objects.filter(name="broken").exists()
    assert "is stored, but it cannot be connected" in result.err
    assert "stderr:" in result.err


def test_machines_get_server_and_tools_or_server_and_error(run):
    good = run("add", "good", faulty(), "--json")
    assert {tool["name"] for tool in good.document["tools"]} >= {"echo", "add"}
    dead = run("add", "dead", "/no/such/program", "--json")
    assert dead.code == 1
    assert dead.document["server"]["name"] == "dead"
    assert dead.document["error"]["code"] == "configuration"


@pytest.mark.parametrize("name", ["good", "GOOD"])
def test_a_name_that_is_taken_is_refused_with_the_cure(servers, name):
    result = servers("add", name, "other")
    assert result.code == 2
    assert result.err.startswith("name:")
    assert "choose another name" in result.err
    assert ServerConfig.objects.get(name="good").command != "other"


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["bad__name", "npx"], "name"),
        (["web", "--url", "ftp://x"], "url"),
        (["web", "--url", "https://x", "--env", "A=b"], "env"),
        (["web", "npx", "--header", "A=b"], "headers"),
        (["web", "--in-process", "nobody"], "in_process"),
        (["web", "npx 'open"], "COMMAND"),
        (["web", "npx", "--transport", "sse"], "--transport"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_field(run, words, field):
    result = run("add", *words, "--no-connect")
    assert result.code == 2
    assert result.err.startswith(f"{field}: ")
    assert not ServerConfig.objects.exists()


@pytest.mark.parametrize(
    "words", [[], ["npx", "--url", "https://x"], ["--url", "https://x", "--in-process", "k"]]
)
def test_exactly_one_way_to_reach_a_server_is_wanted(run, words):
    result = run("add", "files", *words)
    assert result.code == 2
    assert "exactly one of COMMAND, --url and --in-process" in result.err


def test_removing_asks_at_a_terminal_and_obeys_the_answer(servers, monkeypatch):
    from django.core.management import CommandError, call_command

    monkeypatch.setattr("sys.stdin", Answering("n\n"))
    err = io.StringIO()
    with pytest.raises(CommandError, match="Nothing was deleted"):
        call_command("mcp_client", "remove", "good", stderr=err)
    assert err.getvalue() == "Delete the server 'good'? [y/N] "
    monkeypatch.setattr("sys.stdin", Answering("y\n"))
    call_command("mcp_client", "remove", "good", stdout=io.StringIO(), stderr=err)
    assert not ServerConfig.objects.filter(name="good").exists()


def test_where_nobody_can_be_asked_removing_needs_a_yes(servers):
    refused = servers("remove", "good")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert ServerConfig.objects.filter(name="good").exists()
    assert servers("remove", "Good", "--yes").out == "Removed good.\n"
    assert not ServerConfig.objects.filter(name="good").exists()
    assert servers("remove", "dead", "--yes", "--json").document == {"removed": "dead"}


def test_a_server_of_the_settings_is_not_removed_here(run, settings):
    settings.MCP_CLIENT_SERVERS = {"configured": {"url": "https://mcp.example.com/"}}
    result = run("remove", "configured", "--yes")
    assert result.code == 2
    assert "settings" in result.err


def test_enabling_and_disabling_take_several_names(servers):
    assert servers("disable", "good", "dead").out == "Disabled good.\nDisabled dead.\n"
    assert set(ServerConfig.objects.enabled()) == set()
    result = servers("enable", "good", "off", "--json")
    assert [server["enabled"] for server in result.document["servers"]] == [True, True]
    assert set(ServerConfig.objects.enabled().values_list("name", flat=True)) == {"good", "off"}


def test_a_slip_in_one_name_changes_nothing(servers):
    result = servers("disable", "good", "nobody")
    assert result.code == 2
    assert "nobody" in result.err
    assert ServerConfig.objects.get(name="good").enabled


def test_options_may_stand_between_name_and_command(run):
    assert run("add", "files", "--env", "A=b", "--no-connect", "npx -y package").code == 0
    row = ServerConfig.objects.get()
    assert (row.command, row.args, row.env) == ("npx", ["-y", "package"], {"A": "b"})
