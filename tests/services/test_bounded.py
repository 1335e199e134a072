"""Services on behalf of requests that have a limit of their own."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from mcp_client_app import services
from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.exceptions import PermissionDeniedError, RequestTimeoutError, StaleRevisionError
from mcp_client_app.models import ServerConfig
from tests.stored import close_connections, stored

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]


@pytest.mark.parametrize(
    ("at_most", "options", "limit"),
    [
        (None, {}, None),
        (None, {"timeout": 0}, 0),
        (25, {"timeout": 5}, 5),
        (25, {"timeout": 600}, 25),
        (25, {"timeout": 0}, 25),
        (25, {"server": "QUICK"}, 3),
        (25, {"tool": "quick__echo"}, 3),
        (2, {"server": "quick"}, 2),
        (25, {"server": "endless"}, 25),
        (25, {"server": "usual"}, 25),
        (90, {"server": "usual"}, 60),
        (90, {"server": "none"}, 90),
        (90, {"tool": "bare"}, 90),
    ],
)
def test_the_shortest_of_all_limits_holds(at_most, options, limit):
    stored("quick", call_timeout=3)
    stored("endless", call_timeout=0)
    stored("usual")

    assert services.call_limit(at_most, **options) == limit


def test_a_bare_name_has_the_longest_limit_of_all_servers():
    stored("quick", call_timeout=3)
    stored("slow", call_timeout=8)
    assert services.call_limit(25, tool="echo") == 8


def test_whoever_waits_no_longer_leaves_the_attempt_running(tmp_path):
    go = tmp_path / "go"
    stored("slow", f"--scenario=slow_start={go}")

    assert services.connect("slow", wait=0.1).state is ConnectionState.CONNECTING
    assert services.connect_all(["slow"], wait=0.1)["slow"].state is ConnectionState.CONNECTING
    go.touch()

    status = services.connect("slow")
    assert (status.is_ready, status.connects) == (True, 1)


async def test_the_async_twins_wait_as_long():
    await sync_to_async(stored)("hung", "--scenario=mute")
    try:
        assert (await services.aconnect("hung", wait=0.1)).state is ConnectionState.CONNECTING
        statuses = await services.aconnect_all(wait=0.1)
        assert statuses["hung"].state is ConnectionState.CONNECTING
        with pytest.raises(RequestTimeoutError):
            await services.arefresh("hung", wait=0.1)
        report = await services.atest_server("hung", wait=0.1)
        assert [(step.name, step.ok) for step in report.steps] == [("connect", False)]
    finally:
        await close_connections()


def test_lists_that_are_not_there_in_time_are_an_error():
    stored("hung", "--scenario=mute")
    with pytest.raises(RequestTimeoutError) as caught:
        services.refresh("hung", wait=0.1)
    assert (caught.value.server, caught.value.seconds, caught.value.sent) == ("hung", 0.1, False)


def test_a_test_is_over_in_time_and_says_what_it_waited_for():
    stored("hung", "--scenario=mute")
    [step] = services.test_server("hung", wait=0.1).steps
    assert (step.name, step.ok) == ("connect", False)
    assert "not ready within" in step.detail


def test_what_a_server_offered_last_is_known_while_it_is_away(make_user):
    stored("peer")
    assert services.last_known("tools", "peer") == ()
    services.connect("peer")
    services.disconnect("peer")

    assert len(services.last_known("tools", "peer")) == 13
    with pytest.raises(PermissionDeniedError):
        services.last_known("tools", "peer", user=make_user())


def test_one_servers_list_is_read_without_connecting_it():
    stored("peer")
    listing = services.list_tools("peer", wait=0)
    assert (listing.items, list(listing.errors)) == ((), ["peer"])


def test_a_server_that_has_changed_is_not_removed():
    row = stored("peer")
    with pytest.raises(StaleRevisionError):
        services.remove_server("peer", expected_revision=row.revision - 1)
    services.remove_server("peer", expected_revision=row.revision)
    assert not ServerConfig.objects.exists()


def test_who_may_not_change_servers_exports_no_paths_of_urls(make_user):
    ServerConfig.objects.create(name="remote", transport="sse", url="https://example.com/s3cret")

    masked = services.export_servers(user=make_user("view_serverconfig"))
    whole = services.export_servers(user=make_user("view_serverconfig", "change_serverconfig"))

    assert masked["mcpServers"]["remote"]["url"] == "https://example.com"
    assert whole["mcpServers"]["remote"]["url"] == "https://example.com/s3cret"
