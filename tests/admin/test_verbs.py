"""Buttons and list actions: what they do to real servers, and that no request waits long."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.models import LogEntry

from mcp_client_app import services
from mcp_client_app.admin import ServerConfigAdmin
from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.models import ServerConfig
from tests.admin import pages
from tests.admin.conftest import MakeStaff
from tests.stored import stored

# Servers are reached from threads of their own, which see only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)


def press(client, row: ServerConfig, verb: str, **data) -> list[str]:
    response = client.post(pages.url(verb, row), data)
    assert response.status_code == 302
    return pages.messages(response)


def act(client, action: str, *rows: ServerConfig) -> list[str]:
    data = {"action": action, "_selected_action": [row.pk for row in rows]}
    response = client.post(pages.url("changelist"), data)
    assert response.status_code == 302
    return pages.messages(response)


def state(name: str) -> ConnectionState:
    return services.server_status(name).state


def test_connect_and_disconnect(admin_client):
    row = stored()
    (said,) = press(admin_client, row, "connect")
    assert re.fullmatch(r"peer: ready: \d+ tools, \d+ resources, \d+ prompts\.", said)
    assert state("peer") is ConnectionState.READY

    (said,) = press(admin_client, row, "disconnect")
    assert said.startswith("peer: disconnected")
    assert state("peer") is ConnectionState.STOPPED
    row.refresh_from_db()
    assert row.stopped


def test_refresh_reads_the_lists_anew(admin_client):
    row = stored("peer", "--scenario", "list_changed")
    press(admin_client, row, "connect")
    before = services.server_status("peer").tools
    services.call_tool("peer__add", {"a": 1, "b": 2})
    (said,) = press(admin_client, row, "refresh")
    assert f"{before + 1} tools" in said


def test_a_test_tells_its_steps_and_leaves_the_connection_alone(admin_client):
    row = stored()
    (said,) = press(admin_client, row, "test")
    assert said.startswith("peer: the test succeeded: ✓ connect (")
    assert "✓ list (" in said
    assert state("peer") is ConnectionState.IDLE


def test_a_test_that_fails_says_why(admin_client):
    row = stored("peer", "--scenario", "exit_at_start=3")
    (said,) = press(admin_client, row, "test")
    assert "the test failed: ✗ connect (" in said
    assert "3" in said


def test_an_action_on_several_servers_tells_about_each(admin_client):
    rows = [
        stored("good"),
        stored("bad", "--scenario", "exit_at_start=3"),
        stored("off", enabled=False),
    ]
    said = {text.partition(":")[0]: text for text in act(admin_client, "connect_servers", *rows)}
    assert set(said) == {"good", "bad", "off"}
    assert "ready" in said["good"]
    assert "exited with code 3" in said["bad"]
    assert "disabled" in said["off"]
    assert state("good") is ConnectionState.READY


def test_a_server_that_hangs_does_not_keep_the_request_nor_the_others_waiting(admin_client, monkeypatch):
    monkeypatch.setattr(ServerConfigAdmin, "patience", 3.0)
    rows = [stored("hung", "--scenario", "mute", connect_timeout=120), stored("good")]
    said = {text.partition(":")[0]: text for text in act(admin_client, "connect_servers", *rows)}
    assert said["hung"] == "hung: still connecting after 3 seconds; its state will tell."
    assert "ready" in said["good"]
    assert state("hung") is ConnectionState.CONNECTING


def test_enable_and_disable(admin_client):
    rows = [stored("one", enabled=False), stored("two", enabled=False, command="")]
    said = act(admin_client, "enable_servers", *rows)
    assert said[0] == "one: Enabled."
    assert "needs a value" in said[1]
    assert list(ServerConfig.objects.values_list("name", "enabled")) == [("one", True), ("two", False)]
    act(admin_client, "disable_servers", *rows)
    assert not ServerConfig.objects.filter(enabled=True).exists()


def test_what_was_done_stands_in_the_history(admin_client):
    row = stored()
    press(admin_client, row, "connect")
    assert [entry.get_change_message() for entry in LogEntry.objects.all()] == ["Connect"]
    assert "Connect" in pages.text(admin_client.get(pages.url("history", row)))


def test_connecting_needs_only_its_own_permission(staff: MakeStaff):
    row = stored()
    client = staff("view_serverconfig", "connect_serverconfig")
    page = pages.text(client.get(pages.url("change", row)))
    assert f'action="{pages.url("connect", row)}"' in page
    assert "ready" in press(client, row, "connect")[0]
    assert "disconnected" in act(client, "disconnect_servers", row)[0]
    client.post(pages.url("changelist"), {"action": "disable_servers", "_selected_action": [row.pk]})
    row.refresh_from_db()
    assert row.enabled


@pytest.mark.parametrize("page", ["change", "offers"])
def test_a_button_leads_back_to_its_page(admin_client, page):
    row = stored(enabled=False)
    response = admin_client.post(pages.url("connect", row), {"back": page})
    assert response.url == pages.url(page, row)
