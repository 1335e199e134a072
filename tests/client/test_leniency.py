"""Every repair, and that the SDK's typed layer takes what comes out."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from mcp_types import methods

from mcp_client_app.client.leniency import Repairer, placeholder
from mcp_client_app.datatypes import StrictOptions
from mcp_client_app.exceptions import ProtocolError

LEGACY = "2025-11-25"
OBJECT = {"type": "object"}
TOOL = {"name": "good", "inputSchema": OBJECT}


def repaired(
    method: str, result: dict[str, Any], *, modern: bool = False, strict: StrictOptions | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Repair, and check what holds for every repair."""
    repairer = Repairer("srv", strict) if strict is not None else Repairer("srv")
    repairer.modern = modern
    before = copy.deepcopy(result)
    mended, notes = repairer.repair(method, result)
    assert result == before, "what was received must not change"
    if not modern and mended.get("resultType") != "input_required":
        methods.validate_server_result(method, LEGACY, mended)
    return mended, notes


def tools(*items: Any, **options: Any) -> tuple[list[Any], list[str]]:
    mended, notes = repaired("tools/list", {"tools": list(items)}, **options)
    return mended["tools"], notes


def call(result: dict[str, Any], **options: Any) -> tuple[dict[str, Any], list[str]]:
    return repaired("tools/call", result, **options)


# In general --------------------------------------------------------------------------


def test_what_is_right_is_left_alone():
    result = {"content": [{"type": "text", "text": "a", "annotations": {"priority": 0.5}}], "isError": False}
    assert call(result) == (result, [])
    assert tools(TOOL) == ([TOOL], [])


def test_methods_that_are_not_known_pass():
    result = {"anything": object()}
    assert Repairer("srv").repair("x/y", result) == (result, [])


def test_broken_metadata_is_dropped_and_told():
    assert repaired("tools/list", {"tools": [], "_meta": [1]}) == ({"tools": []}, ["_meta was no object"])


ENVELOPE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


@pytest.mark.parametrize("envelope", [{}, {"resultType": 5, "ttlMs": -5, "cacheScope": "galaxy"}])
def test_in_the_new_era_a_broken_envelope_means_that_nothing_may_be_cached(envelope: dict[str, Any]):
    assert repaired("tools/list", {"tools": [], **envelope}, modern=True) == ({"tools": [], **ENVELOPE}, [])
    assert repaired("tools/call", {"content": [], **envelope}, modern=True)[0]["resultType"] == "complete"


def test_in_a_handshake_era_the_envelope_of_the_new_one_means_nothing():
    assert repaired("tools/list", {"tools": [], **ENVELOPE, "ttlMs": 5}) == ({"tools": []}, [])


def test_whoever_wants_contracts_kept_gets_an_error_instead_of_a_repair():
    strict = StrictOptions(contract_errors=True)
    with pytest.raises(ProtocolError, match=r"broke the contract of 'tools/list': tools was no list\."):
        repaired("tools/list", {"tools": None}, strict=strict)
    assert repaired("tools/list", {"tools": [TOOL]}, strict=strict)[1] == []


# Tools -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema", [None, {}, [], "object", {"type": None}, {"type": "array"}, {"type": ["object"]}, 7]
)
def test_a_tool_without_a_usable_input_schema_is_left_out_and_named(schema: Any):
    kept, (note,) = tools(TOOL, {"name": "bad", "inputSchema": schema})
    assert kept == [TOOL]
    assert note.startswith("tool 'bad': its inputSchema is")


@pytest.mark.parametrize("name", [None, "", "  ", 7, "two\nlines", "a\0b", "\x7f"])
def test_a_tool_without_a_usable_name_is_left_out(name: Any):
    kept, notes = tools(TOOL, {"name": name, "inputSchema": OBJECT})
    assert kept == [TOOL]
    assert len(notes) == 1


@pytest.mark.parametrize("item", [None, 5, "tool", [TOOL]])
def test_what_is_no_tool_at_all_is_left_out(item: Any):
    assert tools(TOOL, item) == ([TOOL], ["an entry of tools is no object"])


