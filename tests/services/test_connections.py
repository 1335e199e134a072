"""Connecting, trying out, and how servers stand."""

from __future__ import annotations

import pytest

from mcp_client_app import services
from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.exceptions import ConfigurationError, UnknownServerError
from mcp_client_app.models import ServerConfig
from mcp_client_app.services import TestReport
from tests.stored import peer_entry

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]


def steps(report: TestReport) -> list[tuple[str, bool]]:
    return [(step.name, step.ok) for step in report.steps]


def test_status_connects_nothing(the_shop):
    assert services.server_status("SHOP").state is ConnectionState.IDLE
    assert [status.name for status in services.server_statuses()] == ["shop"]
    assert services.server_stderr("shop") == ()
    assert services.server_logs("shop") == ()


def test_connecting_gives_the_status(the_shop):
    status = services.connect("SHOP")

    assert (status.name, status.is_ready, status.tools) == ("shop", True, 3)
    assert services.refresh("shop").tools == 3


def test_all_are_connected_side_by_side_and_failures_are_told(the_shop, add_mcp_server):
    add_mcp_server("peer", peer_entry())
    add_mcp_server("gone", {"command": "surely-no-such-program"})
    add_mcp_server("off", peer_entry(), enabled=False)
    settled = []

    statuses = services.connect_all(on_progress=lambda name, status: settled.append((name, status.is_ready)))

    assert {name: status.is_ready for name, status in statuses.items() if status.enabled} == {
        "shop": True,
        "peer": True,
        "gone": False,
    }
    assert sorted(settled) == [("gone", False), ("peer", True), ("shop", True)]


def test_some_are_connected_by_name_whatever_its_case(the_shop, add_mcp_server):
    add_mcp_server("peer", peer_entry())

    assert set(services.connect_all(["SHOP"])) == {"shop"}

    assert services.server_status("peer").state is ConnectionState.IDLE
    with pytest.raises(UnknownServerError):
        services.connect_all(["shop", "nobody"])


def test_connecting_all_lifts_every_stop(the_shop):
    services.disconnect("shop")

    assert services.connect_all()["shop"].is_ready
    assert not ServerConfig.objects.get().stopped


def test_what_cannot_be_connected_is_raised(add_mcp_server):
    add_mcp_server("gone", {"command": "surely-no-such-program"})

    with pytest.raises(ConfigurationError):
        services.connect("gone")
    with pytest.raises(UnknownServerError):
        services.connect("nobody")
    with pytest.raises(UnknownServerError):
        services.disconnect("nobody")


# Trying out -----------------------------------------------------------------------------------


@pytest.mark.parametrize("era", [[], ["--era=2026-07-28"]], ids=["handshake", "modern"])
def test_a_test_goes_step_by_step(add_mcp_server, era):
    add_mcp_server("peer", peer_entry(*era))

    report = services.test_server("PEER")

    assert (report.server, report.ok) == ("peer", True)
    assert steps(report) == [("connect", True), ("list", True), ("ping", True), ("close", True)]
    assert all(step.seconds > 0 for step in report.steps)
    assert "faulty 1.0, protocol" in report.steps[0].detail
    assert "13 tools" in report.steps[1].detail
    assert report.status is not None
    assert report.status.is_ready


def test_a_test_leaves_the_running_connection_alone(add_mcp_server):
    add_mcp_server("peer", peer_entry())
    pid = services.connect("peer").pid

    report = services.test_server("peer")

    assert report.status is not None
    assert report.status.pid != pid
    assert services.server_status("peer").pid == pid
    assert services.server_status("peer").is_ready


def test_a_test_connects_nothing_else(add_mcp_server):
    add_mcp_server("peer", peer_entry())

    services.test_server("peer")

    assert services.server_status("peer").state is ConnectionState.IDLE


def test_a_test_ends_with_the_step_that_fails(add_mcp_server):
    add_mcp_server("gone", {"command": "surely-no-such-program"})

    report = services.test_server("gone")

    assert not report.ok
    assert steps(report) == [("connect", False)]
    assert "surely-no-such-program" in report.steps[0].detail
    assert report.status is None


def test_a_server_without_an_answer_to_a_ping_is_told(add_mcp_server):
    add_mcp_server("peer", peer_entry("--scenario=stop_reading=5"), list_timeout=0.5)

    report = services.test_server("peer")

    assert steps(report) == [("connect", True), ("list", True), ("ping", False)]


def test_what_is_not_there_cannot_be_tested():
    with pytest.raises(UnknownServerError):
        services.test_server("nobody")
