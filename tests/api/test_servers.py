from __future__ import annotations

import os
import threading

import pytest

from mcp_client_app import services
from mcp_client_app.models import ServerConfig
from mcp_client_app.signals import server_state_changed
from tests.api.conftest import EDITOR
from tests.stored import stored

REMOTE = {
    "name": "remote",
    "transport": "streamable_http",
    "url": "https://example.com/mcp?key=s3cret-in-url",
}
SECRET = "s3cret-value-that-never-shows"


def remote(**fields) -> ServerConfig:
    return ServerConfig.objects.create(**{**REMOTE, **fields})


# Reading


def test_servers_are_listed_with_how_they_stand_here_and_elsewhere(api):
    stored("peer")
    stored("off", enabled=False)
    services.connect("peer")

    answer = api.get("servers/")

    assert answer.status_code == 200
    assert (answer.data["count"], answer.data["next"], answer.data["previous"]) == (2, None, None)
    off, peer = answer.data["results"]
    assert (off["name"], off["enabled"], off["status"]["state"], off["workers"]) == ("off", False, "idle", [])
    assert (peer["status"]["state"], peer["status"]["tools"]) == ("ready", 13)


def test_the_states_that_workers_have_written_down_are_shown(api):
    stored("peer")
    written = threading.Event()

    def told(status, **kwargs):
        # Sent after the row was written.
        if status.is_ready:
            written.set()

    server_state_changed.connect(told)
    try:
        services.connect("peer")
        assert written.wait(30)
    finally:
        server_state_changed.disconnect(told)

    [worker] = api.get("servers/peer/").data["workers"]
    [listed] = api.get("servers/").data["results"][0]["workers"]

    assert (worker["state"], worker["pid"], worker["tools"]) == ("ready", os.getpid(), 13)
    # Between the two answers the process may have reported again that it lives.
    assert {**listed, "seen_at": worker["seen_at"]} == worker


def test_a_list_of_servers_costs_the_same_however_many_there_are(api, django_assert_max_num_queries):
    for number in range(3):
        remote(name=f"r{number}")
    api.get("servers/")

    with django_assert_max_num_queries(6):
        three = api.get("servers/")
    for number in range(3, 30):
        remote(name=f"r{number}")
    api.get("servers/")
    with django_assert_max_num_queries(6):
        thirty = api.get("servers/")

    assert (three.data["count"], thirty.data["count"]) == (3, 30)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["alpha", "beta", "gamma"]),
        ("?search=ALPH", ["alpha"]),
        ("?search=words", ["beta"]),
        ("?transport=sse", ["gamma"]),
        ("?enabled=false", ["beta"]),
        ("?enabled=true&page_size=1&page=2", ["gamma"]),
    ],
)
def test_servers_are_found(api, query, names):
    remote(name="alpha")
    remote(name="beta", description="some words", enabled=False)
    remote(name="gamma", transport="sse")

    answer = api.get(f"servers/{query}")

    assert [server["name"] for server in answer.data["results"]] == names


@pytest.mark.parametrize("place", ["servers/Remote", "servers/REMOTE/"])
def test_a_server_is_found_by_its_name_whatever_the_case_with_and_without_a_final_slash(api, place):
    row = remote()

    answer = api.get(place)

    assert answer.status_code == 200
    assert answer.data["name"] == "remote"
    assert answer["ETag"] == f'"{row.revision}"'


def test_answers_are_not_kept_as_states_change_without_a_revision(api):
    remote()
    assert api.get("servers/remote/")["Cache-Control"] == "no-store"


# Secrets


def test_secrets_are_shown_as_keys_and_references_as_they_are(api):
    remote(headers={"Authorization": f"Bearer {SECRET}", "X-Ref": "${SOME_TOKEN}", "X-Todo": "${input:key}"})

    answer = api.get("servers/remote/")

    assert answer.data["headers"] == {
        "Authorization": {"set": True, "reference": None},
        "X-Ref": {"set": True, "reference": "${SOME_TOKEN}"},
        "X-Todo": {"set": False, "reference": "${input:key}"},
    }
    assert SECRET not in answer.content.decode()


def test_the_path_of_a_url_is_for_those_who_may_change_servers(api, api_as):
    remote()
    viewer = api_as("view_serverconfig")

    assert api.get("servers/remote/").data["url"] == REMOTE["url"]
    assert viewer.get("servers/remote/").data["url"] == "https://example.com"
    assert b"s3cret-in-url" not in viewer.get("servers/").content
    assert b"s3cret-in-url" not in viewer.get("export/").content


def test_a_url_that_is_a_reference_is_no_secret(api_as):
    remote(url="${REMOTE_URL}")
    assert api_as("view_serverconfig").get("servers/remote/").data["url"] == "${REMOTE_URL}"


