from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from mcp_client_app.datatypes import ToolAnnotations, ToolInfo
from mcp_client_app.json_schema import SchemaChecker, schema_problem
from mcp_client_app.toolsets import ToolRules, ToolSelection

GOOD = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
PROVIDERS = ("openai", "anthropic")


def selection_of(*schemas: Mapping[str, Any], **fields: Any) -> ToolSelection:
    tools = [
        ToolInfo(server="s", name=f"t{number}", input_schema=schema, **fields)
        for number, schema in enumerate(schemas)
    ]
    return ToolSelection(tools, ToolRules(all_servers=True))


def parameters(selection: ToolSelection, provider: str) -> list[dict[str, Any]]:
    if provider == "openai":
        return [tool["function"]["parameters"] for tool in selection.for_openai().tools]
    return [tool["input_schema"] for tool in selection.for_anthropic().tools]


def warnings(selection: ToolSelection, provider: str) -> tuple[str, ...]:
    return (selection.for_openai() if provider == "openai" else selection.for_anthropic()).warnings


def inner_schemas(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from inner_schemas(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from inner_schemas(value)


def acceptable(schema: dict[str, Any]) -> bool:
    """What both providers demand of a tool's schema."""
    return (
        schema["type"] == "object"
        and isinstance(schema["properties"], dict)
        and not {"anyOf", "oneOf", "allOf", "enum", "not"} & set(schema)
        and schema_problem(schema) is None
        and SchemaChecker(schema).problem is None
        and all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", key) for key in schema["properties"])
        and all("items" in inner for inner in inner_schemas(schema) if inner.get("type") == "array")
    )


def test_the_forms_of_the_providers():
    selection = selection_of(
        GOOD, description=" Finds. ", title="Find", annotations=ToolAnnotations(read_only=True)
    )
    assert selection.for_openai().tools == [
        {"type": "function", "function": {"name": "s__t0", "description": "Finds.", "parameters": GOOD}}
    ]
    assert selection.for_openai(api="responses").tools == [
        {"type": "function", "name": "s__t0", "description": "Finds.", "parameters": GOOD, "strict": False}
    ]
    assert selection.for_anthropic().tools == [
        {"name": "s__t0", "description": "Finds.", "input_schema": GOOD}
    ]
    assert selection.for_mcp().tools == [
        {
            "name": "s__t0",
            "title": "Find",
            "description": " Finds. ",
            "inputSchema": GOOD,
            "annotations": {"readOnlyHint": True},
        }
    ]


def test_an_empty_list_is_not_sent():
    empty = ToolSelection([], ToolRules())
    for listed in (empty.for_openai(), empty.for_anthropic(), empty.for_mcp()):
        assert listed.request() == {}
    assert list(selection_of(GOOD).for_openai().request()) == ["tools"]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": None, "properties": None, "required": None},
        {"type": ["object", "null"]},
        {"$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://example.com/x", **GOOD},
        {"properties": {"a": {"type": "array"}, "b": {"type": "object", "description": None}}},
        {"properties": {"pair": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}}},
        {"properties": {"none": {"type": "array", "items": []}}},
        {"properties": {"low": {"type": "number", "minimum": 1, "exclusiveMinimum": True}}},
        {"properties": {"odd": {"type": "string", "pattern": "(("}}, "patternProperties": {"((": True}},
        {"properties": {"n": {"type": "integer", "enum": [0, 1]}}, "additionalProperties": False},
        {"properties": {"n": {"type": "string", "enum": ["a", None]}, "e": {"enum": []}}},
        {"properties": {"n": {"enum": [None]}, "u": {"type": ["string", "null"]}}},
        {"properties": {"yes": True, "no": False}},
        {"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}}},
        {"$ref": "#/$defs/List%3Ca~1b~0%3E", "$defs": {"List<a/b~>": {"properties": {"a": True}}}},
        {"properties": {"tree": {"$ref": "#"}}},
        {"properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}}},
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/a"}}}}},
        {"oneOf": [{"properties": {"child": {"$ref": "#"}}}], "properties": {"z": {"$ref": "#/oneOf/0"}}},
        {"not": {"required": ["a", "b"]}},
        {"enum": [{}, {"a": 1}]},
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else value,
)
def test_what_can_be_said_otherwise_is_said_so_and_the_original_is_left_alone(schema: Any, provider: str):
    before = copy.deepcopy(schema)
    selection = selection_of(schema, GOOD)
    shown, good = parameters(selection, provider)
    assert acceptable(shown), shown
    assert not {"$ref", "$schema", "$id"} & set(shown)  # of another draft, or another base for references
    assert good == GOOD
    assert warnings(selection, provider) == ()
    assert schema == before
    json.dumps(shown)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"properties": {"a": {"type": "strng"}}}, "strng"),
        ({"properties": []}, "properties"),
        ({"properties": {"a": "text"}}, "cannot be used"),
        ({"properties": {"a": {"required": True}}}, "required"),
        ({"required": "a"}, "required"),
        ({"type": "string"}, "not an object"),
        ({"type": "array", "items": {}}, "not an object"),
        ({"properties": {"a": {"$ref": "#/$defs/nowhere"}}}, "nowhere"),
        ({"properties": {"a": {"$ref": "https://example.com/a.json"}}}, "lies elsewhere"),
        ({"properties": {"a": {"$ref": "other.json#/a"}}}, "lies elsewhere"),
        ({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}, "to itself"),
        ({"$ref": "#"}, "to itself"),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else value,
)
def test_one_tool_that_cannot_be_said_is_left_out_with_a_warning(schema: Any, reason: str, provider: str):
    selection = selection_of(schema, GOOD)  # L12
    assert parameters(selection, provider) == [GOOD]
    (warning,) = warnings(selection, provider)
    assert "s__t0" in warning
    assert reason in warning
    assert len(warning) < 600
    assert len(selection.for_mcp().tools) == 2


