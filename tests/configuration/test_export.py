from __future__ import annotations

from mcp_client_app.configuration.export import EXPORTED_FIELDS, export
from mcp_client_app.configuration.secrets import keep_stored_json, keep_stored_values, without_secrets_json
from mcp_client_app.models import ServerConfig


def entry_of(**fields):
    """Export one server, given by what differs from the defaults."""
    row = ServerConfig(name="one", **fields)
    return export([row.export_values()])["mcpServers"]["one"]


def test_an_entry_holds_what_is_not_a_default():
    assert entry_of(command="npx", args=["-y"]) == {"type": "stdio", "command": "npx", "args": ["-y"]}
    assert entry_of(transport="streamable_http", url="https://h") == {"type": "http", "url": "https://h"}
    assert entry_of(transport="in_process", in_process="demo") == {"type": "in_process", "in_process": "demo"}


def test_disabled_is_written_as_other_clients_read_it():
    assert entry_of(command="x", enabled=False) == {"type": "stdio", "command": "x", "disabled": True}


def test_literal_secrets_leave_as_null_and_references_stay():
    env = {"A": "hunter2", "B": "${TOKEN}", "C": "$TOKEN", "D": "${TOKEN:-hunter2}", "E": ""}
    headers = {"Authorization": "Bearer ${TOKEN}", "X-Key": "Bearer hunter2"}

    assert entry_of(command="x", env=env)["env"] == {
        "A": None,
        "B": "${TOKEN}",
        "C": "$TOKEN",
        "D": None,
        "E": None,
    }
    assert entry_of(transport="sse", url="https://h", headers=headers)["headers"] == {
        "Authorization": "Bearer ${TOKEN}",
        "X-Key": None,
    }


def test_unknown_keys_come_back_without_what_sounds_secret():
    extra = {
        "icon": "x.png",
        "oauth": {"clientId": "a", "clientSecret": "hunter2", "tokenUrl": "https://t", "scopes": ["b"]},
        "apiKey": "${KEY}",
        "env": {"K": "hunter2"},
    }

    assert entry_of(command="x", extra=extra) == {
        "type": "stdio",
        "command": "x",
        "icon": "x.png",
        "oauth": {"clientId": "a", "clientSecret": None, "tokenUrl": "https://t", "scopes": ["b"]},
        "apiKey": "${KEY}",
        "env": {"K": None},
    }


def test_our_keys_win_over_unknown_ones():
    assert entry_of(command="x", extra={"command": "y", "type": "z"})["command"] == "x"


def test_every_column_is_exported_or_left_out_on_purpose():
    left_out = {
        "id",
        "source",
        "may_reference_environment",
        "revision",
        "created_at",
        "updated_at",
    }

    assert {field.name for field in ServerConfig._meta.concrete_fields} == left_out | set(EXPORTED_FIELDS)


def test_the_defaults_of_the_export_are_those_of_the_columns():
    assert entry_of() == {"type": "stdio"}


def test_null_and_placeholders_keep_what_is_stored():
    given = {"A": None, "B": "new", "C": "${input:c}", "D": None, "E": "${input:e}"}

    assert keep_stored_values(given, {"A": "old", "B": "old", "C": "old", "F": "gone"}) == {
        "A": "old",
        "B": "new",
        "C": "old",
        "D": "${input:D}",
        "E": "${input:e}",
    }


def test_null_keeps_what_is_stored_at_the_same_place():
    stored = {"oauth": {"secret": "s", "id": "a"}, "list": [{"token": "t"}], "old": 1}
    given = without_secrets_json({"oauth": {"secret": "s", "id": "b"}, "list": [{"token": "t"}]})

    assert given == {"oauth": {"secret": None, "id": "b"}, "list": [{"token": None}]}
    assert keep_stored_json(given, stored) == {"oauth": {"secret": "s", "id": "b"}, "list": [{"token": "t"}]}
    assert keep_stored_json({"oauth": {"secret": None}, "list": []}, {}) == {
        "oauth": {"secret": None},
        "list": [],
    }
