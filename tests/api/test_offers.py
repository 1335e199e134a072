from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from mcp_client_app import services
from mcp_client_app.models import ServerConfig
from mcp_client_app.runtime import get_mcp_manager
from tests.stored import ROOT, stored

SDK_PEER = ROOT / "tests" / "servers" / "sdk_stdio.py"


def store_sdk_peer() -> None:
    ServerConfig.objects.create(
        name="sdk",
        transport="stdio",
        command=sys.executable,
        args=["-m", "tests.servers.sdk_stdio"],
        cwd=str(ROOT),
    )


def names(answer) -> list[str]:
    return [item["public_name"] for item in answer.data["results"]]


def pids(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("place", ["tools", "tools/", "servers/peer/tools/", "resources", "prompts/"])
def test_a_list_connects_nothing(api, tmp_path, place):
    """D22."""
    stored("peer", f"--pid-file={tmp_path / 'pids'}")

    answer = api.get(place)

    assert answer.status_code == 200
    assert (answer.data["count"], answer.data["results"]) == (0, [])
    assert answer.data["errors"]["peer"]["code"] == "server_unavailable"
    assert "not connected" in answer.data["errors"]["peer"]["detail"]
    assert pids(tmp_path / "pids") == []


def test_a_list_waits_if_it_is_told_to(api):
    stored("peer")

    answer = api.get("tools/?wait=10")

    assert (answer.data["count"], answer.data["errors"]) == (13, {})


def test_one_server_that_cannot_be_had_never_hides_the_others(api):
    stored("good")
    stored("dead", command="/no/such/program")
    stored("off", enabled=False)

    answer = api.get("tools/?wait=10")

    assert {item["server"] for item in answer.data["results"]} == {"good"}
    assert list(answer.data["errors"]) == ["dead"]
    assert answer.data["errors"]["dead"]["code"] == "configuration"


def test_waiting_for_one_server_connects_no_other(api, tmp_path):
    stored("wanted")
    stored("other", f"--pid-file={tmp_path / 'pids'}")

    answer = api.get("tools/?server=WANTED&wait=10")

    assert (answer.data["count"], answer.data["errors"]) == (13, {})
    assert pids(tmp_path / "pids") == []


def test_tools_are_described(api):
    stored("peer")
    services.connect("peer")

    [tool] = api.get("tools/?search=adds two").data["results"]

    assert tool["name"] == "add"
    assert tool["public_name"] == "peer__add"
    assert tool["server"] == "peer"
    assert tool["input_schema"]["required"] == ["a", "b"]
    assert tool["output_schema"]["required"] == ["result"]
    assert tool["annotations"] == {
        "title": None,
        "read_only": True,
        "destructive": False,
        "idempotent": True,
        "open_world": False,
    }
    assert (tool["available"], tool["reason"]) == (True, "")


def test_the_tools_of_a_server_that_is_away_are_shown_as_unavailable_with_the_reason(api):
    stored("peer")
    services.connect("peer")
    services.disconnect("peer")

    answer = api.get("tools/")

    assert answer.data["errors"]["peer"]["code"] == "not_connected"
    assert len(answer.data["results"]) == 13
    assert {item["available"] for item in answer.data["results"]} == {False}
    assert "has been disconnected" in answer.data["results"][0]["reason"]
    assert len(api.get("servers/peer/tools").data["results"]) == 13


def test_tools_that_a_filter_forbids_are_not_listed(api):
    stored("peer", allowed_tools=["add", "e*"], blocked_tools=["echo"])
    services.connect("peer")
    assert names(api.get("tools/")) == ["peer__add", "peer__env"]


def test_pages_of_tools_lead_to_each_other(api):
    stored("peer")
    services.connect("peer")

    first = api.get("tools/?page_size=10")
    second = api.client.get(first.data["next"])

    assert (first.data["count"], len(first.data["results"]), len(second.data["results"])) == (13, 10, 3)
    assert second.data["previous"] is not None
    beyond = api.get("tools/?page=99")
    assert (beyond.status_code, beyond.data["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("kind", "key", "first"),
    [
        ("resources", "uri", "peer://notes"),
        ("resource-templates", "uri_template", "peer://colours/{colour}"),
        ("prompts", "name", "paint"),
    ],
)
def test_the_other_kinds_are_listed_over_all_servers_and_for_one(api, kind, key, first):
    store_sdk_peer()
    services.connect("sdk")

    for place in (f"{kind}/", f"servers/sdk/{kind}/", f"{kind}?server=sdk&search={first[:7]}"):
        answer = api.get(place)
        assert answer.status_code == 200
        assert answer.data["results"][0][key] == first


@pytest.mark.parametrize("query", ["wait=11", "wait=-1", "wait=soon", "search=%00"])
def test_a_wrong_parameter_is_told_by_name(api, query):
    answer = api.get(f"tools/?{query}")
    assert (answer.status_code, list(answer.data["fields"])) == (400, [query.partition("=")[0]])


@pytest.mark.parametrize("place", ["tools/?server=none", "servers/none/tools/", "servers/none/prompts"])
def test_a_list_of_an_unknown_server_is_404(api, place):
    answer = api.get(place)
    assert (answer.status_code, answer.data["code"]) == (404, "unknown_server")


def test_a_list_of_a_disabled_server_says_so(api):
    stored("off", enabled=False)
    answer = api.get("servers/off/tools/")
    assert (answer.status_code, answer.data["results"]) == (200, [])
    assert "disabled" in answer.data["errors"]["off"]["detail"]


def test_a_server_that_hangs_does_not_delay_a_list(api, tmp_path):
    stored("hung", "--scenario=mute")
    stored("good")
    services.connect("good")
    attempt = threading.Thread(target=lambda: services.connect_all(["hung"], wait=0.01))
    attempt.start()
    attempt.join(30)
    assert get_mcp_manager().status("hung").state == "connecting"

    answer = api.get("tools/")

    assert len(answer.data["results"]) == 13
    assert list(answer.data["errors"]) == ["hung"]
