"""Servers of the settings and the file: their rows, their precedence, their end."""

from __future__ import annotations

import json
import os
import select
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from mcp_client_app.models import ServerConfig
from mcp_client_app.runtime import get_mcp_manager, row_source
from mcp_client_app.runtime.configured import sync_configured
from tests.stored import peer_entry, stored

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def config_file(settings: Any, tmp_path: Path) -> Path:
    """A file that does not exist yet."""
    path = tmp_path / "mcp.json"
    settings.MCP_CLIENT_CONFIG_FILE = str(path)
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    return path


def write(path: Path, **servers: Any) -> None:
    path.write_text(json.dumps({"mcpServers": servers}))


def sources() -> dict[str, str]:
    """Return the source of each server, after a look."""
    row_source.current()
    return dict(ServerConfig.objects.values_list("name", "source"))


def test_a_server_of_the_settings_gets_a_row_that_people_cannot_edit(settings):
    settings.MCP_CLIENT_SERVERS = {"theirs": peer_entry()}

    assert get_mcp_manager().call_tool("theirs__echo", {"text": "hi"}).text == "hi"

    row = ServerConfig.objects.get()
    assert (row.name, row.source, row.is_read_only) == ("theirs", "settings", True)


def test_the_settings_may_come_in_any_form_of_an_mcp_json(settings):
    settings.MCP_CLIENT_SERVERS = {"mcpServers": {"one": peer_entry()}}

    assert sources() == {"one": "settings"}


def test_settings_and_file_may_read_any_variable(settings, config_file, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "t0p-secret")
    settings.MCP_CLIENT_SERVERS = {"one": {**peer_entry(), "env": {"TOKEN": "${SOME_TOKEN}"}}}
    write(config_file, two={**peer_entry(), "env": {"TOKEN": "$SOME_TOKEN"}})

    for name in ("one", "two"):
        environment = json.loads(get_mcp_manager().call_tool(f"{name}__env").text)
        assert environment["TOKEN"] == "t0p-secret"


def test_settings_come_before_rows_and_rows_before_the_file(settings, config_file, caplog):
    stored("a", command="row")
    stored("b", command="row")
    settings.MCP_CLIENT_SERVERS = {"A": {"command": "settings"}, "d": {"command": "settings"}}
    write(
        config_file,
        a={"command": "file"},
        B={"command": "file"},
        c={"command": "file"},
        D={"url": "http://x"},
    )

    assert sources() == {"A": "settings", "b": "database", "c": "file", "d": "settings"}

    commands = dict(ServerConfig.objects.values_list("name", "command"))
    assert commands == {"A": "settings", "b": "row", "c": "file", "d": "settings"}


def test_a_row_that_the_settings_take_over_keeps_nothing_of_its_own(settings):
    """Else a header meant for one address would be sent to another."""
    stored(
        "api",
        command="",
        args=[],
        transport="streamable_http",
        url="https://old.example/",
        headers={"Token": "s3"},
    )
    settings.MCP_CLIENT_SERVERS = {"api": {"url": "https://new.example/mcp"}}

    assert sources() == {"api": "settings"}

    row = ServerConfig.objects.get()
    assert (row.url, row.headers) == ("https://new.example/mcp", {})


def test_what_an_entry_does_not_say_any_more_goes(config_file):
    write(config_file, one={**peer_entry(), "env": {"A": "1"}, "timeout": 5})
    sources()
    assert ServerConfig.objects.get().env == {"A": "1"}

    write(config_file, one=peer_entry())
    sources()

    row = ServerConfig.objects.get()
    assert (row.env, row.call_timeout) == ({}, None)


def test_what_operators_have_switched_stays(config_file):
    write(config_file, one=peer_entry())
    sources()
    ServerConfig.objects.update(enabled=False, stopped=True)

    write(config_file, one={**peer_entry(), "timeout": 5})
    sources()

    row = ServerConfig.objects.get()
    assert (row.enabled, row.stopped, row.call_timeout) == (False, True, 5)


