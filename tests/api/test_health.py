from __future__ import annotations

import sys
import types

from mcp_client_app import __version__, services
from mcp_client_app.runtime import close_mcp_manager
from tests.stored import stored


def test_health_gives_numbers_and_connects_nothing(api_as, tmp_path):
    """D22."""
    stored("peer", f"--pid-file={tmp_path / 'pids'}")
    stored("off", enabled=False)

    answer = api_as().get("health")

    assert answer.status_code == 200
    assert answer.data == {
        "status": "ok",
        "version": __version__,
        "enabled": 1,
        "disabled": 1,
        "states": {"idle": 1},
    }
    assert not (tmp_path / "pids").exists()


def test_a_server_that_cannot_be_used_is_told_as_a_number(api_as):
    stored("dead", command="/no/such/program")
    services.connect_all()
    answer = api_as().get("health/")
    assert (answer.status_code, answer.data["status"], answer.data["states"]) == (
        200,
        "degraded",
        {"failed": 1},
    )
    assert "dead" not in answer.content.decode()


def test_health_is_public_only_if_the_settings_say_so(anonymous, settings):
    assert anonymous.get("health/").status_code == 403
    settings.MCP_CLIENT_API_PUBLIC_HEALTH = True
    assert anonymous.get("health/").status_code == 200
    assert anonymous.get("servers/").status_code == 403


def test_a_process_where_nothing_can_work_is_unavailable(api_as, monkeypatch):
    close_mcp_manager()
    uwsgi = types.ModuleType("uwsgi")
    uwsgi.opt = {}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "uwsgi", uwsgi)
    stored("peer")

    answer = api_as("view_serverconfig").get("health/")
    servers = api_as("view_serverconfig", name="viewer").get("servers/")

    assert (answer.status_code, answer.data["status"]) == (503, "unavailable")
    assert (servers.status_code, servers.data["results"][0]["status"]) == (200, None)
