"""Servers in from configuration files and out again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_client_app import services
from mcp_client_app.exceptions import ConfigurationError, UnknownServerError
from mcp_client_app.models import ServerConfig
from tests.stored import peer_entry

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]

GAIA = """
{
  "mcpServers": {
    "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]},
    "github": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": {"GITHUB_TOKEN": "ghp_xxx"}
    },
    "time": {"command": "uvx", "args": ["mcp-server-time"]}
  }
}
"""
GAIA_LEGACY = """
{"servers": {"server_name": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-x"],
                             "env": {"TOKEN": "xxx"} // optional
}}}
"""
AGENTX = """
{
  "filesystem": {
    "transport": "stdio",
    "command": "npx",
    "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/user/projects"],
    "env": {"NODE_ENV": "production"}
  },
  "github": {
    "transport": "stdio",
    "command": "npx",
    "args": ["-y", "@modelcontextprotocol/server-github"],
    "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "$GITHUB_TOKEN"}
  },
  "brave-search": {
    "transport": "sse",
    "url": "http://localhost:8080/sse",
    "headers": {"Authorization": "Bearer $BRAVE_API_KEY"}
  }
}
"""
GOTONG = """
{"servers": [
  {"name": "fs", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "./workspace"]},
  {"name": "web", "transport": "http", "url": "https://mcp.example.com/mcp"}
]}
"""
PIPEDOG = """
{"mcpServers": {
  "files": {"type": "stdio", "command": "npx", "args": ["-y", "server"], "env": {"LOG_LEVEL": "warn"}},
  "old": {"type": "sse", "url": "https://mcp.example.com/sse"},
  "new": {"type": "streamableHttp", "url": "https://mcp.example.com/mcp", "terminateOnClose": false}
}}
"""
VSCODE = """
{
  // of an editor
  "inputs": [{"id": "token", "type": "promptString", "password": true}],
  "servers": {
    "remote": {"type": "http", "url": "https://mcp.example.com/mcp",
               "headers": {"Authorization": "Bearer ${input:token}"}},
  },
}
"""
DOCUMENTS = {
    "gaia": (GAIA, 3),
    "gaia-legacy": (GAIA_LEGACY, 1),
    "agentx": (AGENTX, 3),
    "gotong": (GOTONG, 2),
    "pipedog": (PIPEDOG, 3),
    "vscode": (VSCODE, 1),
}


def actions(report: services.ImportReport) -> dict[str, str]:
    return {entry.name: entry.action for entry in report.entries}


def rows() -> list[dict[str, Any]]:
    """Return all rows with all they hold, but for what time alone changes."""
    transient = ("id", "revision", "created_at", "updated_at")
    return [
        {name: value for name, value in row.items() if name not in transient}
        for row in ServerConfig.objects.order_by("name").values()
    ]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_documents_of_other_systems_become_sound_rows(document):
    text, count = DOCUMENTS[document]

    report = services.import_servers(text)

    assert (len(report.created), report.failed) == (count, ())
    for row in ServerConfig.objects.all():
        row.full_clean()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_an_export_that_is_imported_again_changes_nothing(document):
    """C23: no row twice."""
    services.import_servers(DOCUMENTS[document][0])
    before = rows()

    exported = json.loads(json.dumps(services.export_servers()))
    report = services.import_servers(exported)

    assert set(actions(report).values()) == {"unchanged"}
    assert rows() == before


@pytest.mark.parametrize("document", DOCUMENTS)
def test_an_export_makes_the_same_rows_elsewhere_but_for_secrets(document):
    services.import_servers(DOCUMENTS[document][0])
    before = rows()
    exported = json.dumps(services.export_servers())
    ServerConfig.objects.all().delete()

    report = services.import_servers(exported)

    assert report.failed == ()
    for old, new in zip(before, rows(), strict=True):
        is_incomplete = any("${input:" in value for value in {**new["env"], **new["headers"]}.values())
        if not is_incomplete:
            assert new == old
        else:
            assert not new["enabled"]


def test_literal_secrets_leave_as_null_and_come_back_to_the_same_row():
    services.import_servers({"mcpServers": {"one": {**peer_entry(), "env": {"TOKEN": "s3cret-value"}}}})

    exported = services.export_servers()

    assert exported["mcpServers"]["one"]["env"] == {"TOKEN": None}
    assert "s3cret-value" not in json.dumps(exported)
    services.import_servers(exported)
    assert ServerConfig.objects.get().env == {"TOKEN": "s3cret-value"}


def test_a_dry_run_says_everything_and_changes_nothing():
    """C23: with what would change."""
    services.import_servers({"mcpServers": {"same": peer_entry(), "other": peer_entry()}})
    document = {
        "mcpServers": {
            "same": peer_entry(),
            "other": {**peer_entry(), "timeout": 7, "env": {"TOKEN": "s3cret-value"}},
            "new one": peer_entry(),
            "bad": {"type": "pigeon"},
            "worse": {"url": "ftp://example.com"},
        }
    }
    before = rows()

    report = services.import_servers(document, dry_run=True)

    assert report.dry_run
    assert actions(report) == {
        "same": "unchanged",
        "other": "update",
        "new-one": "create",
        "bad": "error",
        "worse": "error",
    }
    assert rows() == before
    by_name = {entry.name: entry for entry in report.entries}
    assert any("call_timeout: None → 7" in change for change in by_name["other"].changes)
    assert "env changes" in by_name["other"].changes
    assert "s3cret-value" not in repr(report)
    assert by_name["new-one"].notices
    assert by_name["bad"].error is not None
    assert by_name["worse"].error is not None

    services.import_servers(document)
    assert {row["name"] for row in rows()} == {"same", "other", "new-one"}


def test_an_import_deletes_nothing_and_keeps_what_it_does_not_say():
    """C03, C23: filters set in the admin stay."""
    services.import_servers({"mcpServers": {"one": {**peer_entry(), "timeout": 7}, "two": peer_entry()}})

    services.import_servers({"mcpServers": {"ONE": {**peer_entry(), "description": "first"}}})

    one = ServerConfig.objects.get(name="one")
    assert (one.call_timeout, one.description) == (7, "first")
    assert ServerConfig.objects.count() == 2


def test_single_entries_can_be_picked_by_either_name():
    document = {"mcpServers": {"first one": peer_entry(), "two": peer_entry(), "three": peer_entry()}}

    report = services.import_servers(document, only=["First One", "TWO"])

    assert report.created == ("first-one", "two")


def test_a_name_that_is_picked_and_not_there_is_told():
    report = services.import_servers({"mcpServers": {"one": peer_entry()}}, only=["one", "Two", "two"])

    assert (report.created, report.failed) == (("one",), ("two",))
    assert report.entries[-1].error == "The configuration has no such server."


@pytest.mark.parametrize("enable", [True, False])
def test_imported_servers_can_be_forced_on_or_off(enable):
    document = {"mcpServers": {"on": peer_entry(), "off": {**peer_entry(), "disabled": True}}}

    services.import_servers(document, enable=enable)

    assert {row["enabled"] for row in rows()} == {enable}


def test_what_runs_code_arrives_disabled_from_those_who_may_not(make_user):
    """D16."""
    user = make_user("add_serverconfig", "change_serverconfig")
    document = {"mcpServers": {"local": peer_entry(), "web": {"url": "https://mcp.example.com/mcp"}}}

    report = services.import_servers(document, user=user, enable=True)

    assert report.created == ("local", "web")
    assert {row["name"]: row["enabled"] for row in rows()} == {"local": False, "web": True}
    again = services.import_servers({"mcpServers": {"local": {**peer_entry(), "timeout": 5}}}, user=user)
    assert again.failed == ("local",)
    into_code = services.import_servers({"mcpServers": {"web": peer_entry()}}, user=user)
    assert into_code.failed == ("web",)
    assert ServerConfig.objects.get(name="web").transport == "streamable_http"


def test_references_need_their_permission_in_an_import_too(make_user, settings):
    """C18."""
    user = make_user("add_serverconfig", "change_serverconfig")
    document = {
        "mcpServers": {"web": {"url": "https://mcp.example.com/mcp", "headers": {"X": "${SOME_TOKEN}"}}}
    }

    assert services.import_servers(document, user=user).failed == ("web",)
    settings.MCP_CLIENT_ENV_ALLOW = ["SOME_TOKEN"]
    assert services.import_servers(document, user=user).created == ("web",)
    assert services.import_servers(document).failed == ()


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '"text"', '{"command": "x"}'])
def test_what_holds_no_servers_is_refused(text):
    with pytest.raises(ConfigurationError):
        services.import_servers(text)


def test_servers_of_other_sources_are_exported_by_name_only(settings):
    settings.MCP_CLIENT_SERVERS = {"theirs": peer_entry()}
    services.import_servers({"mcpServers": {"mine": peer_entry()}})

    assert set(services.export_servers()["mcpServers"]) == {"mine"}
    assert set(services.export_servers(["THEIRS", "mine"])["mcpServers"]) == {"mine", "theirs"}
    with pytest.raises(UnknownServerError):
        services.export_servers(["nobody"])
    assert services.import_servers({"mcpServers": {"theirs": {"url": "http://x.example"}}}).failed == (
        "theirs",
    )


def test_settings_and_file_can_be_synchronised_by_hand(settings, tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"two": peer_entry()}}))
    settings.MCP_CLIENT_SERVERS = {"one": peer_entry()}
    settings.MCP_CLIENT_CONFIG_FILE = str(path)

    assert services.sync_servers().created == ("one", "two")
    settings.MCP_CLIENT_SERVERS = {"one": {**peer_entry(), "timeout": 5}}
    path.write_text("{}")
    report = services.sync_servers()

    assert (report.updated, report.removed) == (("one",), ("two",))