def test_a_file_that_is_created_later_is_noticed_and_so_is_its_end(config_file):
    assert sources() == {}

    write(config_file, one=peer_entry())
    assert sources() == {"one": "file"}

    write(config_file, two=peer_entry())
    assert sources() == {"two": "file"}


def test_a_file_without_a_setting_is_found_in_the_project(settings, tmp_path):
    del settings.MCP_CLIENT_CONFIG_FILE
    settings.BASE_DIR = tmp_path
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    assert sources() == {}

    write(tmp_path / "mcp_servers.json", one=peer_entry())
    assert sources() == {"one": "file"}

    (tmp_path / "mcp_servers.json").unlink()
    assert sources() == {}


def test_a_file_that_cannot_be_read_changes_nothing(config_file, caplog):
    write(config_file, one=peer_entry())
    assert sources() == {"one": "file"}

    config_file.write_text("{ this is no JSON")
    assert sources() == {"one": "file"}
    assert "file" in sync_configured().errors

    config_file.unlink()
    assert sources() == {"one": "file"}
    assert "No such file" in sync_configured().errors["file"]


def test_settings_of_the_wrong_type_leave_other_servers_usable(settings, caplog):
    stored("mine")
    settings.MCP_CLIENT_SERVERS = ["no", "dictionary"]

    assert get_mcp_manager().call_tool("mine__echo", {"text": "hi"}).text == "hi"
    assert "MCP_CLIENT_SERVERS must be a dictionary" in caplog.text


def test_a_bad_entry_is_told_and_costs_no_other(settings, caplog):
    settings.MCP_CLIENT_SERVERS = {"bad": {"type": "pigeon"}, "worse": 7, "good": peer_entry()}

    assert sources() == {"good": "settings"}

    assert set(sync_configured().errors) == {"bad", "worse"}
    assert "'bad' cannot be used" in caplog.text


def test_a_bad_entry_destroys_no_row_of_its_name(settings):
    stored("one", command="mine")
    settings.MCP_CLIENT_SERVERS = {"one": {"type": "pigeon"}}

    assert sources() == {"one": "database"}

    assert ServerConfig.objects.get().command == "mine"


def test_an_entry_that_goes_takes_its_row_and_its_process_along(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    settings.MCP_CLIENT_SERVERS = {"one": peer_entry()}
    manager = get_mcp_manager()
    pid = manager.connect("one").pid
    assert pid is not None
    descriptor = os.pidfd_open(pid)

    settings.MCP_CLIENT_SERVERS = {}
    assert manager.list_tools() == []

    assert select.select([descriptor], [], [], 20)[0]
    os.close(descriptor)
    assert not ServerConfig.objects.exists()


def test_a_name_that_only_changes_its_case_stays_the_same_row(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    settings.MCP_CLIENT_SERVERS = {"one": peer_entry()}
    sources()
    row = ServerConfig.objects.get()

    settings.MCP_CLIENT_SERVERS = {"One": peer_entry()}
    assert sources() == {"One": "settings"}

    assert ServerConfig.objects.get().pk == row.pk


def test_a_second_sync_changes_nothing(settings, config_file):
    settings.MCP_CLIENT_SERVERS = {"one": {**peer_entry(), "env": {"A": "1"}, "timeout": 5, "x": [1]}}
    write(config_file, two=peer_entry())

    first = sync_configured()
    revisions = ServerConfig.objects.revisions()
    second = sync_configured()

    assert (first.created, first.updated, first.removed, first.errors) == (("one", "two"), (), (), {})
    assert (second.created, second.updated, second.removed, second.errors) == ((), (), (), {})
    assert ServerConfig.objects.revisions() == revisions


def test_rows_that_were_rolled_back_are_made_again(settings):
    settings.MCP_CLIENT_REVISION_INTERVAL = 0
    settings.MCP_CLIENT_SERVERS = {"one": peer_entry()}
    with transaction.atomic():
        row_source.current()
        transaction.set_rollback(True)
    assert not ServerConfig.objects.exists()

    assert sources() == {"one": "settings"}