def test_unknown_keys_of_an_import_are_shown_without_secrets(api):
    remote(extra={"colour": "blue", "apiKey": SECRET})
    answer = api.get("servers/remote/")
    assert answer.data["extra"] == {"colour": "blue", "apiKey": None}


# Creating


def test_a_server_is_created(api):
    answer = api.post("servers/", {**REMOTE, "headers": {"X-Key": SECRET}, "call_timeout": 5})

    assert answer.status_code == 201, answer.data
    assert answer["Location"] == "http://testserver/api/mcp/servers/remote/"
    row = ServerConfig.objects.get()
    assert answer["ETag"] == f'"{row.revision}"'
    assert (row.headers, row.call_timeout, row.transport) == ({"X-Key": SECRET}, 5.0, "streamable_http")
    assert SECRET not in answer.content.decode()


def test_the_transport_follows_from_what_is_given(api):
    answer = api.post("servers/", {"name": "local", "command": "npx", "args": ["-y", " spaced "]})

    assert (answer.status_code, answer.data["transport"]) == (201, "stdio")
    assert ServerConfig.objects.get().args == ["-y", " spaced "]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "bad name", "url": "https://example.com"}, "name"),
        ({"name": "one", "url": "ftp://example.com"}, "url"),
        ({"name": "one", "transport": "streamable_http"}, "url"),
        ({"name": "one", "command": "x", "env": {"A=B": "c"}}, "env"),
        ({"name": "one", "command": "x", "env": {"A": 1}}, "env"),
        ({"name": "one", "command": "x", "env": ["A"]}, "env"),
        ({"name": "one", "command": "x", "args": ["a\0b"]}, "args.0"),
        ({"name": "one", "command": "x", "args": "text"}, "args"),
        ({"name": "one", "command": "x", "args": [{"a": 1}]}, "args.0"),
        ({"name": "one", "command": "x", "blocked_tools": ["a\0"]}, "blocked_tools.0"),
        ({"name": "one", "command": "x", "call_timeout": -1}, "call_timeout"),
        ({"name": "one", "command": "x", "call_timeout": 10**400}, "call_timeout"),
        ({"name": "one", "command": "x", "max_concurrency": 10**12}, "max_concurrency"),
        ({"name": "one", "command": "x", "strict": ["nonsense"]}, "strict.0"),
        ({"name": "one", "command": "x", "link": "some.module"}, "link"),
        ({"name": "one", "command": "x", "transport": "carrier pigeon"}, "transport"),
        ({"url": "https://example.com"}, "name"),
    ],
)
def test_what_is_wrong_is_told_by_field(api, body, field):
    answer = api.post("servers/", body)

    assert answer.status_code == 400
    assert (answer.data["code"], answer.data["server"]) == ("invalid", None)
    assert list(answer.data["fields"]) == [field]
    assert field in answer.data["detail"]
    assert not ServerConfig.objects.exists()


def test_a_name_is_taken_whatever_its_case(api):
    remote()
    answer = api.post("servers/", {**REMOTE, "name": "REMOTE"})
    assert (answer.status_code, answer.data["code"]) == (409, "duplicate_server")


def test_characters_that_no_database_takes_are_replaced(api):
    answer = api.client.post(
        "/api/mcp/servers/",
        b'{"name": "one", "command": "x", "args": ["\\ud800"]}',
        content_type="application/json",
    )
    assert (answer.status_code, answer.data["args"]) == (201, ["�"])


# Running code


def test_a_server_that_runs_code_needs_the_permission(api_as):
    """D16."""
    editor = api_as(*EDITOR)

    for body in (
        {"name": "one", "command": "sh"},
        {"name": "one", "transport": "in_process", "in_process": "x"},
    ):
        answer = editor.post("servers/", body)
        assert (answer.status_code, answer.data["code"]) == (403, "permission_denied")
        assert answer.data["permission"] == "mcp_client_app.run_code_serverconfig"
    assert editor.post("servers/", REMOTE).status_code == 201
    answer = editor.patch("servers/remote/", {"transport": "stdio", "command": "sh", "url": ""})
    assert answer.status_code == 403
    stored("local", enabled=False)
    assert editor.patch("servers/local/", {"enabled": True}).status_code == 403
    assert not ServerConfig.objects.get(name="local").enabled


def test_a_reference_needs_the_permission(api_as):
    editor = api_as(*EDITOR)
    answer = editor.post("servers/", {**REMOTE, "headers": {"X-Key": "${DATABASE_PASSWORD}"}})
    assert (answer.status_code, list(answer.data["fields"])) == (400, ["headers"])


# Changing


