"""Stored servers: adding, changing, removing."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from mcp_client_app import services
from mcp_client_app.exceptions import (
    ConfigurationError,
    DuplicateServerError,
    StaleRevisionError,
    UnknownServerError,
)
from mcp_client_app.models import ServerConfig
from mcp_client_app.runtime import row_source
from tests.stored import peer_entry, peer_fields

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]


def add(name: str = "one", **fields: Any) -> ServerConfig:
    return services.add_server(name, **{**peer_fields(), **fields})


@pytest.mark.parametrize(
    ("fields", "transport"),
    [
        ({"command": "x"}, "stdio"),
        ({"url": "https://example.com/mcp"}, "streamable_http"),
        ({"in_process": "mine"}, "in_process"),
        ({"transport": "sse", "url": "https://example.com/sse"}, "sse"),
    ],
)
def test_the_transport_follows_from_what_is_given(fields, transport, settings):
    settings.MCP_CLIENT_IN_PROCESS_SERVERS = {"mine": "some.module.server"}

    assert services.add_server("one", **fields).transport == transport


@pytest.mark.parametrize("name", ["one", "ONE"])
def test_a_name_is_given_once(name):
    add("one")

    with pytest.raises(DuplicateServerError) as caught:
        add(name)

    assert caught.value.field == "name"
    assert ServerConfig.objects.count() == 1


def test_a_server_that_cannot_be_is_told_by_field():
    with pytest.raises(ValidationError) as caught:
        services.add_server("a__b", command="x", cwd="", url="https://example.com")

    assert set(caught.value.message_dict) == {"name", "url"}
    assert not ServerConfig.objects.exists()


@pytest.mark.parametrize("field", ["id", "revision", "source", "may_reference_environment", "nonsense"])
def test_what_is_no_field_to_set_is_refused(field):
    with pytest.raises(ConfigurationError, match=field):
        add(**{field: 1})  # type: ignore[arg-type]  # what is wrong is the point
    add()
    with pytest.raises(ConfigurationError, match=field):
        services.update_server("one", **{field: 1})


def test_only_given_fields_change():
    add(label="One", call_timeout=5)

    row = services.update_server("ONE", label="Uno")

    assert (row.label, row.call_timeout) == ("Uno", 5)
    assert ServerConfig.objects.get().label == "Uno"


def test_secrets_are_given_whole_and_none_keeps_a_value():
    add(env={"KEPT": "1", "CHANGED": "2", "GONE": "3"})

    services.update_server("one", env={"KEPT": None, "CHANGED": "4", "NEW": "5"})

    assert ServerConfig.objects.get().env == {"KEPT": "1", "CHANGED": "4", "NEW": "5"}
    with pytest.raises(ConfigurationError) as caught:
        services.update_server("one", env={"UNKNOWN": None})
    assert caught.value.field == "env.UNKNOWN"


def test_an_unseen_change_is_not_overwritten():
    seen = add().revision
    services.update_server("one", label="theirs")

    with pytest.raises(StaleRevisionError):
        services.update_server("one", expected_revision=seen, label="mine")

    assert ServerConfig.objects.get().label == "theirs"
    now = ServerConfig.objects.get().revision
    assert services.update_server("one", expected_revision=now, label="mine").label == "mine"


def test_what_is_not_there_is_told():
    for verb in (
        services.get_server,
        services.update_server,
        services.remove_server,
        services.enable_server,
        services.disable_server,
    ):
        with pytest.raises(UnknownServerError):
            verb("nobody")


def test_switching_on_and_off():
    add()

    assert not services.disable_server("one").enabled
    revision = ServerConfig.objects.get().revision
    assert services.disable_server("one").revision == revision, "nothing changed, so nothing is saved"
    assert services.enable_server("one").enabled
    assert ServerConfig.objects.get().enabled


def test_a_server_is_not_enabled_before_it_is_complete():
    add(enabled=False, env={"TOKEN": "${input:token}"})

    with pytest.raises(ValidationError):
        services.enable_server("one")

    assert not ServerConfig.objects.get().enabled


def test_removing_leaves_no_row():
    add()

    services.remove_server("ONE")

    assert services.list_servers() == []


def test_servers_of_the_settings_are_listed_and_switched_but_not_edited(settings):
    settings.MCP_CLIENT_SERVERS = {"theirs": peer_entry()}
    row_source.invalidate()

    assert [row.name for row in services.list_servers()] == ["theirs"]
    for edit in (
        lambda: services.update_server("theirs", label="x"),
        lambda: services.remove_server("theirs"),
    ):
        with pytest.raises(ConfigurationError, match="settings"):
            edit()
    assert not services.disable_server("theirs").enabled
    assert services.enable_server("theirs").enabled
