"""server-everything, driven fully over stdio, streamable HTTP and SSE: one set of tests, three transports."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.datatypes import ConnectionState, Progress, ToolResult
from mcp_client_app.exceptions import (
    InvalidArgumentsError,
    UnknownPromptError,
    UnknownResourceError,
    UnknownToolError,
)
from tests.published.conftest import Driven

# Installing the servers for the first time may take a while.
pytestmark = [pytest.mark.published, pytest.mark.timeout(600)]

SERVER = "everything"
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PATIENCE = 60
"""Seconds to wait for an event that the server sends of its own accord."""

TOOLS = {
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "simulate-research-query",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
}
"""What it offers to a client without sampling, elicitation and roots. Each is called below."""

Call = Callable[..., ToolResult]

TEXT_URI = "demo://resource/dynamic/text/3"
BLOB_URI = "demo://resource/dynamic/blob/3"


@pytest.fixture
def manager(everything: Driven) -> MCPClientManager:
    everything.manager.connect(SERVER)
    return everything.manager


@pytest.fixture
def call(manager: MCPClientManager) -> Call:
    """Call a tool of the server."""

    def call(tool: str, /, **arguments: Any) -> ToolResult:
        result: ToolResult = manager.call_tool(tool, arguments, server=SERVER)
        return result

    return call


# Connection and catalogue ------------------------------------------------------------


def test_the_status_tells_what_the_server_said_of_itself(manager: MCPClientManager) -> None:
    status = manager.status(SERVER)
    assert status.state is ConnectionState.READY
    assert status.protocol_version == "2025-11-25"
    assert status.server_name == "mcp-servers/everything"
    assert status.server_version == "2.0.0"
    assert status.instructions
    assert status.instructions.startswith("# Everything Server")
    assert {"tools", "resources", "prompts", "completions", "logging"} <= set(status.capabilities)
    assert (status.resource_templates, status.prompts) == (2, 4)


def test_every_tool_is_listed(manager: MCPClientManager) -> None:
    tools = {tool.name: tool for tool in manager.list_tools(SERVER, refresh=True)}
    assert set(tools) == TOOLS
    assert all(tool.input_schema["type"] == "object" for tool in tools.values())
    assert all(tool.description and not tool.warnings for tool in tools.values())
    assert tools["get-sum"].public_name == "everything__get-sum"
    assert tools["get-sum"].input_schema["required"] == ["a", "b"]
    assert tools["echo"].annotations.read_only is True
    assert tools["toggle-simulated-logging"].annotations.read_only is False
    assert {name for name, tool in tools.items() if tool.output_schema} == {"get-structured-content"}


# Tools -------------------------------------------------------------------------------


def test_a_tool_is_found_by_its_bare_and_by_its_public_name(manager: MCPClientManager) -> None:
    assert manager.call_tool("get-sum", {"a": 2, "b": 3}).text == "The sum of 2 and 3 is 5."
    assert manager.call_tool("everything__get-sum", {"a": 2, "b": 3}).text == "The sum of 2 and 3 is 5."


@pytest.mark.parametrize("message", ["plain", "Grüße, 世界 🚀\u2028line", "", "x" * 200_000])
def test_text_comes_back_unchanged(message: str, call: Call) -> None:
    assert call("echo", message=message).text == f"Echo: {message}"


@pytest.mark.parametrize(
    ("kind", "text", "annotations"),
    [
        ("success", "Operation completed successfully", {"priority": 0.7, "audience": ["user"]}),
        ("error", "Error: Operation failed", {"priority": 1, "audience": ["user", "assistant"]}),
    ],
)
def test_annotations_of_content_are_kept(
    kind: str, text: str, annotations: dict[str, Any], call: Call
) -> None:
    result = call("get-annotated-message", messageType=kind, includeImage=True)
    message, image = result.content
    assert result.text == message["text"] == text
    assert message["annotations"] == annotations
    assert image["type"] == "image"
    assert image["annotations"]["audience"] == ["user"]


def test_the_environment_is_the_server_s_own(everything: Driven, call: Call) -> None:
    environment = json.loads(call("get-env").text)
    assert "PATH" in environment
    if everything.manager.status(SERVER).pid is not None:
        assert environment["GREETING"] == "hello from the row"
        assert "DJANGO_SETTINGS_MODULE" not in environment


def test_resource_links_can_be_read(call: Call, manager: MCPClientManager) -> None:
    result = call("get-resource-links", count=2)
    links = [block["uri"] for block in result.content if block["type"] == "resource_link"]
    assert links == ["demo://resource/dynamic/blob/1", "demo://resource/dynamic/text/2"]
    assert manager.read_resource(SERVER, links[1]).text.startswith("Resource 2: ")


@pytest.mark.parametrize(("kind", "field"), [("Text", "text"), ("Blob", "blob")])
def test_embedded_resources_are_kept(kind: str, field: str, call: Call) -> None:
    result = call("get-resource-reference", resourceType=kind, resourceId=4)
    (resource,) = (block["resource"] for block in result.content if block["type"] == "resource")
    assert resource["uri"] == f"demo://resource/dynamic/{kind.lower()}/4"
    text = resource["text"] if field == "text" else base64.b64decode(resource["blob"]).decode()
    assert text.startswith("Resource 4: ")


def test_structured_content_comes_beside_the_text(call: Call) -> None:
    result = call("get-structured-content", location="Chicago")
    assert result.structured == {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
    assert json.loads(result.text) == result.structured
    assert not result.warnings


def test_an_image_is_kept_as_it_is(call: Call) -> None:
    images = [block for block in call("get-tiny-image").content if block["type"] == "image"]
    (image,) = images
    assert image["mimeType"] == "image/png"
    assert base64.b64decode(image["data"]).startswith(PNG_SIGNATURE)


def test_a_binary_result_and_the_resource_made_of_it_are_kept(call: Call, manager: MCPClientManager) -> None:
    data = "data:text/plain,hello"
    inline = call("gzip-file-as-resource", name="in.gz", data=data, outputType="resource")
    assert gzip.decompress(base64.b64decode(inline.content[0]["resource"]["blob"])) == b"hello"

    linked = call("gzip-file-as-resource", name="out.gz", data=data, outputType="resourceLink")
    uri = linked.content[0]["uri"]
    (content,) = manager.read_resource(SERVER, uri).contents
    assert content["mimeType"] == "application/gzip"
    assert gzip.decompress(base64.b64decode(content["blob"])) == b"hello"


def test_progress_is_reported_while_a_call_runs(manager: MCPClientManager) -> None:
    reports: list[Progress] = []
    result = manager.call_tool(
        "trigger-long-running-operation",
        {"duration": 0.2, "steps": 4},
        server=SERVER,
        on_progress=reports.append,
    )
    assert result.text == "Long running operation completed. Duration: 0.2 seconds, Steps: 4."
    assert [(report.progress, report.total) for report in reports] == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_log_messages_arrive(everything: Driven, call: Call) -> None:
    assert call("toggle-simulated-logging").text.startswith("Started simulated")
    try:
        message = everything.logs.get(timeout=PATIENCE)
    finally:
        assert call("toggle-simulated-logging").text.startswith("Stopped simulated")
    assert message.server == SERVER
    assert message.level in str(message.data).lower()


def test_resource_updates_that_nobody_asked_for_do_no_harm(call: Call) -> None:
    assert call("toggle-subscriber-updates").text.startswith("Started simulated")
    assert call("toggle-subscriber-updates").text.startswith("Stopped simulated")


def test_a_tool_that_needs_what_we_do_not_offer_says_so(call: Call) -> None:
    result = call("simulate-research-query", topic="tea")
    assert result.is_error
    assert "requires task augmentation" in result.text


def test_an_unknown_tool_is_refused(call: Call) -> None:
    with pytest.raises(UnknownToolError):
        call("no-such-tool")


# Resources ---------------------------------------------------------------------------


def test_resources_and_templates_are_listed(manager: MCPClientManager) -> None:
    documents = {resource.name: resource for resource in manager.list_resources(SERVER)}
    assert documents["features.md"].uri == "demo://resource/static/document/features.md"
    assert documents["features.md"].mime_type == "text/markdown"
    assert {"architecture.md", "startup.md", "structure.md"} <= set(documents)
    templates = {template.name: template.uri_template for template in manager.list_resource_templates(SERVER)}
    assert templates == {
        "Dynamic Text Resource": "demo://resource/dynamic/text/{resourceId}",
        "Dynamic Blob Resource": "demo://resource/dynamic/blob/{resourceId}",
    }


def test_resources_are_read(manager: MCPClientManager) -> None:
    assert manager.read_resource(SERVER, TEXT_URI).text.startswith("Resource 3: This is a plaintext")
    (blob,) = manager.read_resource(SERVER, BLOB_URI).contents
    assert base64.b64decode(blob["blob"]).startswith(b"Resource 3: This is a base64 blob")
    document = manager.read_resource(SERVER, "demo://resource/static/document/features.md")
    assert document.text.startswith("# Everything Server - Features")


def test_an_unknown_resource_is_an_error_of_that_server(manager: MCPClientManager) -> None:
    with pytest.raises(UnknownResourceError) as caught:
        manager.read_resource(SERVER, "demo://no-such-resource")
    assert caught.value.server == SERVER


# Prompts and completions -------------------------------------------------------------


def test_prompts_are_listed_with_their_arguments(manager: MCPClientManager) -> None:
    prompts = {prompt.name: prompt for prompt in manager.list_prompts(SERVER)}
    arguments = {
        name: [(argument.name, argument.required) for argument in prompt.arguments]
        for name, prompt in prompts.items()
    }
    assert arguments == {
        "simple-prompt": [],
        "args-prompt": [("city", True), ("state", False)],
        "completable-prompt": [("department", True), ("name", True)],
        "resource-prompt": [("resourceType", True), ("resourceId", True)],
    }
    assert prompts["completable-prompt"].title == "Team Management"


@pytest.mark.parametrize(
    ("prompt", "arguments", "text"),
    [
        ("simple-prompt", {}, "This is a simple prompt without arguments."),
        ("args-prompt", {"city": "Bern"}, "What's weather in Bern?"),
        ("args-prompt", {"city": "Bern", "state": "BE"}, "What's weather in Bern, BE?"),
        (
            "completable-prompt",
            {"department": "Sales", "name": "David"},
            "Please promote David to the head of the Sales team.",
        ),
    ],
)
def test_prompts_are_filled_in(
    prompt: str, arguments: dict[str, str], text: str, manager: MCPClientManager
) -> None:
    (message,) = manager.get_prompt(SERVER, prompt, arguments).messages
    assert message["role"] == "user"
    assert message["content"] == {"type": "text", "text": text}


def test_a_prompt_may_hold_a_resource(manager: MCPClientManager) -> None:
    arguments = {"resourceType": "Text", "resourceId": "3"}
    _, message = manager.get_prompt(SERVER, "resource-prompt", arguments).messages
    assert message["content"]["resource"]["uri"] == TEXT_URI


def test_an_unknown_prompt_is_an_error_of_that_server(manager: MCPClientManager) -> None:
    with pytest.raises(UnknownPromptError) as caught:
        manager.get_prompt(SERVER, "no-such-prompt", {})
    assert caught.value.server == SERVER


def test_a_prompt_that_the_server_refuses_tells_its_reason(manager: MCPClientManager) -> None:
    with pytest.raises(InvalidArgumentsError, match="Invalid arguments for prompt args-prompt"):
        manager.get_prompt(SERVER, "args-prompt", {})


def test_arguments_that_the_server_refuses_are_the_tool_s_own_failure(call: Call) -> None:
    result = call("get-sum", a="one", b=2)
    assert result.is_error
    assert "Input validation error" in result.text


def test_arguments_are_completed(manager: MCPClientManager) -> None:
    prompt = {"type": "ref/prompt", "name": "completable-prompt"}
    departments = manager.complete(SERVER, prompt, "department", "")
    assert departments.values == ("Engineering", "Sales", "Marketing", "Support")
    assert (departments.total, departments.has_more) == (4, False)
    assert manager.complete(SERVER, prompt, "department", "E").values == ("Engineering",)
    names = manager.complete(SERVER, prompt, "name", "", context={"department": "Engineering"})
    assert names.values == ("Alice", "Bob", "Charlie")
    template = {"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"}
    assert manager.complete(SERVER, template, "resourceId", "3").values == ("3",)