@pytest.mark.parametrize("schema", [{"$id": "x"}, {"type": "array"}, {}, "object", None])
def test_an_unusable_output_schema_costs_the_schema_not_the_tool(schema: Any):
    (tool,), notes = tools({**TOOL, "outputSchema": schema})
    assert tool == TOOL
    assert len(notes) == (0 if schema is None else 1)


def test_the_new_era_allows_output_schemas_of_any_type():
    (tool,), notes = tools({**TOOL, "outputSchema": {"type": "array"}}, modern=True)
    assert tool["outputSchema"] == {"type": "array"}
    assert notes == []


def test_optional_fields_of_a_wrong_kind_are_dropped_and_null_means_absent():
    wrong = {
        "description": 5,
        "title": ["t"],
        "icons": "icon",
        "_meta": "meta",
        "annotations": {"title": 1, "readOnlyHint": "yes", "idempotentHint": True},
    }
    (tool,), notes = tools({**TOOL, **wrong})
    assert tool == {**TOOL, "annotations": {"idempotentHint": True}}
    assert len(notes) == 6
    nulls = dict.fromkeys(["description", "title", "icons", "_meta", "annotations", "outputSchema"])
    assert tools({**TOOL, **nulls}) == ([TOOL], [])


def test_icons_without_a_source_are_dropped():
    icons = [{"src": "data:,"}, {"src": 5}, "icon"]
    (tool,), notes = tools({**TOOL, "icons": icons})
    assert tool["icons"] == [{"src": "data:,"}]
    assert len(notes) == 1


def test_odd_but_possible_schemas_pass_unchanged():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "strng"}, "b": {"default": None, "enum": [0, None]}},
        "$defs": {"N": {"$ref": "#/$defs/N"}},
    }
    assert tools({"name": "t", "inputSchema": schema})[0][0]["inputSchema"] == schema


# Other listings ----------------------------------------------------------------------


@pytest.mark.parametrize("cursor", [7, {"next": 1}, True])
def test_a_cursor_of_a_wrong_kind_ends_the_listing(cursor: Any):
    mended, notes = repaired("tools/list", {"tools": [TOOL], "nextCursor": cursor})
    assert "nextCursor" not in mended
    assert notes == ["nextCursor was no string"]


@pytest.mark.parametrize("cursor", [None, ""])
def test_an_empty_cursor_ends_the_listing_silently(cursor: Any):
    mended, notes = repaired("tools/list", {"tools": [TOOL], "nextCursor": cursor})
    assert "nextCursor" not in mended
    assert notes == []


def test_resources_get_a_name_and_lose_what_is_wrong():
    items = [
        {"uri": "a://b"},
        {"uri": "a://c", "name": "c", "size": "big", "annotations": {"audience": ["robots"], "priority": 7}},
        {"uri": "a://d", "name": "d", "size": True},
        {"name": "no uri"},
        {"uri": ""},
    ]
    mended, notes = repaired("resources/list", {"resources": items})
    assert mended["resources"] == [
        {"uri": "a://b", "name": "a://b"},
        {"uri": "a://c", "name": "c", "annotations": {}},
        {"uri": "a://d", "name": "d"},
    ]
    assert notes.count("a resource without uri") == 2


def test_templates_need_their_template():
    items = [{"uriTemplate": "a://{b}"}, {"uri": "a://b"}]
    mended, notes = repaired("resources/templates/list", {"resourceTemplates": items})
    assert mended["resourceTemplates"] == [{"uriTemplate": "a://{b}", "name": "a://{b}"}]
    assert notes == ["a resource without uriTemplate"]