def test_patch_changes_what_is_given_and_keeps_the_rest(api):
    remote(headers={"Keep": "kept", "Gone": "x", "Old": "old"}, description="before")

    answer = api.patch("servers/remote/", {"headers": {"Gone": None, "old": "new", "Added": "a"}})

    assert answer.status_code == 200, answer.data
    row = ServerConfig.objects.get()
    assert row.headers == {"Keep": "kept", "old": "new", "Added": "a"}
    assert row.description == "before"


def test_put_replaces_the_set_of_keys_and_keeps_values_that_it_does_not_know(api):
    remote(headers={"Keep": "kept", "Dropped": "x"}, description="before")
    shown = api.get("servers/remote/").data["headers"]

    answer = api.put("servers/remote/", {"headers": {"keep": shown["Keep"], "Added": "a"}})

    assert answer.status_code == 200, answer.data
    row = ServerConfig.objects.get()
    assert row.headers == {"Keep": "kept", "Added": "a"}
    assert row.description == "before"


def test_put_without_secrets_keeps_them(api):
    remote(headers={"Keep": "kept"})
    assert api.put("servers/remote/", {"description": "new"}).status_code == 200
    assert ServerConfig.objects.get().headers == {"Keep": "kept"}


def test_a_value_that_is_kept_has_to_be_there(api):
    remote()
    answer = api.patch("servers/remote/", {"headers": {"Missing": {}}})
    assert (answer.status_code, answer.data["field"]) == (409, "headers.Missing")


def test_a_name_never_changes(api):
    remote()

    answer = api.patch("servers/remote/", {"name": "other"})

    assert (answer.status_code, list(answer.data["fields"])) == (400, ["name"])
    assert api.patch("servers/REMOTE/", {"name": "Remote", "label": "L"}).data["name"] == "remote"


@pytest.mark.parametrize("field", ["source", "stopped", "extra", "created_at", "may_reference_environment"])
def test_what_is_not_the_clients_to_set_is_ignored(api, field):
    remote()
    before = getattr(ServerConfig.objects.get(), field)

    assert api.patch("servers/remote/", {field: "x", "label": "L"}).status_code == 200

    assert getattr(ServerConfig.objects.get(), field) == before


def test_an_unknown_server_is_404(api):
    for answer in (api.get("servers/none/"), api.patch("servers/none/", {}), api.delete("servers/none/")):
        assert (answer.status_code, answer.data["code"], answer.data["server"]) == (
            404,
            "unknown_server",
            "none",
        )


def test_a_server_of_the_settings_is_changed_there(api, settings):
    settings.MCP_CLIENT_SERVERS = {"configured": {"url": "https://example.com"}}

    assert api.get("servers/configured/").data["read_only"] is True
    for answer in (api.patch("servers/configured/", {"label": "x"}), api.delete("servers/configured/")):
        assert (answer.status_code, answer.data["code"]) == (409, "configuration")


# Two editors at once


def test_a_change_of_something_that_has_changed_meanwhile_is_refused(api):
    row = remote()
    seen = row.revision
    row.save()

    by_header = api.patch("servers/remote/", {"label": "x"}, if_match=f'"{seen}"')
    by_body = api.put("servers/remote/", {"label": "x", "revision": seen})
    deletion = api.delete("servers/remote/", if_match=f'"{seen}"')

    for answer in (by_header, by_body, deletion):
        assert (answer.status_code, answer.data["code"]) == (412, "stale_revision")
        assert (answer.data["expected"], answer.data["revision"]) == (seen, row.revision)
    assert ServerConfig.objects.get().label == ""


@pytest.mark.parametrize("tag", ['W/"1"', "1", '"x"', '"1", "2"'])
def test_a_tag_that_is_none_of_ours_fits_nothing(api, tag):
    remote()
    assert api.patch("servers/remote/", {"label": "x"}, if_match=tag).status_code == 412


def test_a_change_of_what_was_seen_succeeds_and_gives_the_next_tag(api):
    tag = api.post("servers/", REMOTE)["ETag"]

    first = api.patch("servers/remote/", {"label": "x"}, if_match=tag)
    second = api.patch("servers/remote/", {"label": "y", "revision": first.data["revision"]})
    third = api.patch("servers/remote/", {"label": "z"}, if_match="*")

    assert [answer.status_code for answer in (first, second, third)] == [200, 200, 200]
    assert len({tag, first["ETag"], second["ETag"], third["ETag"]}) == 4


def test_a_server_is_deleted(api):
    tag = api.post("servers/", REMOTE)["ETag"]

    answer = api.delete("servers/remote/", if_match=tag)

    assert (answer.status_code, answer.content) == (204, b"")
    assert not ServerConfig.objects.exists()
