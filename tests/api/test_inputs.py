"""A call that asks for input, over REST: the answer says for what, another request goes on."""

from __future__ import annotations

import json

import pytest

from mcp_client_app import services
from mcp_client_app.models import ToolCall
from tests.services.test_inputs import ASK, OPTIONS, SECRET
from tests.stored import stored


def answered(content: dict[str, str] | None = None, state: str | None = "opaque-state") -> dict[str, object]:
    return {
        "input_responses": {"key": {"action": "accept", "content": content or {"key": "k"}}},
        "request_state": state,
    }


@pytest.fixture
def asking(api):
    """A server that asks for a key in each call."""
    return stored("safe", *OPTIONS)


def test_the_answer_says_what_is_asked_for_and_another_request_goes_on(api, asking):
    first = api.call("safe__echo", {"text": "x"}, accept_input=["elicitation"])

    assert (first.status_code, first.data["code"]) == (409, "input_required")
    assert (first.data["server"], first.data["tool"]) == ("safe", "echo")
    assert first.json()["input_requests"] == {"key": ASK}

    second = api.call("safe__echo", {"text": "x"}, **answered(state=first.json()["request_state"]))

    assert second.status_code == 200
    reply = json.loads(second.data["text"])
    assert reply["requestState"] == "opaque-state"
    assert reply["inputResponses"] == {"key": {"action": "accept", "content": {"key": "k"}}}
    assert [call.code for call in ToolCall.objects.order_by("pk")] == ["input_required", "ok"]


def test_a_server_is_told_what_the_client_accepts_in_this_call(api, asking):
    services.connect("safe")
    without = json.loads(api.call("safe__echo", **answered()).data["text"])
    with_it = json.loads(api.call("safe__echo", accept_input=["elicitation"], **answered()).data["text"])
    assert "elicitation" not in without["capabilities"]
    assert "elicitation" in with_it["capabilities"]


def test_a_client_that_accepts_nothing_is_told_all_the_same(api, asking):
    answer = api.call("safe__echo")
    assert (answer.status_code, answer.json()["request_state"]) == (409, "opaque-state")


@pytest.mark.parametrize(
    ("more", "code", "named"),
    [
        ({"accept_input": ["everything"]}, "invalid", "accept_input"),
        ({"input_responses": {"key": "yes"}}, "invalid", "input_responses"),
        ({"input_responses": {"key": {}}}, "invalid_input", "'key'"),
        ({"input_responses": {"key": {"action": "shrug"}}}, "invalid_input", "'key'"),
        ({"request_state": {"a": 1}}, "invalid", "request_state"),
    ],
)
def test_what_cannot_be_an_answer_is_refused_by_name(api, asking, more, code, named):
    answer = api.call("safe__echo", **more)
    assert (answer.status_code, answer.data["code"]) == (400, code)
    assert named in answer.data["detail"]


def test_a_key_repeats_the_question_and_is_not_for_going_on(api, asking):
    header = {"Idempotency-Key": "once"}
    body = {"name": "safe__echo", "arguments": {"text": "x"}, "accept_input": ["elicitation"]}
    first = api.post("tools/call/", body, **header)
    again = api.post("tools/call/", body, **header)
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again["Idempotent-Replayed"] == "true"

    assert api.post("tools/call/", {**body, **answered()}, **header).status_code == 422
    header = {"Idempotency-Key": "twice"}
    assert api.post("tools/call/", {**body, **answered()}, **header).status_code == 200
    assert ToolCall.objects.count() == 2


def test_a_stream_ends_with_the_question(api, asking):
    body = {"name": "safe__echo", "arguments": {"text": "x"}, "accept_input": ["elicitation"]}
    answer = api.post("tools/call/", body, Accept="text/event-stream")
    text = b"".join(answer.streaming_content).decode()
    event = json.loads(text.partition("event: error\ndata: ")[2].splitlines()[0])
    assert (event["status"], event["code"], event["request_state"]) == (409, "input_required", "opaque-state")


def test_the_answers_are_in_no_answer_of_the_audit(api, asking, settings):
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True
    api.call("safe__fail", {"message": "x"}, **answered({"key": SECRET}))
    (row,) = api.get("calls/").json()["results"]
    assert SECRET not in json.dumps(row["arguments"])


def test_prompts_and_resources_ask_and_go_on_too(api, asking):
    requests = {
        "prompts/get/": {"server": "safe", "name": "paint"},
        "resources/read/": {"server": "safe", "uri": "peer://x"},
    }
    for place, body in requests.items():
        first = api.post(place, {**body, "accept_input": ["elicitation"]})
        assert (first.status_code, first.json()["input_requests"]) == (409, {"key": ASK})
        second = api.post(place, {**body, **answered()})
        assert second.status_code == 200
        assert "opaque-state" in json.dumps(second.json())
