from __future__ import annotations

from typing import Any

from mcp_client_app.client import convert
from mcp_client_app.client.exchange import Exchange
from mcp_client_app.datatypes import Completion, PromptArgument, ServerSpec, Transport

SPEC = ServerSpec(name="srv", transport=Transport.STDIO, max_result_size=20)
OBJECT = {"type": "object"}


def result(raw: dict[str, Any], **options: Any) -> Any:
    exchange = Exchange(raw=raw, size=options.pop("size", 0), repairs=options.pop("repairs", []))
    return convert.tool_result(SPEC, "tool", {**raw, **options.pop("mended", {})}, exchange, **options)


def test_a_minimal_tool_has_defaults():
    tool = convert.tool_info("srv", {"name": "t", "inputSchema": OBJECT})
    assert (tool.public_name, tool.title, tool.description, tool.output_schema) == (
        "srv__t",
        None,
        None,
        None,
    )
    assert tool.annotations.read_only is None
    assert tool.icons == ()


def test_a_tool_keeps_all_that_was_said():
    item = {
        "name": "t",
        "title": "T",
        "description": "d",
        "inputSchema": OBJECT,
        "outputSchema": OBJECT,
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
        "icons": [{"src": "data:,"}],
        "_meta": {"k": 1},
    }
    tool = convert.tool_info("srv", item)
    assert (tool.title, tool.description, tool.meta, tool.warnings) == ("T", "d", {"k": 1}, ())
    hints = tool.annotations
    assert (hints.read_only, hints.destructive, hints.idempotent, hints.open_world) == (
        True,
        False,
        True,
        False,
    )
    assert tool.icons == ({"src": "data:,"},)


def test_the_title_among_the_annotations_is_second_choice():
    item = {"name": "t", "inputSchema": OBJECT, "annotations": {"title": "From the hints"}}
    assert convert.tool_info("srv", item).title == "From the hints"
    assert convert.tool_info("srv", {**item, "title": "Own"}).title == "Own"


def test_resources_templates_and_prompts_are_described():
    described = {"name": "n", "title": "t", "description": "d", "mimeType": "text/plain", "_meta": {"k": 1}}
    resource = convert.resource_info("srv", {"uri": "a://b", "size": 3, **described})
    template = convert.template_info("srv", {"uriTemplate": "a://{b}", **described})
    assert (resource.uri, resource.size, resource.mime_type) == ("a://b", 3, "text/plain")
    assert (template.uri_template, template.title, template.meta) == ("a://{b}", "t", {"k": 1})
    prompt = convert.prompt_info(
        "srv", {"name": "p", "arguments": [{"name": "x", "required": True}, {"name": "y"}]}
    )
    assert prompt.arguments == (PromptArgument("x", None, True), PromptArgument("y"))


def test_a_result_keeps_what_was_received_beside_what_was_mended():
    raw = {"content": None, "isError": True}
    found = result(raw, mended={"content": []}, repairs=["the result has no content"])
    assert found.raw is raw
    assert found.content == ()
    assert found.is_error
    assert found.warnings == ("the result has no content",)


def test_structure_that_the_typed_layer_refuses_is_still_handed_out():
    assert result({"content": [], "structuredContent": [1, 2]}).structured == [1, 2]


def test_a_result_over_the_limit_is_cut():
    found = result({"content": [{"type": "text", "text": "x" * 30}]}, size=100)
    assert found.truncated
    assert found.text.startswith("x" * 20 + "\n[cut")
    assert found.warnings == ("the result was cut to 20 bytes",)
    assert found.raw["content"][0]["text"] == "x" * 30


def test_an_answer_that_was_small_on_the_wire_is_not_measured_again():
    found = result({"content": [{"type": "text", "text": "short"}]}, size=20)
    assert not found.truncated


def test_a_repeated_call_is_marked():
    assert result({"content": []}, replayed=True).replayed


def test_completions_are_read():
    assert convert.completion({}) == Completion()
    found = convert.completion({"completion": {"values": ["a"], "total": 5, "hasMore": True}})
    assert found == Completion(("a",), 5, True)
