"""The callable toolset: what it shows, and what calls come to."""

from __future__ import annotations

import asyncio
import base64
import json
import re

import pytest
from django.core.exceptions import ImproperlyConfigured
from mcp.types import AudioContent, CallToolResult, ImageContent, TextContent

from mcp_client_app import services
from mcp_client_app.datatypes import AgentServerSpec, defer_input
from mcp_client_app.exceptions import (
    AsyncContextError,
    ConfigurationError,
    InputRequiredError,
    RequestTimeoutError,
)
from mcp_client_app.models import ToolCall
from mcp_client_app.services.toolset import Toolset
from mcp_client_app.testing import fake_server
from tests.servers.sdk_server import PNG, make_server
from tests.services.toolsets import calls_seen, logging_peer
from tests.stored import stored

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]


# Lists -----------------------------------------------------------------------------------


def test_the_lists_are_those_of_the_providers_without_fixed_arguments(the_shop):
    toolset = Toolset(["shop"], allowed_tools=["price", "echo"], fixed_arguments={"echo": {"text": "hi"}})

    price, echo = toolset.list_tools()
    assert (price.public_name, price.input_schema["required"]) == ("shop__price", ["article"])
    assert (echo.public_name, echo.input_schema["properties"]) == ("shop__echo", {})
    chat = toolset.for_openai().tools
    assert [tool["function"]["name"] for tool in chat] == ["shop__price", "shop__echo"]
    assert [tool["name"] for tool in toolset.for_openai(api="responses").tools] == [
        "shop__price",
        "shop__echo",
    ]
    assert [tool["name"] for tool in toolset.for_anthropic().tools] == ["shop__price", "shop__echo"]
    assert toolset.for_mcp().tools[0]["inputSchema"] == price.input_schema


def test_no_tools_are_no_list_at_all(the_shop):
    toolset = Toolset(["shop"], allowed_tools=[])
    assert toolset.for_openai().request() == {}
    assert toolset.for_anthropic().request() == {}


def test_odd_schemas_cost_their_own_tools_alone():
    stored("peer", "--scenario", "bad_tools=all")  # T09, T11, T12, T13, T14; L12
    toolset = Toolset(["peer"])

    selection, shown = toolset.selection(), toolset.for_openai()

    named = {tool["function"]["name"] for tool in shown.tools}
    assert {"peer__echo", "peer__recursive"} <= named
    left_out = set(selection.names) - named
    assert left_out
    assert all(any(name in warning for warning in shown.warnings) for name in left_out)
    assert toolset.call_tool("peer__echo", {"text": "x"}).text == "x"


def test_odd_and_long_names_have_public_names_that_lead_back(add_mcp_server):
    begin = "get_the_address_of_a_customer_by_the_number_of_the_order_" * 3
    names = [f"{begin}{end}" for end in ("s", "_all")] + ["a.b/c", "naïve", "漢字", "x" * 120]
    shop = fake_server("shop", tools={name: lambda name=name: name for name in names})
    add_mcp_server("a-shop-with-a-name-of-forty-characters-a", shop)  # T05, T06, T07, T08
    toolset = Toolset(["a-shop-with-a-name-of-forty-characters-a"])

    chat = [tool["function"]["name"] for tool in toolset.for_openai().tools]
    claude = [tool["name"] for tool in toolset.for_anthropic().tools]

    assert chat == claude == list(toolset.selection().names)
    assert len(set(chat)) == len(names)
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in chat)
    assert [toolset.call_tool(name).text for name in chat] == names
    assert [toolset.call_tool(name).text for name in names] == names


# Calls -----------------------------------------------------------------------------------


def test_a_call_gives_what_a_model_reads_and_what_the_server_sent(the_shop, make_user):
    user = make_user("call_tool")
    toolset = Toolset(["shop"], name="clerk", user=user)

    outcome = toolset.call_tool("SHOP__price ", '{"article": "oak"}', correlation_id="request-7")

    assert (outcome.name, outcome.is_error, outcome.error) == ("shop__price", False, None)
    assert json.loads(outcome.text) == {"article": "oak", "price": 3}
    assert outcome.for_openai() == outcome.text
    assert outcome.for_anthropic() == [{"type": "text", "text": outcome.text}]
    assert outcome.result is not None
    assert outcome.result.structured == {"article": "oak", "price": 3}
    row = ToolCall.objects.get()
    assert (row.user, row.agent, row.server_name, row.tool) == (user, "clerk", "shop", "price")
    assert (row.code, row.correlation_id) == ("ok", "request-7")


def test_a_failure_of_the_tool_is_a_result(the_shop):
    outcome = Toolset(["shop"]).call_tool("fail", {"message": "sold out"})

    assert (outcome.is_error, outcome.error) == (True, None)
    assert outcome.text == "Error calling mcp tool shop__fail: Error executing tool fail: sold out"
    assert outcome.result is not None
    assert outcome.result.is_error
    assert ToolCall.objects.get().code == "tool_failed"


