"""Tools of an agent over REST: listed in a provider's form, called under the agent's rules."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from mcp_client_app import services
from mcp_client_app.models import AgentConfig, AgentServer, CallReceipt, ToolCall
from tests.api.conftest import Api, user_with
from tests.api.test_events import parsed
from tests.services.test_inputs import ASK, OPTIONS
from tests.stored import stored

STREAM = {"accept": "text/event-stream"}
SECRET = "planted-secret-4711-value"


def agent(*servers: Any, name: str = "support", fixed: dict[str, Any] | None = None, **fields: Any) -> None:
    """Store an agent that uses these servers."""
    row = AgentConfig.objects.create(name=name, **fields)
    for server in servers:
        AgentServer.objects.create(agent=row, server=server, fixed_arguments=fixed or {})


def call(api: Api, name: str, arguments: Any = None, *, place: str = "support/call/", **more: Any) -> Any:
    return api.post(f"agents/{place}", {"name": name, "arguments": arguments or {}, **more})


# Lists


@pytest.mark.parametrize(
    ("place", "schema"),
    [
        ("", lambda tool: tool["inputSchema"]),
        ("&format=mcp", lambda tool: tool["inputSchema"]),
        ("&format=openai", lambda tool: tool["function"]["parameters"]),
        ("&format=anthropic", lambda tool: tool["input_schema"]),
    ],
)
def test_tools_are_listed_as_a_provider_wants_them(api, place, schema):
    agent(stored("peer"), allowed_tools=["add"], fixed={"add": {"b": 2}})

    answer = api.get(f"agents/SUPPORT/tools/?wait=10{place}")

    assert answer.status_code == 200, answer.data
    [tool] = answer.data["tools"]
    assert (tool.get("name") or tool["function"]["name"]) == "peer__add"
    assert set(schema(tool)["properties"]) == {"a"}
    assert (answer.data["agent"], answer.data["format"]) == ("support", place.partition("=")[2] or "mcp")
    assert (answer.data["warnings"], answer.data["unavailable"]) == ([], [])


def test_listing_connects_nothing_unless_it_may_wait(api):
    agent(stored("peer"))
    answer = api.get("agents/support/tools/")
    assert answer.data["tools"] == []
    assert [each["server"] for each in answer.data["unavailable"]] == ["peer"]
    assert answer.data["unavailable"][0]["detail"]
    assert services.server_status("peer").state == "idle"


def test_a_server_that_is_away_hides_no_other(api):
    agent(stored("peer"), stored("dead", "--scenario=exit_at_start=1"), allowed_tools=["echo"])
    answer = api.get("agents/support/tools/?wait=10")
    assert [tool["name"] for tool in answer.data["tools"]] == ["peer__echo"]
    assert [each["server"] for each in answer.data["unavailable"]] == ["dead"]


@pytest.mark.parametrize("place", ["tools/?format=gemini", "tools/?wait=11", "tools/?wait=x"])
def test_a_list_is_asked_for_in_a_form_that_there_is(api, place):
    agent()
    answer = api.get(f"agents/support/{place}")
    assert (answer.status_code, answer.data["code"]) == (400, "invalid")


def test_the_formats_of_the_browsable_api_are_no_mistake(api):
    agent()
    answer = api.get("agents/support/tools/?format=json")
    assert (answer.status_code, answer.data["format"]) == (200, "mcp")
    assert b"<html" in api.get("agents/support/tools/", accept="text/html").content.lower()


# Calls


def test_a_tool_is_called_as_a_model_asks_for_it(api):
    agent(stored("peer"), fixed={"add": {"b": 40}})

    for arguments in ({"a": 2}, '{"a": 2}', {"a": 2, "b": 1}):
        answer = call(api, "peer__add", arguments, call_id="call_1")
        assert answer.status_code == 200, answer.data
        assert (answer.data["text"], answer.data["structured"]) == ("42", {"result": 42})

    expected = {
        "agent": "support",
        "name": "peer__add",
        "server": "peer",
        "tool": "add",
        "call_id": "call_1",
        "is_error": False,
        "code": None,
        "content": [{"type": "text", "text": "42"}],
        "warnings": [],
        "truncated": False,
    }
    assert {name: answer.data[name] for name in expected} == expected
    row = ToolCall.objects.latest("pk")
    assert (row.agent, row.username, row.correlation_id) == ("support", "admin", answer["X-Correlation-ID"])


def test_a_result_has_the_form_of_the_provider(api):
    agent(stored("peer"))
    body = {"name": "peer__echo", "arguments": {"text": "hi"}}
    assert api.post("agents/support/call/?format=openai", body).data["content"] == "hi"
    blocks = [{"type": "text", "text": "hi"}]
    assert api.post("agents/support/call/?format=anthropic", body).data["content"] == blocks


def test_a_failure_of_the_tool_is_a_result_with_the_line_for_the_model(api):
    agent(stored("peer"))
    answer = call(api, "peer__fail", {"message": "no such file"})
    assert (answer.status_code, answer.data["is_error"]) == (200, True)
    assert answer.data["text"] == "Error calling mcp tool peer__fail: no such file"


REFUSALS = [
    ({"name": "peer__none"}, 404, "unknown_tool"),
    ({"name": "PEER__Write "}, 403, "tool_blocked"),
    ({"name": "write"}, 403, "tool_blocked"),
    ({"name": "other__echo"}, 404, "unknown_tool"),
    ({"name": "peer__add", "arguments": {"a": "x"}}, 400, "invalid_arguments"),
    ({"name": "peer__add", "arguments": '{"a": '}, 400, "invalid_arguments"),
    ({"name": "peer__add", "arguments": "[]"}, 400, "invalid_arguments"),
    ({"name": "peer__echo", "arguments": {"text": "x"}, "approval": str(uuid.uuid4())}, 404, "unknown_run"),
]


@pytest.mark.parametrize(("body", "status", "code"), REFUSALS)
def test_what_may_not_be_called_is_refused_by_code(api, body, status, code):
    agent(stored("peer"), blocked_tools=["write"])
    stored("other")

    answer = api.post("agents/support/call/", body)
    assert (answer.status_code, answer.data["code"]) == (status, code), answer.data

    told = api.post("agents/support/call/", {**body, "for_model": True})
    assert (told.status_code, told.data["is_error"], told.data["code"]) == (200, True, code)
    assert told.data["text"].startswith("Error calling mcp tool ")
    assert told.data["content"] == [{"type": "text", "text": told.data["text"]}]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "peer__echo", "arguments": ["text"]},
        {"name": "peer__echo", "arguments": 1},
        {"name": "peer__echo", "approval": "x"},
        {"name": "peer__echo", "call_id": "x" * 201},
        {"name": "peer__echo", "timeout": 0},
    ],
)
def test_what_is_no_call_is_refused_by_field(api, body):
    agent(stored("peer"))
    answer = api.post("agents/support/call/", body)
    assert (answer.status_code, answer.data["code"]) == (400, "invalid")


def test_only_who_may_use_the_agent_calls_its_tools(api, api_as):
    agent(stored("peer"))
    agent(name="off", enabled=False)
    caller = api_as("call_tool", "view_agentconfig", name="caller")
    runner = api_as("run_agentconfig", name="runner")

    for place in ("tools/", "call/"):
        ask = caller.get if place == "tools/" else lambda where: call(caller, "peer__echo", place=where[7:])
        lacking = ask(f"agents/support/{place}")
        assert (lacking.status_code, lacking.data["permission"]) == (403, "mcp_client_app.run_agentconfig")
    assert call(runner, "peer__echo", {"text": "x"}).data["text"] == "x"
    for name in ("off", "none"):
        assert runner.get(f"agents/{name}/tools/").data["code"] == "unknown_agent"
        assert call(runner, "peer__echo", place=f"{name}/call/").data["code"] == "unknown_agent"


def test_fixed_arguments_come_out_nowhere(api):
    agent(stored("peer"), fixed={"echo": {"text": SECRET}, "add": {"b": SECRET}})
    answers = [
        api.get("agents/support/tools/?wait=10"),
        call(api, "peer__echo"),
        call(api, "peer__add", {"a": "x"}),
        call(api, "peer__add", {"a": 1}),
        call(api, "peer__add", {"a": 1}, for_model=True),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 400, 400, 200]
    for answer in answers:
        assert SECRET not in answer.content.decode()


def test_a_call_ends_with_the_request(api, settings):
    settings.MCP_CLIENT_REQUEST_TIMEOUT = 0.5
    agent(stored("peer"))
    services.connect("peer")
    limits: list[dict[str, Any]] = [{}, {"timeout": 600}]
    for more in limits:
        answer = call(api, "peer__hang", **more)
        assert (answer.status_code, answer.data["code"], answer.data["outcome"]) == (
            504,
            "timeout",
            "unknown",
        )


# Approval and input


def test_a_call_that_needs_approval_waits_for_it_and_is_made_once(api, tmp_path):
    agent(stored("peer"), approval="always")
    arguments = {"path": str(tmp_path / "out"), "text": "x"}

    asked = call(api, "peer__write", arguments)
    assert (asked.status_code, asked.data["code"]) == (409, "approval_required")
    assert (asked.data["server"], asked.data["tool"]) == ("peer", "write")
    approval = asked.data["approval"]
    assert call(api, "peer__write", arguments).data["approval"] == approval
    early = call(api, "peer__write", arguments, approval=approval)
    assert (early.status_code, early.data["code"], early.data["reason"]) == (
        409,
        "approval_invalid",
        "pending",
    )

    services.approve(approval, user=api.user)
    changed = call(api, "peer__write", {**arguments, "text": "y"}, approval=approval)
    assert (changed.status_code, changed.data["reason"]) == (409, "changed")
    answer = call(api, "peer__write", arguments, approval=approval)
    again = call(api, "peer__write", arguments, approval=approval)

    assert (answer.status_code, answer.data["is_error"]) == (200, False)
    assert (again.status_code, again.data["reason"]) == (409, "used")
    assert (tmp_path / "out").read_text().splitlines() == ["x"]


def test_approval_is_asked_for_although_failures_are_told_to_the_model(api):
    agent(stored("peer"), approval="always")
    answer = call(api, "peer__echo", {"text": "x"}, for_model=True)
    assert (answer.status_code, answer.data["code"]) == (409, "approval_required")


def test_what_a_server_asks_is_answered_by_another_request(api):
    agent(stored("safe", *OPTIONS))

    first = call(api, "safe__echo", {"text": "x"}, accept_input=["elicitation"], for_model=True)
    assert (first.status_code, first.data["code"]) == (409, "input_required")
    assert first.json()["input_requests"] == {"key": ASK}

    second = call(
        api,
        "safe__echo",
        {"text": "x"},
        input_responses={"key": {"action": "accept", "content": {"key": "k"}}},
        request_state=first.json()["request_state"],
    )
    assert second.status_code == 200
    reply = json.loads(second.data["text"])
    assert reply["inputResponses"] == {"key": {"action": "accept", "content": {"key": "k"}}}


# Idempotency


def test_a_call_that_is_sent_twice_runs_once(api, tmp_path):
    agent(stored("peer"))
    agent(name="other")
    arguments = {"path": str(tmp_path / "out"), "text": "x"}

    first, second = (call(api, "peer__write", arguments, idempotency_key="one") for _ in range(2))

    assert (tmp_path / "out").read_text().splitlines() == ["x"]
    assert (second.status_code, second.data) == (first.status_code, first.data)
    assert second["Idempotent-Replayed"] == "true"
    for place in ("other/call/", "support/call/?format=openai"):
        answer = call(api, "peer__write", arguments, place=place, idempotency_key="one")
        assert (answer.status_code, answer.data["code"]) == (422, "key_reused")


@pytest.mark.parametrize("for_model", [True, False])
def test_a_call_that_was_not_made_leaves_its_key_free(api, for_model):
    agent(stored("peer"), blocked_tools=["write"], approval="always")
    for name in ("peer__write", "peer__none", "peer__echo"):
        call(api, name, {"text": "x"}, idempotency_key="one", for_model=for_model)
        assert not CallReceipt.objects.exists()


# Progress


def test_progress_is_told_before_the_result(api):
    agent(stored("peer", "--scenario=progress=2"))
    body = {"name": "peer__echo", "arguments": {"text": "hello"}, "call_id": "c"}

    answer = api.post("agents/support/call/", body, **STREAM)
    *reports, (last, result) = parsed(b"".join(answer.streaming_content))

    assert [name for name, _ in reports] == ["progress", "progress"]
    assert (last, result["text"], result["call_id"], result["agent"]) == ("result", "hello", "c", "support")


def test_what_is_wrong_before_a_stream_begins_is_answered_as_ever(api):
    stranger = Api(user_with(name="stranger"))
    body = {"name": "peer__echo"}
    for answer, status in (
        (api.post("agents/none/call/", body, **STREAM), 404),
        (stranger.post("agents/none/call/", body, **STREAM), 403),
    ):
        assert (answer.status_code, answer["Content-Type"]) == (status, "application/json")
