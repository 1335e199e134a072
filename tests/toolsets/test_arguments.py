from __future__ import annotations

import contextlib
import socket
from typing import Any

import pytest

from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.exceptions import InvalidArgumentsError
from mcp_client_app.toolsets import ToolRules, ToolSelection

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 7}},
    "required": ["city"],
}


def selection_of(schema: dict[str, Any] = SCHEMA) -> ToolSelection:
    return ToolSelection([ToolInfo(server="w", name="t", input_schema=schema)], ToolRules(all_servers=True))


def test_arguments_are_an_object_or_its_json():
    for given in ({"city": "Bern"}, '{"city": "Bern"}', b' {"city": "Bern"}\n'):
        call = selection_of().prepare("t", given)
        assert (call.tool.name, call.arguments, call.warnings) == ("t", {"city": "Bern"}, ())


@pytest.mark.parametrize("given", [None, "", " ", b"", {}, "{}"])
def test_nothing_is_no_arguments(given: object):
    assert selection_of({"type": "object"}).prepare("t", given).arguments == {}


@pytest.mark.parametrize("given", ["{a:", '{"a": ', "nope", b"\xff", "[" * 5000, '{"a": 1} {"b": 2}'])
def test_what_is_no_json_is_refused_never_taken_for_no_arguments(given: object):
    with pytest.raises(InvalidArgumentsError, match="no valid JSON") as caught:  # L01, L02
        selection_of({"type": "object"}).prepare("t", given, validation="off")
    assert len(str(caught.value)) < 6000


@pytest.mark.parametrize("given", ["[]", "7", "null", '"text"', [], 7, {1: 2}, True])
def test_what_is_no_object_is_refused(given: object):
    with pytest.raises(InvalidArgumentsError, match="one JSON object"):
        selection_of({"type": "object"}).prepare("t", given)


def test_the_message_has_all_that_a_model_needs():
    given = {"days": 9}
    with pytest.raises(InvalidArgumentsError) as caught:
        selection_of().prepare("w__t", given)
    text = str(caught.value)
    assert "w__t" in text
    assert '"city" is a required property' in text
    assert "days: 9 is greater than the maximum of 7" in text
    assert 'Given: {"days":9}' in text
    assert '"maximum":7' in text
    assert (caught.value.tool, caught.value.server) == ("w__t", "w")
    assert (caught.value.schema, caught.value.arguments) == (SCHEMA, given)


def test_the_message_is_bounded():
    huge = {f"property_{number}": {"type": "integer", "description": "d" * 100} for number in range(1000)}
    with pytest.raises(InvalidArgumentsError) as caught:
        selection_of({"properties": huge, "type": "object"}).prepare("t", dict.fromkeys(huge, "x" * 1000))
    text = str(caught.value)
    assert len(text) < 6500
    assert text.count("[cut: ") >= 2


def test_on_request_the_problems_are_only_warnings():
    call = selection_of().prepare("t", {"days": 9}, validation="warn")
    assert call.arguments == {"days": 9}
    assert len(call.warnings) == 2
    assert selection_of().prepare("t", {"days": 9}, validation="off").warnings == ()


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "strng"}}},
        {"properties": []},
        {"$ref": "#/nowhere"},
        {"$schema": "https://example.com/own"},
        {"properties": {"a": {"pattern": "(("}}},
        {"type": 7},
    ],
)
def test_a_schema_that_is_no_use_checks_nothing_and_says_so(schema: dict[str, Any]):
    call = selection_of(schema).prepare("t", {"a": 1})  # T14
    assert call.arguments == {"a": 1}
    assert "not checked" in call.warnings[0]


def test_recursive_schemas_are_followed():
    node = {"type": "object", "properties": {"child": {"$ref": "#/$defs/n"}}, "additionalProperties": False}
    selection = selection_of({"$ref": "#/$defs/n", "$defs": {"n": node}})  # T12
    assert selection.prepare("t", {"child": {"child": {}}}).warnings == ()
    with pytest.raises(InvalidArgumentsError, match="child/child"):
        selection.prepare("t", {"child": {"child": {"x": 1}}})


def test_choices_of_integers_and_null_are_the_originals():
    selection = selection_of(
        {"properties": {"n": {"type": ["integer", "null"], "enum": [0, 1, None]}}}
    )  # T13
    for value in (0, 1, None):
        assert selection.prepare("t", {"n": value}).arguments == {"n": value}
    with pytest.raises(InvalidArgumentsError):
        selection.prepare("t", {"n": "0"})


@pytest.mark.parametrize("keyword", ["$ref", "$schema", "$id"])
def test_nothing_is_ever_fetched(keyword: str):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema"
        selection = selection_of({"properties": {"a": {keyword: url}}, keyword: url})
        selection.prepare("t", {"a": 1})
        selection.for_openai()
        selection.for_anthropic()
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize("value", [object(), {1, 2}, 2**80, float("nan"), "\ud800", "\0"])
def test_values_of_any_kind_end_in_an_answer_or_our_error(value: object):
    with contextlib.suppress(InvalidArgumentsError):
        selection_of().prepare("t", {"city": "x", "days": value})
