from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.exceptions import InvalidArgumentsError
from mcp_client_app.json_schema import SchemaChecker
from mcp_client_app.toolsets import (
    FixedArguments,
    ServerRules,
    ToolRules,
    ToolSelection,
    hide_arguments,
    merge_arguments,
)

SEARCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "mode": {"type": "string", "enum": ["fast", "deep"]},
        "token": {"type": "string"},
    },
    "required": ["query", "mode"],
    "additionalProperties": False,
}


def selection_of(
    fixed: FixedArguments, schema: dict[str, Any] = SEARCH, agent: FixedArguments | None = None
) -> ToolSelection:
    tool = ToolInfo(server="web", name="search", input_schema=schema)
    rules = ToolRules(servers={"web": ServerRules(fixed_arguments=fixed)}, fixed_arguments=agent or {})
    return ToolSelection([tool], rules)


def test_nothing_fixed_leaves_the_very_schema():
    assert hide_arguments(SEARCH, ()) is SEARCH


def test_hidden_arguments_are_gone_and_the_rest_is_shared():
    before = copy.deepcopy(SEARCH)
    shown = hide_arguments(SEARCH, ["mode"])
    assert list(shown["properties"]) == ["query", "token"]
    assert shown["required"] == ["query"]
    assert shown["properties"]["query"] is SEARCH["properties"]["query"]
    assert before == SEARCH


def test_no_provider_is_told_of_them():
    selection = selection_of({"search": {"mode": "deep", "token": "s3cret"}})
    for listed in (selection.for_openai(), selection.for_anthropic(), selection.for_mcp()):
        text = json.dumps(listed.tools)
        assert "query" in text
        assert not [word for word in ("mode", "token", "s3cret") if word in text]


@pytest.mark.parametrize("given", [{}, {"mode": "fast"}, {"mode": None}, {"mode": {"x": 1}}])
def test_they_are_sent_whatever_the_model_sends(given: dict[str, Any]):
    call = selection_of({"Search ": {"mode": "deep"}}).prepare("web__search", {"query": "x", **given})
    assert call.arguments == {"query": "x", "mode": "deep"}
    assert call.given == {"query": "x"}


@pytest.mark.parametrize("validation", ["warn", "off"])
def test_they_win_without_validation_too(validation: Any):
    call = selection_of({"search": {"mode": "deep"}}).prepare(
        "search", {"mode": "fast"}, validation=validation
    )
    assert call.arguments == {"mode": "deep"}


def test_they_are_found_by_own_and_public_name_and_the_server_level_wins():
    call = selection_of(
        {"WEB__search": {"mode": "deep"}}, agent={"search": {"mode": "fast", "token": "t"}}
    ).prepare("search", {"query": "x"})
    assert call.arguments == {"query": "x", "mode": "deep", "token": "t"}


def test_what_is_sent_shares_nothing_with_the_configuration():
    fixed = {"list": [1]}
    merged = merge_arguments({}, fixed)
    merged["list"].append(2)
    assert fixed == {"list": [1]}


def test_an_argument_that_the_tool_does_not_have_is_told_to_the_operator():
    assert "'nope'" in selection_of({"search": {"nope": 1}}).warnings[0]
    assert selection_of({"search": {"mode": "deep"}}).warnings == ()


def test_no_message_quotes_a_fixed_value():
    selection = selection_of({"search": {"mode": "s3cret", "token": "t0ken"}})
    for given in ({"query": "x"}, {"query": 7}, {}, "no json"):
        with pytest.raises(InvalidArgumentsError) as caught:
            selection.prepare("search", given)
        told = f"{caught.value} {caught.value.details()} {selection.rules!r} {list(selection)!r}"
        assert "s3cret" not in told
        assert "t0ken" not in told


def test_a_rule_over_seen_and_fixed_arguments_is_held_to_what_is_sent():
    schema = {
        "type": "object",
        "properties": {"mode": {"type": "string"}, "depth": {"type": "integer"}},
        "if": {"properties": {"mode": {"const": "deep"}}, "required": ["mode"]},
        "then": {"required": ["depth"]},
    }
    deep = selection_of({"search": {"mode": "deep"}}, schema)
    with pytest.raises(InvalidArgumentsError, match="together with what is fixed"):
        deep.prepare("search", {})
    assert deep.prepare("search", {"depth": 2}).arguments == {"depth": 2, "mode": "deep"}
    assert selection_of({"search": {"mode": "fast"}}, schema).prepare("search", {}).arguments == {
        "mode": "fast"
    }


BRANCH = {
    "properties": {"mode": {"const": "deep"}, "depth": {"type": "integer"}},
    "required": ["mode", "depth"],
}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "anyOf": [BRANCH, {"required": ["mode"]}]},
        {"type": "object", "allOf": [{"oneOf": [BRANCH]}]},
        {"$ref": "#/$defs/args", "$defs": {"args": {"type": "object", **BRANCH}}},
        {"type": "object", "oneOf": [{"$ref": "#/$defs/b"}], "$defs": {"b": {"type": "object", **BRANCH}}},
        {
            "type": "object",
            "anyOf": [{"$ref": "#/definitions/b"}, {"$ref": "#"}],
            "definitions": {"b": BRANCH},
        },
        {"type": "object", **BRANCH, "minProperties": 2, "dependentRequired": {"mode": ["depth"]}},
        {"type": "object", **BRANCH, "not": {"required": ["mode", "other"]}},
    ],
    ids=["anyOf", "nested", "root-ref", "oneOf-ref", "self", "counts", "not"],
)
def test_they_are_hidden_in_combinators_and_behind_references(schema: dict[str, Any]):
    before = copy.deepcopy(schema)
    shown = dict(hide_arguments(schema, ["mode"]))
    visible = json.dumps({key: shown[key] for key in shown if key not in ("$defs", "definitions")})
    assert '"mode"' not in visible
    checker = SchemaChecker(shown)
    assert checker.problem is None
    assert checker.errors({"depth": 1}) == []
    assert schema == before


def test_what_others_refer_to_stays_to_be_found():
    # So zod writes a schema that is used twice.
    schema = {
        "type": "object",
        "properties": {
            "a/b": {"type": "integer"},
            "y": {"$ref": "#/properties/a~1b"},
            "z": {"type": "string"},
        },
        "required": ["a/b", "y"],
    }
    shown = hide_arguments(schema, ["a/b"])
    assert list(shown["properties"]) == ["y", "z"]
    checker = SchemaChecker(shown)
    assert checker.problem is None
    assert checker.errors({"y": 1}) == []
    assert checker.errors({"y": "text"})
    assert shown["properties"]["z"] is schema["properties"]["z"]  # type: ignore[index]


def test_many_branches_that_lead_to_the_same_ones_are_no_explosion():
    levels: dict[str, Any] = {
        f"l{number}": {"anyOf": [{"$ref": f"#/$defs/l{number + 1}"}] * 2, "required": ["mode"]}
        for number in range(200)
    }
    levels["l200"] = {"required": ["mode"]}
    shown = hide_arguments({"type": "object", "anyOf": [{"$ref": "#/$defs/l0"}], "$defs": levels}, ["mode"])
    assert shown["anyOf"][0]["required"] == []
