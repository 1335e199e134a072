from __future__ import annotations

import pytest

from mcp_client_app.models import ServerConfig

SECRET = "s3cret-value-that-never-shows"
CONFIG = {
    "mcpServers": {
        "remote": {"url": "https://example.com/mcp", "headers": {"X-Key": SECRET}, "colour": "blue"},
        "broken": {"type": "carrier pigeon"},
        "local": {"command": "npx", "args": ["-y", "thing"]},
    }
}


def actions(answer) -> dict[str, str]:
    return {entry["name"]: entry["action"] for entry in answer.data["entries"]}


def test_a_dry_run_says_what_would_happen_and_changes_nothing(api):
    answer = api.post("import/", {"config": CONFIG, "dry_run": True})

    assert answer.status_code == 200
    assert answer.data["dry_run"] is True
    assert actions(answer) == {"remote": "create", "broken": "error", "local": "create"}
    assert not ServerConfig.objects.exists()


def test_one_bad_entry_never_sinks_the_others(api):
    answer = api.post("import", {"config": CONFIG})

    assert (answer.data["created"], answer.data["failed"]) == (["remote", "local"], ["broken"])
    assert answer.data["entries"][1]["error"]
    assert set(ServerConfig.objects.values_list("name", flat=True)) == {"remote", "local"}
    assert SECRET not in answer.content.decode()


def test_the_text_of_a_file_is_as_good_as_its_content(api):
    text = '{"servers": {"one": {"type": "http", "url": "https://example.com"}}, /* comment */ }'
    assert api.post("import/", {"config": text}).data["created"] == ["one"]


def test_what_is_imported_can_be_chosen_and_switched(api):
    answer = api.post("import/", {"config": CONFIG, "only": ["remote"], "enable": False})
    assert actions(answer) == {"remote": "create"}
    assert not ServerConfig.objects.get().enabled


def test_servers_that_run_code_arrive_disabled_without_the_permission(api_as):
    client = api_as("add_serverconfig", "change_serverconfig")
    assert client.post("import/", {"config": CONFIG, "enable": True}).status_code == 200
    assert ServerConfig.objects.get(name="remote").enabled
    assert not ServerConfig.objects.get(name="local").enabled


def test_an_export_comes_back_with_the_secrets_that_are_stored(api):
    api.post("import/", {"config": CONFIG})

    answer = api.get("export")

    assert answer.status_code == 200
    entry = answer.data["mcpServers"]["remote"]
    assert (entry["headers"], entry["colour"]) == ({"X-Key": None}, "blue")
    assert SECRET not in answer.content.decode()
    again = api.post("import/", {"config": answer.json()})
    assert set(actions(again).values()) == {"unchanged"}
    assert ServerConfig.objects.get(name="remote").headers == {"X-Key": SECRET}


def test_servers_to_export_are_named(api):
    api.post("import/", {"config": CONFIG})
    assert list(api.get("export/?name=LOCAL").data["mcpServers"]) == ["local"]
    missing = api.get("export/?name=local,none")
    assert (missing.status_code, missing.data["server"]) == (404, "none")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "invalid"),
        ({"config": 3}, 400, "invalid"),
        ({"config": "no json"}, 409, "configuration"),
        ({"config": "[]"}, 409, "configuration"),
        ({"config": CONFIG, "only": "remote"}, 400, "invalid"),
    ],
)
def test_what_cannot_be_imported_is_told(api, body, status, code):
    answer = api.post("import/", body)
    assert (answer.status_code, answer.data["code"]) == (status, code), answer.data