def test_depth_without_end_is_left_out():
    deep: dict[str, Any] = {}
    for _ in range(3000):
        deep = {"properties": {"a": deep}}
    itself: dict[str, Any] = {"type": "object"}
    itself["properties"] = {"a": itself}
    wide: dict[str, Any] = {"properties": {f"p{number}": {} for number in range(30_000)}}
    for provider in PROVIDERS:
        selection = selection_of(deep, itself, wide, GOOD)
        assert parameters(selection, provider) == [GOOD]
        assert len(warnings(selection, provider)) == 3


def test_what_needs_no_change_is_shared_not_copied():
    large = {"type": "object", "properties": {"deep": {"type": "object", "properties": {}}}}
    schema = {"properties": {"a": large, "b": {"type": "array"}}, "$defs": {"l": large}, "anyOf": [large]}
    for provider in PROVIDERS:
        (shown,) = parameters(selection_of(schema), provider)
        assert shown["$defs"] is schema["$defs"]
        assert shown["properties"]["tool_arguments"]["properties"]["a"] is large
        assert shown["properties"]["tool_arguments"]["anyOf"] is schema["anyOf"]


def test_a_wrapped_schema_means_what_the_original_means_and_calls_are_unwrapped():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "next": {"$ref": "#"}},
        "oneOf": [{"required": ["a"]}, {"required": ["next"]}],
    }
    selection = selection_of(schema)
    (shown,) = parameters(selection, "openai")
    values: list[dict[str, Any]] = [
        {"a": 1},
        {"next": {"a": 1}},
        {},
        {"a": 1, "next": {"a": 1}},
        {"next": {}},
        {"a": "x"},
    ]
    for value in values:
        wrapped = {"tool_arguments": value}
        fits = not SchemaChecker(schema).errors(value)
        assert fits is not bool(SchemaChecker(shown).errors(wrapped))
        if fits:
            assert selection.prepare("s__t0", wrapped).arguments == value
            assert selection.prepare("s__t0", value).arguments == value


def test_a_tool_with_an_argument_of_the_wrappers_name_gets_it():
    schema = {"properties": {"tool_arguments": {"type": "object"}}, "anyOf": [{}]}
    selection = selection_of(schema)
    (shown,) = parameters(selection, "anthropic")
    (wrapper,) = shown["properties"]
    inner = {"tool_arguments": {"x": 1}}
    assert selection.prepare("s__t0", inner).arguments == inner
    assert selection.prepare("s__t0", {wrapper: inner}).arguments == inner


def test_odd_names_of_arguments_are_wrapped_for_anthropic_alone():
    selection = selection_of({"properties": {"$top": {"type": "integer"}}})
    (shown,) = parameters(selection, "anthropic")
    assert acceptable(shown)
    assert list(parameters(selection, "openai")[0]["properties"]) == ["$top"]
    assert selection.prepare("s__t0", {"tool_arguments": {"$top": 1}}).arguments == {"$top": 1}


def test_choices_that_the_type_forbids_are_not_shown_but_the_check_is_the_originals():
    schema = {"properties": {"n": {"type": "integer", "enum": [0, 1, 2.0, None, "x", True]}}}
    (shown,) = parameters(selection_of(schema), "openai")
    assert shown["properties"]["n"]["enum"] == [0, 1, 2.0]


def test_openai_gets_at_most_128_tools_and_short_descriptions():
    listed = selection_of(*[GOOD] * 130, description="d" * 2000).for_openai()
    assert len(listed.tools) == 128
    assert {len(tool["function"]["description"]) for tool in listed.tools} == {1024}
    assert "2 are left out" in listed.warnings[-1]
    assert len(selection_of(*[GOOD] * 130).for_anthropic().tools) == 130


def test_a_public_name_that_a_provider_refuses_costs_that_tool():
    tools = [ToolInfo(server="s", name="x", public_name="a.b"), ToolInfo(server="s", name="y")]
    listed = ToolSelection(tools, ToolRules(all_servers=True)).for_openai()
    assert [tool["function"]["name"] for tool in listed.tools] == ["s__y"]
    assert "a.b" in listed.warnings[0]
