from __future__ import annotations

import pytest

from mcp_client_app import services
from mcp_client_app.models import ToolCall
from mcp_client_app.runtime import get_mcp_manager
from tests.api.test_offers import store_sdk_peer
from tests.stored import stored


def test_a_tool_is_called_by_its_public_name_its_own_name_or_beside_its_server(api):
    stored("peer")

    for call in ({"name": "peer__echo"}, {"name": "echo"}, {"name": "echo", "server": "PEER"}):
        answer = api.call(arguments={"text": "hello"}, **call)
        assert answer.status_code == 200
        assert (answer.data["text"], answer.data["is_error"]) == ("hello", False)
        assert (answer.data["server"], answer.data["tool"]) == ("peer", "echo")
        assert answer.data["content"] == [{"type": "text", "text": "hello"}]


def test_structured_content_comes_along(api):
    stored("peer")
    assert api.call("peer__add", {"a": 1, "b": 2}).data["structured"] == {"result": 3}


def test_a_failure_of_the_tool_itself_is_a_result(api):
    stored("peer")
    answer = api.call("peer__fail", {"message": "no such file"})
    assert (answer.status_code, answer.data["is_error"], answer.data["text"]) == (200, True, "no such file")


def test_strange_values_of_a_server_do_not_break_the_answer(api):
    stored("peer", "--scenario=strange_values")
    answer = api.call("peer__echo", {"text": "x"})
    assert answer.status_code == 200
    assert answer.json()["text"]


@pytest.mark.parametrize(
    ("call", "status", "code"),
    [
        ({"name": "peer__none"}, 404, "unknown_tool"),
        ({"name": "none__echo"}, 404, "unknown_tool"),
        ({"name": "echo", "server": "none"}, 404, "unknown_server"),
        ({"name": "echo"}, 409, "ambiguous_tool"),
        ({"name": "peer__hang"}, 403, "tool_blocked"),
        ({"name": "peer__add", "arguments": {"a": 1}}, 400, "invalid_arguments"),
        ({"name": "a\nb"}, 400, "bad_tool_name"),
        ({"name": ""}, 400, "invalid"),
        ({"name": "peer__echo", "arguments": ["text"]}, 400, "invalid"),
        ({"name": "peer__echo", "arguments": None}, 400, "invalid"),
        ({"name": "peer__echo", "timeout": 0}, 400, "invalid"),
        ({"name": "peer__echo", "timeout": True}, 400, "invalid"),
    ],
)
def test_what_cannot_be_called_is_refused_by_code(api, call, status, code):
    stored("peer", blocked_tools=["hang"])
    stored("twin")
    services.connect_all()

    answer = api.post("tools/call/", call)

    assert (answer.status_code, answer.data["code"]) == (status, code), answer.data


def test_wrong_arguments_come_back_with_the_schema(api):
    stored("peer")
    answer = api.call("peer__add", {"a": 1})
    assert answer.data["schema"]["required"] == ["a", "b"]
    assert answer.data["arguments"] == {"a": 1}


def test_an_ambiguous_name_comes_back_with_the_candidates(api):
    stored("peer")
    stored("twin")
    services.connect_all()
    assert api.call("echo").data["candidates"] == ["peer__echo", "twin__echo"]


def test_a_server_that_dies_of_a_call_may_have_run_it(api):
    stored("peer", "--scenario=die_on_call=7")
    answer = api.call("peer__echo", {"text": "x"})
    assert (answer.status_code, answer.data["code"]) == (503, "server_crashed")
    assert (answer.data["outcome"], answer.data["exit_code"]) == ("unknown", 7)


def test_a_server_that_rests_says_when_to_try_again(api):
    stored("peer", "--scenario=exit_at_start=1")
    api.call("peer__echo", {"text": "x"})

    answer = api.call("peer__echo", {"text": "x"})

    assert (answer.status_code, answer.data["code"]) == (503, "server_unavailable")
    assert int(answer["Retry-After"]) >= 1


def test_an_error_of_the_protocol_is_the_servers(api):
    stored("peer", "--scenario=error_on_call=-32603")
    answer = api.call("peer__echo", {"text": "x"})
    assert (answer.status_code, answer.data["code"], answer.data["rpc_code"]) == (
        502,
        "protocol_error",
        -32603,
    )