def test_prompts_keep_their_good_arguments():
    arguments = [
        {"name": "a", "required": "yes", "description": 7},
        {"description": "no name"},
        "b",
        {"name": "c"},
    ]
    items = [{"name": "p", "arguments": arguments}, {"name": ""}, {"name": "q", "arguments": "all"}]
    mended, notes = repaired("prompts/list", {"prompts": items})
    assert mended["prompts"] == [{"name": "p", "arguments": [{"name": "a"}, {"name": "c"}]}, {"name": "q"}]
    assert "a prompt without a name" in notes


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ],
)
@pytest.mark.parametrize("value", [None, {}, "none", 0])
def test_a_listing_that_is_no_list_is_empty(method: str, key: str, value: Any):
    mended, notes = repaired(method, {key: value})
    assert mended[key] == []
    assert notes == [f"{key} was no list"]


# Results of calls --------------------------------------------------------------------


@pytest.mark.parametrize("result", [{}, {"content": None}])
def test_missing_content_is_no_content(result: dict[str, Any]):
    assert call(result) == ({"content": []}, ["the result has no content"])


def test_missing_content_beside_structure_is_nothing_to_speak_of():
    assert call({"structuredContent": {"a": 1}}) == ({"content": [], "structuredContent": {"a": 1}}, [])


def test_missing_content_can_be_refused():
    with pytest.raises(ProtocolError, match="without content"):
        call({"structuredContent": {}}, strict=StrictOptions(result_content=True))


@pytest.mark.parametrize(
    ("content", "text"), [("bare", "bare"), (7, "7"), ({"type": "text", "text": "a"}, "a")]
)
def test_content_that_is_no_list_is_one_block(content: Any, text: str):
    mended, notes = call({"content": content})
    assert mended["content"] == [{"type": "text", "text": text}]
    assert notes == ["content was no list"]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "video", "url": "a://b"},
        {"type": "image", "data": "QUJD"},
        {"type": "image", "mimeType": "image/png"},
        {"type": "audio"},
        {"type": "resource_link", "uri": "a://b"},
        {"type": "resource", "resource": {"uri": "a://b"}},
        {"type": "resource", "resource": "a://b"},
        {"type": "text"},
        {"type": "text", "text": ["a"]},
        {"type": None},
        {"text": "no type"},
        None,
        7,
        ["a"],
    ],
)
def test_an_unknown_or_broken_block_becomes_its_json(block: Any):
    good = {"type": "text", "text": "good"}
    mended, notes = call({"content": [good, block]})
    assert mended["content"] == [good, placeholder(block)]
    assert len(notes) == 1


def test_text_that_is_a_number_is_made_text_and_a_bare_string_is_a_block():
    mended, notes = call({"content": [{"type": "text", "text": 5}, "bare"]})
    assert mended["content"] == [{"type": "text", "text": "5"}, {"type": "text", "text": "bare"}]
    assert notes == ["a content block was no object"]


def test_annotations_of_blocks_lose_what_is_wrong():
    wrong = {"audience": "user", "priority": True, "lastModified": 5, "other": 1}
    block = {"type": "text", "text": "a", "annotations": wrong, "_meta": 7}
    mended, _ = call({"content": [block]})
    assert mended["content"] == [{"type": "text", "text": "a", "annotations": {"other": 1}}]
    right = {"audience": ["user"], "priority": 1, "lastModified": "2026-01-01"}
    block = {"type": "text", "text": "a", "annotations": right}
    assert call({"content": [block]})[0]["content"] == [block]


@pytest.mark.parametrize(("value", "meant"), [("true", True), (1, True), (0, False), (None, False)])
def test_an_error_flag_of_a_wrong_kind_counts_by_its_truth(value: Any, meant: bool):
    mended, notes = call({"content": [], "isError": value})
    assert mended["isError"] is meant
    assert notes == ["isError was no boolean"]


def test_structure_that_is_no_object_is_kept_from_the_old_typed_layer():
    assert call({"content": [], "structuredContent": [1]}) == (
        {"content": []},
        ["structuredContent was no object"],
    )
    assert call({"content": [], "structuredContent": None}) == ({"content": []}, [])
    assert call({"content": [], "structuredContent": [1]}, modern=True)[0]["structuredContent"] == [1]