def test_errors_are_raised_to_code_and_told_to_models(tmp_path, settings):
    logging_peer(tmp_path, "--scenario", "error_on_call=-32000")
    toolset = Toolset(["peer"])

    for failing, code in (("echo", "protocol_error"),):
        answer = toolset.answer(failing, {"text": "x"})
        assert answer.error is not None
        assert answer.error.code == code
        assert answer.result is None
        assert answer.text.startswith("Error calling mcp tool echo: ")
    settings.MCP_CLIENT_MODEL_ERROR_LENGTH = 5
    assert "more characters]" in toolset.answer("echo", {"text": "x"}).text


def test_a_call_has_a_time_limit(tmp_path):
    logging_peer(tmp_path)
    stored("mute", "--scenario", "mute", connect_timeout=0)
    toolset = Toolset(["peer", "mute"])
    services.connect("peer")

    for name in ("peer__hang", "mute__echo"):
        with pytest.raises(RequestTimeoutError):
            toolset.call_tool(name, timeout=0.05)


def test_progress_is_told_in_this_thread(add_mcp_server):
    add_mcp_server("peer", make_server())
    seen = []

    Toolset(["peer"]).call_tool("slow", {"steps": 2}, on_progress=lambda report: seen.append(report.message))

    assert seen == ["step 1", "step 2"]


def test_questions_of_servers_are_for_people_and_answers_go_back(tmp_path):
    ask = {
        "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    asked = {"who": {"method": "elicitation/create", "params": ask}}
    script = {"": {"inputRequests": asked, "requestState": "s1"}}
    logging_peer(tmp_path, "--era", "2026-07-28", "--scenario", f"asks={json.dumps(script)}")
    toolset = Toolset(["peer"])
    with pytest.raises(InputRequiredError) as caught:
        toolset.answer("echo", {"text": "x"}, on_input={"elicitation": defer_input})
    (request,) = caught.value.requests
    outcome = toolset.answer(
        "echo",
        {"text": "x"},
        input_responses={"who": request.accept({"name": "Ada"})},
        request_state=caught.value.request_state,
    )

    assert '"name": "Ada"' in outcome.text
    assert len(calls_seen(tmp_path)) == 2


def test_sync_forms_refuse_to_run_on_a_loop(the_shop):
    toolset = Toolset(["shop"])

    async def use(verb, *arguments):
        return verb(*arguments)

    for verb, arguments in (
        (toolset.selection, ()),
        (toolset.list_tools, ()),
        (toolset.for_openai, ()),
        (toolset.for_anthropic, ()),
        (toolset.for_mcp, ()),
        (toolset.connect, ()),
        (toolset.disconnect, ()),
        (toolset.status, ()),
        (toolset.add_server, ("x",)),
        (toolset.remove_server, ("x",)),
        (toolset.call_tool, ("price",)),
        (toolset.answer, ("price",)),
        (services.get_toolset, ("clerk",)),
    ):
        with pytest.raises(AsyncContextError, match=f"await a{verb.__name__}"):
            asyncio.run(use(verb, *arguments))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"allowed_tools": "echo"}, "allowed_tools"),
        ({"blocked_tools": [7]}, "blocked_tools"),
        ({"fixed_arguments": {"echo": ["secret"]}}, "fixed_arguments.echo"),
        ({"output_filters": {"echo": [{"cut": 0}]}}, "output_filters.echo[0]"),
        ({"approval": "sometimes"}, "approval"),
        ({"tool_approvals": {"echo": "maybe"}}, "tool_approvals.echo"),
        ({"validation": "perhaps"}, "validation"),
        ({"result_limit": 0.5}, "result_limit"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(options, field):
    with pytest.raises(ConfigurationError) as caught:
        Toolset(["shop"], **options)
    assert caught.value.field == field
    assert "secret" not in str(caught.value)


# Results ---------------------------------------------------------------------------------


def test_nothing_is_something_to_read(tmp_path):
    logging_peer(tmp_path, "--scenario", "empty_content")  # L07
    assert Toolset(["peer"]).call_tool("pid").text == "(The tool returned nothing.)"


def test_structured_content_alone_is_read_as_json(tmp_path):
    logging_peer(tmp_path, "--scenario", "structured_only")  # T19, L10
    assert json.loads(Toolset(["peer"]).call_tool("add", {"a": 1, "b": 2}).text) == {"answer": 42}


def test_unknown_blocks_are_told_and_cost_nothing(tmp_path):
    logging_peer(tmp_path, "--scenario", "unknown_blocks")  # T21
    outcome = Toolset(["peer"]).call_tool("echo", {"text": "x"})

    assert outcome.text.startswith("known\n")
    assert '"type":"video"' in outcome.text
    assert any("unknown type 'video'" in warning for warning in outcome.warnings)


def test_long_results_are_cut_by_the_most_particular_limit(tmp_path):
    logging_peer(tmp_path)  # L15
    server = AgentServerSpec(
        name="peer", result_limit=2000, result_limits={"big": 1000, "b*": 1500, "echo": 0}
    )
    toolset = Toolset([server], result_limit=100)

    outcome = toolset.call_tool("big", {"bytes": 200_000})
    assert outcome.text == "x" * 1000 + "\n[cut: 199000 more characters]"
    assert outcome.rendered.truncated
    assert toolset.call_tool("echo", {"text": "y" * 5000}).text == "y" * 5000
    outcome = Toolset(["peer"], result_limit=100).call_tool("big", {"bytes": 101})
    assert outcome.text == "x" * 100 + "\n[cut: 1 more characters]"


def shorten(result, tool):
    return f"{tool.name}: {result.text[:3]}"


def test_output_filters_come_before_the_limit(tmp_path):
    logging_peer(tmp_path)
    toolset = Toolset(
        [AgentServerSpec(name="peer", output_filters={"echo": [{"cut": 4}]})],
        output_filters={"echo": [{"cut": 2}], "*": [shorten], "cwd": [f"{__name__}.shorten"]},
    )

    cut = toolset.call_tool("echo", {"text": "abcdefgh"})
    assert cut.text == "abcd\n[cut: 4 more characters]"
    assert cut.result is not None
    assert cut.result.raw == {}
    assert toolset.call_tool("big", {"bytes": 50}).text == "big: xxx"
    assert toolset.call_tool("cwd").text.startswith("cwd: /")


def test_a_filter_that_fails_lets_nothing_through(tmp_path):
    logging_peer(tmp_path)

    def fails(result, tool):
        raise ValueError(result.text)

    outcome = Toolset(["peer"], output_filters={"*": [fails]}).call_tool("echo", {"text": "planted"})

    assert "planted" not in str((outcome.text, outcome.result, outcome.warnings))
    assert "not shown" in outcome.text
    assert outcome.warnings


# Binary content --------------------------------------------------------------------------


def media() -> object:
    def show() -> CallToolResult:
        def encoded(data: bytes) -> str:
            return base64.b64encode(data).decode()

        return CallToolResult(
            content=[
                TextContent(type="text", text="look"),
                ImageContent(type="image", data=encoded(PNG), mime_type="text/html"),
                AudioContent(type="audio", data=encoded(b"sound"), mime_type="audio/wav"),
                ImageContent(type="image", data=encoded(b"<script>"), mime_type="image/svg+xml"),
                ImageContent(type="image", data="!!", mime_type="image/png"),
            ]
        )

    return fake_server("media", tools={"show": show})


def test_binary_content_is_shown_or_noted_never_text(add_mcp_server):
    add_mcp_server("media", media())

    outcome = Toolset(["media"]).call_tool("show")

    assert outcome.text.splitlines() == [
        "look",
        "[image: text/html, 70 bytes, not shown]",
        "[audio: audio/wav, 5 bytes, not shown]",
        "[image: image/svg+xml, 8 bytes, not shown]",
        "[image: image/png, 1 bytes, not shown]",
    ]
    kinds = [block["type"] for block in outcome.for_anthropic()]
    assert kinds == ["text", "image", "text", "text", "text"]


@pytest.fixture
def _results_storage(settings, tmp_path):
    files = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}}
    settings.STORAGES = {**settings.STORAGES, "results": files}
    settings.MCP_CLIENT_RESULT_STORAGE = "results"