# Time


def test_a_call_ends_with_the_request(api, settings):
    """D20: before the worker is killed, with the outcome unknown."""
    settings.MCP_CLIENT_REQUEST_TIMEOUT = 0.5
    stored("peer")
    services.connect("peer")

    for more in ({}, {"timeout": 600}):
        answer = api.call("peer__hang", **more)
        assert (answer.status_code, answer.data["code"], answer.data["outcome"]) == (
            504,
            "timeout",
            "unknown",
        )
    assert get_mcp_manager().status("peer").calls_in_flight == 0


def test_a_shorter_limit_of_the_client_or_the_server_holds(api):
    stored("peer", call_timeout=0.2)
    stored("other")
    services.connect_all()

    by_server = api.call("peer__hang")
    by_client = api.call("other__hang", timeout=0.2)

    for answer in (by_server, by_client):
        assert (answer.status_code, answer.data["seconds"]) == (504, 0.2)


def test_a_call_that_never_left_says_so(api, settings):
    settings.MCP_CLIENT_REQUEST_TIMEOUT = 0.5
    stored("hung", "--scenario=mute")
    answer = api.call("hung__echo", {"text": "x"})
    assert (answer.status_code, answer.data["outcome"]) == (504, "not_sent")


# The audit


def test_a_call_is_written_down_under_the_clients_correlation_id(api):
    stored("peer")

    answer = api.post(
        "tools/call/", {"name": "peer__echo", "arguments": {"text": "x"}}, x_correlation_id="mine.1"
    )

    assert answer["X-Correlation-ID"] == answer.data["correlation_id"] == "mine.1"
    row = ToolCall.objects.get()
    assert (row.correlation_id, row.username, row.server_name, row.tool) == (
        "mine.1",
        "admin",
        "peer",
        "echo",
    )


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "<script>"])
def test_a_correlation_id_of_another_form_is_replaced(api, given):
    stored("peer")
    answer = api.post(
        "tools/call/", {"name": "peer__echo", "arguments": {"text": "x"}}, x_correlation_id=given
    )
    assert answer.data["correlation_id"] not in ("", given)


def test_refusals_are_written_down_too(api_as, api):
    stored("peer", blocked_tools=["hang"])
    api.call("peer__hang")
    assert ToolCall.objects.get().code == "tool_blocked"


# Resources, prompts, completions


def test_a_resource_is_read(api):
    store_sdk_peer()

    text = api.post("resources/read", {"server": "SDK", "uri": "peer://notes"})
    missing = api.post("resources/read/", {"server": "sdk", "uri": "peer://none"})

    assert (text.status_code, text.data["text"]) == (200, "one\ntwo\n")
    assert text.data["contents"][0]["uri"] == "peer://notes"
    assert (missing.status_code, missing.data["code"], missing.data["uri"]) == (
        404,
        "unknown_resource",
        "peer://none",
    )
    assert set(ToolCall.objects.values_list("kind", "code")) == {
        ("resource", "ok"),
        ("resource", "unknown_resource"),
    }


def test_a_prompt_is_filled_in(api):
    store_sdk_peer()

    answer = api.post("prompts/get/", {"server": "sdk", "name": "paint", "arguments": {"thing": "a boat"}})

    assert answer.status_code == 200
    assert answer.data["messages"][0] == {
        "role": "user",
        "content": {"type": "text", "text": "Paint a boat red."},
    }
    assert api.post("prompts/get/", {"server": "sdk", "name": "none"}).status_code == 404


def test_an_argument_is_completed(api):
    store_sdk_peer()
    ref = {"type": "ref/prompt", "name": "paint"}

    answer = api.post("complete/", {"server": "sdk", "ref": ref, "argument": "colour", "value": "gr"})

    assert answer.status_code == 200
    assert (answer.data["values"], answer.data["total"], answer.data["has_more"]) == (
        ["green", "grey"],
        2,
        False,
    )
    wrong = api.post("complete/", {"server": "sdk", "ref": {"type": "ref/prompt"}, "argument": "x"})
    assert (wrong.status_code, list(wrong.data["fields"])) == (400, ["ref.name"])
