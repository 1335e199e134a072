from __future__ import annotations

import pytest

from mcp_client_app import services
from tests.stored import stored


@pytest.fixture
def history(api):
    """Three calls: one that succeeded, one whose tool failed, one that was refused."""
    stored("peer", blocked_tools=["hang"])
    api.post("tools/call/", {"name": "peer__echo", "arguments": {"text": "x"}}, x_correlation_id="first")
    api.call("peer__fail", {"message": "no"})
    api.call("peer__hang")
    return api


def test_calls_are_listed_newest_first(history):
    answer = history.get("calls")

    assert (answer.status_code, answer.data["count"]) == (200, 3)
    assert [row["tool"] for row in answer.data["results"]] == ["hang", "fail", "echo"]
    assert [row["code"] for row in answer.data["results"]] == ["tool_blocked", "tool_failed", "ok"]
    newest = answer.data["results"][0]
    assert (newest["server"], newest["username"], newest["kind"], newest["is_error"]) == (
        "peer",
        "admin",
        "tool",
        True,
    )
    assert newest["arguments"] is None


@pytest.mark.parametrize(
    ("query", "tools"),
    [
        ("code=ok", ["echo"]),
        ("tool=fail", ["fail"]),
        ("server=PEER", ["hang", "fail", "echo"]),
        ("server=other", []),
        ("username=admin&correlation_id=first", ["echo"]),
        ("kind=prompt", []),
        ("since=2999-01-01T00:00:00Z", []),
        ("page_size=1&page=2", ["fail"]),
    ],
)
def test_calls_are_found(history, query, tools):
    answer = history.get(f"calls/?{query}")
    assert [row["tool"] for row in answer.data["results"]] == tools


def test_a_wrong_parameter_is_told(history):
    answer = history.get("calls/?since=yesterday&kind=dream")
    assert (answer.status_code, set(answer.data["fields"])) == (400, {"since", "kind"})


def test_arguments_and_results_are_shown_if_they_are_kept(api, settings):
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True
    stored("peer")
    services.call_tool("peer__echo", {"text": "kept"})
    [row] = api.get("calls/").data["results"]
    assert row["arguments"] == {"text": "kept"}
    assert row["result"]["content"] == [{"type": "text", "text": "kept"}]