@pytest.mark.usefixtures("_results_storage")
def test_binary_content_is_kept_where_the_project_wants_it(add_mcp_server, tmp_path):
    add_mcp_server("media", media())

    lines = Toolset(["media"]).call_tool("show").text.splitlines()

    names = [line.rpartition("stored as ")[2].rstrip("]") for line in lines[1:4]]
    assert [name.rpartition(".")[2] for name in names] == ["png", "wav", "bin"]  # never what a browser runs
    assert [(tmp_path / name).read_bytes() for name in names] == [PNG, b"sound", b"<script>"]
    assert all(name.startswith("mcp_results/") for name in names)
    assert lines[4].endswith("not shown]")


@pytest.mark.usefixtures("_results_storage")
def test_a_storage_that_fails_costs_the_reference_alone(add_mcp_server, tmp_path, caplog):
    add_mcp_server("media", media())
    (tmp_path / "mcp_results").write_text("in the way")

    assert Toolset(["media"]).call_tool("show").text.count("not shown]") == 4
    assert "could not be stored" in caplog.text


def test_a_storage_that_is_none_stops_the_call_before_it_is_made(tmp_path, settings):
    logging_peer(tmp_path)
    settings.MCP_CLIENT_RESULT_STORAGE = "nowhere"

    with pytest.raises(ImproperlyConfigured, match="MCP_CLIENT_RESULT_STORAGE"):
        Toolset(["peer"]).call_tool("pid")
    assert calls_seen(tmp_path) == []