@pytest.mark.parametrize("method", ["tools/call", "resources/read", "prompts/get"])
def test_a_request_for_input_is_left_alone(method: str):
    result = {"resultType": "input_required", "inputRequests": {}, "requestState": "s"}
    assert repaired(method, result, modern=True) == (result, [])


def test_what_json_cannot_hold_has_a_placeholder_too():
    assert placeholder({"a": {1}})["text"] == "{'a': {1}}"


# Other results -----------------------------------------------------------------------


def test_contents_of_resources_need_a_uri_and_text_or_blob():
    contents = [
        {"uri": "a://b", "text": "x", "mimeType": 7},
        {"uri": "a://c", "text": 5},
        {"uri": "a://d", "blob": None},
        {"text": "no uri"},
        "bare",
    ]
    mended, notes = repaired("resources/read", {"contents": contents})
    assert mended["contents"] == [
        {"uri": "a://b", "text": "x"},
        {"uri": "a://c", "text": "5"},
        {"uri": "a://d", "text": ""},
    ]
    assert len(notes) == 5
    assert repaired("resources/read", {"contents": None}) == ({"contents": []}, ["contents was no list"])


def test_messages_of_prompts_need_a_role_and_have_one_block():
    messages = [
        {"role": "user", "content": {"type": "text", "text": "a"}},
        {"role": "assistant", "content": "bare"},
        {"role": "user", "content": {"type": "video"}},
        {"role": "system", "content": {"type": "text", "text": "b"}},
        "bare",
    ]
    mended, notes = repaired("prompts/get", {"messages": messages, "description": 7})
    assert [message["content"]["text"] for message in mended["messages"]] == ["a", "bare", '{"type":"video"}']
    assert "description" not in mended
    assert len(notes) == 4
    assert repaired("prompts/get", {"messages": {}}) == ({"messages": []}, ["messages was no list"])


def test_completions_are_strings_a_hundred_at_most():
    completion = {"values": ["a", 5, *(["b"] * 200)], "total": "many", "hasMore": 1}
    mended, _ = repaired("completion/complete", {"completion": completion})
    assert mended["completion"] == {"values": ["a", *(["b"] * 99)]}
    assert repaired("completion/complete", {"completion": None})[0]["completion"] == {"values": []}


# The handshake -----------------------------------------------------------------------


def test_a_handshake_with_nothing_in_it_is_filled_in():
    mended, notes = repaired("initialize", {})
    assert mended == {
        "protocolVersion": LEGACY,
        "serverInfo": {"name": "unknown", "version": "unknown"},
        "capabilities": {},
    }
    assert len(notes) == 4


def test_an_unknown_version_can_be_kept_for_the_negotiation_to_refuse():
    result = {
        "protocolVersion": "2099-01-01",
        "serverInfo": {"name": "a", "version": "1"},
        "capabilities": {},
    }
    strict = StrictOptions(version_negotiation=True)
    assert repaired("initialize", result, strict=strict)[0]["protocolVersion"] == "2099-01-01"
    assert repaired("initialize", result)[0]["protocolVersion"] == LEGACY


def test_capabilities_that_are_true_count_and_others_do_not():
    result = {
        "protocolVersion": LEGACY,
        "serverInfo": {"name": "a", "version": "1", "title": 7, "icons": [{}]},
        "capabilities": {
            "tools": True,
            "prompts": False,
            "resources": {"listChanged": True},
            "logging": "yes",
        },
        "instructions": ["do"],
    }
    mended, _ = repaired("initialize", result)
    assert mended["capabilities"] == {"tools": {}, "resources": {"listChanged": True}}
    assert mended["serverInfo"] == {"name": "a", "version": "1", "icons": []}
    assert "instructions" not in mended


def test_discovery_keeps_its_versions():
    result = {"supportedVersions": ["2026-07-28"], "capabilities": None}
    mended, notes = repaired("server/discover", result, modern=True)
    assert mended == {"supportedVersions": ["2026-07-28"], "capabilities": {}, **ENVELOPE}
    assert notes == ["capabilities was no object"]
