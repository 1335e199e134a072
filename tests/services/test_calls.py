"""Calls through the choke point: the result, and the row that tells of it."""

from __future__ import annotations

import contextlib
import json
import logging
import threading

import pytest
from django.db import OperationalError, connection

from mcp_client_app import services, signals
from mcp_client_app.exceptions import (
    BadToolNameError,
    InvalidArgumentsError,
    MCPClientError,
    PermissionDeniedError,
    RequestTimeoutError,
    ToolBlockedError,
    ToolError,
    UnknownPromptError,
    UnknownResourceError,
    UnknownToolError,
)
from mcp_client_app.models import ToolCall
from tests.servers.sdk_server import make_server
from tests.services.conftest import shop
from tests.stored import peer_entry

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("the_shop")]


def only_row() -> ToolCall:
    return ToolCall.objects.get()


# Every verb writes a row ------------------------------------------------------------------


def test_a_call_tells_who_what_where_and_how_long(make_user, the_shop):
    user = make_user("call_tool")

    result = services.call_tool(
        "shop__price", {"article": "oak"}, user=user, agent="clerk", correlation_id="request-7"
    )

    assert result.structured == {"article": "oak", "price": 3}
    row = only_row()
    assert (row.user, row.username, row.agent) == (user, user.username, "clerk")
    assert (row.server, row.server_name, row.transport) == (the_shop, "shop", "in_process")
    assert (row.kind, row.tool, row.correlation_id) == ("tool", "price", "request-7")
    assert (row.code, row.is_error) == ("ok", False)
    assert row.duration_ms >= 0
    assert row.request_size == len(b'{"article":"oak"}')
    assert row.result_size > 0
    assert (row.arguments, row.result) == (None, None)


def test_a_bare_name_is_written_down_with_its_server():
    services.call_tool("price", {"article": "oak"})

    assert (only_row().server_name, only_row().tool) == ("shop", "price")


def test_reading_a_resource_is_written_down():
    assert services.read_resource("shop", "shop://hours").text == "9 to 5"

    assert (only_row().kind, only_row().tool, only_row().code) == ("resource", "shop://hours", "ok")


def test_a_prompt_is_written_down():
    prompt = services.get_prompt("shop", "greet", {"name": "Ada"})

    assert prompt.messages[0]["content"]["text"] == "Greet Ada."
    assert (only_row().kind, only_row().tool, only_row().code) == ("prompt", "greet", "ok")


def test_a_completion_is_written_down(add_mcp_server):
    add_mcp_server("peer", make_server())
    prompts = [prompt.name for prompt in services.list_prompts("peer").items]

    services.complete("peer", {"type": "ref/prompt", "name": prompts[0]}, "colour", "g")

    assert (only_row().kind, only_row().tool) == ("completion", prompts[0])


def test_finding_and_listing_leave_no_row():
    assert services.find_tool("price") is not None
    assert services.find_tool("nothing") is None
    assert {tool.name for tool in services.list_tools().items} == {"price", "fail", "echo"}
    assert [resource.uri for resource in services.list_resources("shop").items] == ["shop://hours"]
    assert len(services.list_resource_templates("shop").items) == 1
    assert [prompt.name for prompt in services.list_prompts("shop").items] == ["greet"]

    assert not ToolCall.objects.exists()


# How it ended ------------------------------------------------------------------------------


def test_a_failure_of_the_tool_is_a_result_and_told_as_one():
    result = services.call_tool("shop__fail", {"message": "sold out"})

    assert result.is_error
    assert (only_row().code, only_row().is_error) == ("tool_failed", True)


def test_a_failure_of_the_tool_can_be_raised():
    with pytest.raises(ToolError, match="sold out") as caught:
        services.call_tool("shop__fail", {"message": "sold out"}, raise_on_error=True)

    assert caught.value.result is not None
    assert only_row().code == "tool_failed"


def test_progress_is_told_in_the_callers_thread(add_mcp_server):
    add_mcp_server("peer", make_server())
    seen = []

    services.call_tool(
        "peer__slow", {"steps": 3}, on_progress=lambda report: seen.append(threading.current_thread())
    )

    assert seen
    assert set(seen) == {threading.current_thread()}


