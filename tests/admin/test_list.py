"""The list of servers: states of all processes, found with few queries and without connecting anything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcp_client_app.admin.overview import age
from mcp_client_app.models import ServerConfig, ServerState, WorkerProcess
from mcp_client_app.runtime import environment, started_manager
from tests.admin import pages

pytestmark = pytest.mark.django_db


def server(name: str, **fields) -> ServerConfig:
    return ServerConfig.objects.create(**{"name": name, "command": "npx", **fields})


def reported(row: ServerConfig, state: str, worker: WorkerProcess | None = None, **fields) -> ServerState:
    worker = worker or WorkerProcess.objects.create(host="elsewhere", pid=WorkerProcess.objects.count() + 1)
    return ServerState.objects.create(server=row, worker=worker, state=state, **fields)


def listing(client, **query) -> str:
    return pages.text(client.get(pages.url("changelist"), query))


def shown(client, **query) -> set[str]:
    response = client.get(pages.url("changelist"), query)
    return {row.name for row in response.context["cl"].result_list}


def test_looking_connects_nothing(admin_client, tmp_path):
    proof = tmp_path / "started"
    row = server("one", command="touch", args=[str(proof)])
    for address in (pages.url("changelist"), pages.url("change", row), pages.url("offers", row)):
        pages.text(admin_client.get(address))
    assert not proof.exists()
    manager = started_manager()
    assert manager is None or manager.connected_servers() == []


def test_a_state_of_another_process_is_shown_with_reason_and_age(admin_client):
    reported(
        server("one"),
        "backing_off",
        reason="The process ended with status 3.",
        since=timezone.now() - timedelta(minutes=5),
    )
    page = listing(admin_client)
    assert "backing off" in page
    assert "The process ended with status 3." in page
    assert "for 5\xa0minutes" in page


def test_trouble_of_one_process_is_not_hidden_by_the_others(admin_client):
    row = server("one")
    for state in ("ready", "failed", "ready"):
        reported(row, state)
    page = listing(admin_client)
    assert '<span class="mcp-state mcp-bad">failed</span>' in page
    assert "in 1 of 3 processes" in page
    assert "elsewhere:2" in page


def test_a_process_that_was_not_seen_for_long_does_not_count(admin_client):
    dead = WorkerProcess.objects.create(host="gone", pid=1, seen_at=timezone.now() - timedelta(hours=1))
    reported(server("one"), "ready", dead)
    assert "gone:1" not in listing(admin_client)
    assert shown(admin_client, state="ready") == set()


def test_disabled_is_shown_whatever_processes_report(admin_client):
    reported(server("one", enabled=False), "ready")
    assert '<span class="mcp-state mcp-off">disabled</span>' in listing(admin_client)


def test_the_list_comes_although_the_manager_cannot_start(admin_client, monkeypatch):
    # What gevent does to a process cannot be undone in it: say that it was done.
    monkeypatch.setattr(environment, "refuse_unsuitable", _refuse)
    monkeypatch.setattr("mcp_client_app.runtime.refuse_unsuitable", _refuse)
    row = server("one")
    assert "unknown" in listing(admin_client)
    assert "Nothing is known here" in pages.text(admin_client.get(pages.url("offers", row)))
    pages.text(admin_client.get(pages.url("change", row)))


def _refuse() -> None:
    from mcp_client_app.exceptions import ConfigurationError

    raise ConfigurationError("This process is monkey-patched.")


def test_the_number_of_queries_does_not_grow_with_the_servers(admin_client):
    worker = WorkerProcess.objects.create(host="elsewhere", pid=1)
    reported(server("s0"), "ready", worker)
    listing(admin_client)  # content types, snapshot
    with CaptureQueriesContext(connection) as few:
        listing(admin_client)
    for number in range(1, 20):
        reported(server(f"s{number}"), "ready", worker)
    listing(admin_client)
    with CaptureQueriesContext(connection) as many:
        listing(admin_client)
    assert len(many) <= len(few)


def test_servers_are_filtered_and_searched(admin_client):
    reported(server("up", description="the good one"), "ready")
    reported(server("down", enabled=False), "failed")
    server("far", transport="streamable_http", command="", url="https://example.com/mcp")
    assert shown(admin_client, state="ready") == {"up"}
    assert shown(admin_client, state="failed") == {"down"}
    assert shown(admin_client, state="none") == {"far"}
    assert shown(admin_client, transport__exact="streamable_http") == {"far"}
    assert shown(admin_client, enabled__exact="0") == {"down"}
    assert shown(admin_client, source__exact="database") == {"up", "down", "far"}
    assert shown(admin_client, q="good one") == {"up"}


@pytest.mark.parametrize("key", ["abc", "\0", "9" * 30, "-1", ""])
@pytest.mark.parametrize("action", ["connect", "export_servers", "delete_selected", "no such"])
def test_a_selection_that_nobody_can_have_made_is_no_failure_of_ours(admin_client, action, key):
    row = server("one")
    data = {"action": action, "_selected_action": [str(row.pk), key]}

    answer = admin_client.post(pages.url("changelist"), data)

    assert answer.status_code in ({200, 302} if key == "-1" else {400})
    assert ServerConfig.objects.get() == row


def test_servers_of_the_settings_are_listed_at_the_first_look(admin_client, settings):
    settings.MCP_CLIENT_SERVERS = {"fixed": {"command": "npx"}}
    assert shown(admin_client) == {"fixed"}


def test_reports_and_processes_are_shown_and_not_changed(admin_client):
    state = reported(server("one"), "ready")
    for model, row in (("serverstate", state), ("workerprocess", state.worker)):
        base = f"/admin/mcp_client_app/{model}/"
        assert "one" in pages.text(admin_client.get(f"{base}{row.pk}/change/"))
        assert "elsewhere" in pages.text(admin_client.get(base))
        assert admin_client.get(f"{base}add/").status_code == 403
        assert admin_client.post(f"{base}{row.pk}/delete/", {"post": "yes"}).status_code == 403
        assert admin_client.post(f"{base}{row.pk}/change/", {}).status_code == 403


@pytest.mark.parametrize("zones", [True, False])
def test_how_long_a_state_has_lasted_is_told_with_and_without_time_zones(settings, zones):
    settings.USE_TZ = zones

    assert age(datetime.now(UTC)) == age(timezone.now()) == "just now"
    assert age(datetime.now(UTC) - timedelta(hours=2)) == "for 2\xa0hours"