@pytest.mark.parametrize(
    ("call", "error", "server"),
    [
        (lambda: services.call_tool("shop__nothing"), UnknownToolError, "shop"),
        (lambda: services.call_tool("nothing"), UnknownToolError, ""),
        (lambda: services.call_tool("nobody__nothing"), UnknownToolError, "nobody"),
        (lambda: services.call_tool("a\nb"), BadToolNameError, ""),
        (lambda: services.call_tool("x" * 1000), BadToolNameError, ""),
        (lambda: services.read_resource("shop", "shop://nowhere/at/all"), UnknownResourceError, "shop"),
        (lambda: services.get_prompt("SHOP", "nothing"), UnknownPromptError, "shop"),
    ],
    ids=["tool", "bare", "server", "name", "long", "resource", "prompt"],
)
def test_what_is_not_there_is_written_down(call, error, server):
    with pytest.raises(error):
        call()

    row = only_row()
    assert (row.code, row.is_error, row.server_name) == (error.code, True, server)
    assert len(row.tool) <= 255


def test_a_call_that_a_filter_forbids_is_written_down(the_shop):
    the_shop.blocked_tools = ["price"]
    the_shop.save()

    with pytest.raises(ToolBlockedError):
        services.call_tool("shop__Price", {"article": "oak"})

    assert (only_row().code, only_row().server, only_row().tool) == ("tool_blocked", the_shop, "Price")


def test_a_call_that_is_denied_is_written_down(make_user):
    user = make_user("view_serverconfig")

    with pytest.raises(PermissionDeniedError):
        services.call_tool("shop__price", {"article": "oak"}, user=user)

    assert (only_row().code, only_row().user, only_row().server_name) == ("permission_denied", user, "shop")


def test_wrong_arguments_are_written_down():
    result_or_error: object = None
    try:
        result_or_error = services.call_tool("shop__price", {})
    except InvalidArgumentsError as error:
        result_or_error = error

    assert only_row().code in ("tool_failed", "invalid_arguments")
    assert result_or_error is not None


def test_a_call_without_an_answer_in_time_is_written_down(add_mcp_server):
    add_mcp_server("peer", peer_entry())

    with pytest.raises(RequestTimeoutError):
        services.call_tool("peer__hang", timeout=0.5)

    assert (only_row().code, only_row().server_name, only_row().transport) == ("timeout", "peer", "stdio")


def test_a_call_that_finds_no_server_in_time_is_written_down_without_one(add_mcp_server):
    add_mcp_server("peer", peer_entry("--scenario=mute"))

    with pytest.raises(RequestTimeoutError, match="No server finished") as caught:
        services.call_tool("somewhere", timeout=0.5)

    assert caught.value.server is None
    assert (only_row().code, only_row().server_name, only_row().tool) == ("timeout", "", "somewhere")


def test_arguments_that_are_no_json_are_told_as_such_and_written_down():
    with pytest.raises(MCPClientError):
        services.call_tool("shop__echo", {"text": object()})

    assert only_row().is_error


# The row and its surroundings ----------------------------------------------------------------


def test_a_site_may_do_without_rows(settings):
    settings.MCP_CLIENT_AUDIT = False

    services.call_tool("shop__price", {"article": "oak"})

    assert not ToolCall.objects.exists()


def test_payloads_are_kept_only_if_the_settings_say_so(settings):
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True

    services.call_tool("shop__price", {"article": "oak"})

    row = only_row()
    assert row.arguments == {"article": "oak"}
    assert row.result is not None
    assert row.result["structuredContent"] == {"article": "oak", "price": 3}


def test_kept_payloads_are_masked(settings, add_mcp_server):
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True
    add_mcp_server("peer", {**peer_entry(), "env": {"GREETING": "planted-greeting"}})

    deep = [{"api_key": "k3y", "note": "kept", "planted-greeting": 1}]
    services.call_tool("peer__env", {"password": "hunter2", "deep": deep})

    row = only_row()
    assert row.arguments == {"password": "***", "deep": [{"api_key": "***", "note": "kept", "***": 1}]}
    assert "planted-greeting" not in json.dumps(row.result)


def test_kept_payloads_are_cut(settings):
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True
    settings.MCP_CLIENT_AUDIT_PAYLOAD_SIZE = 20

    services.call_tool("shop__echo", {"text": "x" * 500})

    assert only_row().arguments == {"cut": '{"text":"xxxxxxxxxxx', "size": 511}
    kept = only_row().result
    assert kept is not None
    assert set(kept) == {"cut", "size"}


def test_no_arguments_are_too_deep_for_a_row(settings):
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True

    for more in ({}, {"password": "hunter2"}):
        with contextlib.suppress(InvalidArgumentsError):  # it depends on the transport
            services.call_tool("shop__echo", {"text": "hi", "more": nested(300), **more})

    plain, masked = ToolCall.objects.order_by("pk").values_list("arguments", flat=True)
    text = '{"text":"hi","more":' + "[" * 300 + "1" + "]" * 300
    end = ',"password":"***"}'
    assert plain == {"cut": text + "}", "size": len(text) + 1}
    assert masked == {"cut": text + end, "size": len(text + end)}


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object()])
def test_arguments_that_are_no_json_are_refused_with_a_row(settings, value):
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True
    circular: list[object] = [value]
    circular.append(circular)

    for wrong in (value, circular, nested(5000)):
        with pytest.raises(InvalidArgumentsError):
            services.call_tool("shop__echo", {"text": "hi", "more": wrong})

    rows = list(ToolCall.objects.values_list("code", "arguments"))
    assert rows == [("invalid_arguments", {"cut": "", "size": 0})] * 3


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_characters_that_databases_refuse_are_replaced(settings):
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True

    result = services.call_tool(
        "shop__echo", {"text": "nul \0 here"}, agent="a\0gent", correlation_id="id\0\ud800"
    )

    assert result.text == "nul \0 here"
    row = only_row()
    assert (row.agent, row.correlation_id) == ("a�gent", "id��")
    assert row.arguments == {"text": "nul � here"}


def test_a_row_that_cannot_be_written_never_costs_the_call(caplog):
    def failing(execute, sql, params, many, context):
        if sql.startswith("INSERT") and "toolcall" in sql:
            raise OperationalError("the database is away")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(failing):
        assert services.call_tool("shop__echo", {"text": "hi"}).text == "hi"

    assert "could not be written" in caplog.text
    assert not ToolCall.objects.exists()


def test_a_row_outlives_the_user_and_the_server(make_user, the_shop):
    user = make_user("call_tool")
    services.call_tool("shop__echo", {"text": "hi"}, user=user)

    user.delete()
    the_shop.delete()

    row = only_row()
    assert (row.user, row.server) == (None, None)
    assert (row.username, row.server_name) == ("user0", "shop")


def test_a_user_who_is_gone_meanwhile_is_told_by_name(make_user):
    user = make_user(is_superuser=True)
    type(user).objects.filter(pk=user.pk).delete()

    services.call_tool("shop__echo", {"text": "hi"}, user=user)

    assert (only_row().user, only_row().username) == (None, "user0")


def test_calls_are_logged_with_their_data(caplog):
    with caplog.at_level(logging.INFO, logger="mcp_client_app.calls"):
        services.call_tool("shop__echo", {"text": "private"}, correlation_id="c1")

    (record,) = [record for record in caplog.records if record.name == "mcp_client_app.calls"]
    assert vars(record)["mcp_server"] == "shop"
    assert vars(record)["mcp_tool"] == "echo"
    assert vars(record)["mcp_code"] == "ok"
    assert vars(record)["correlation_id"] == "c1"
    assert "private" not in caplog.text


def test_a_signal_tells_of_each_call(make_user):
    user = make_user("call_tool")
    seen = []

    def receiver(sender, signal, **kwargs):
        seen.append(kwargs)

    def failing(sender, **kwargs):
        raise ValueError("of the receiver")

    signals.tool_called.connect(failing)
    signals.tool_called.connect(receiver)
    try:
        services.call_tool("shop__echo", {"text": "hi"}, user=user, correlation_id="c1")
    finally:
        signals.tool_called.disconnect(receiver)
        signals.tool_called.disconnect(failing)

    (told,) = seen
    duration = told.pop("duration_ms")
    assert duration >= 0
    assert told == {
        "server": "shop",
        "tool": "echo",
        "kind": "tool",
        "code": "ok",
        "user": user,
        "correlation_id": "c1",
    }


def test_two_servers_of_one_tool_name_are_told_apart(add_mcp_server):
    add_mcp_server("other", shop())
    services.list_tools()

    with pytest.raises(MCPClientError) as caught:
        services.call_tool("price", {"article": "oak"})

    assert caught.value.code == only_row().code == "ambiguous_tool"
