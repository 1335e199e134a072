from __future__ import annotations

import socket
from typing import Any

import pytest

from mcp_client_app.json_schema import DRAFTS, SchemaChecker, schema_problem

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}


def test_a_fitting_value_has_no_errors():
    assert SchemaChecker(PERSON).errors({"name": "Ada", "age": 36}) == []


def test_errors_name_their_place():
    assert SchemaChecker(PERSON).errors({"name": "Ada", "age": "old"}) == [
        'age: "old" is not of type "integer"'
    ]
    assert SchemaChecker(PERSON).errors({}) == ['"name" is a required property']


def test_errors_are_limited():
    schema = {"type": "array", "items": {"type": "integer"}}
    assert len(SchemaChecker(schema).errors(["x"] * 100)) == 5


@pytest.mark.parametrize(
    "schema",
    [{"type": "strng"}, {"type": 7}, {"pattern": "("}, {"$ref": "#/nowhere"}, {"minimum": "low"}],
)
def test_an_unusable_schema_checks_nothing_and_says_why(schema: dict[str, Any]):
    checker = SchemaChecker(schema)
    assert checker.problem
    assert checker.errors("anything") == []


@pytest.mark.parametrize("value", [{"name": 10**400}, {"name": {1, 2}}, {"name": object()}])
def test_a_value_that_json_cannot_hold_is_an_error_not_a_crash(value: Any):
    assert SchemaChecker(PERSON).errors(value)


def test_recursion_is_followed():
    schema = {
        "type": "object",
        "properties": {"child": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}}},
    }
    assert SchemaChecker(schema).errors({"child": {"child": {"child": 1}}})
    assert SchemaChecker(schema).errors({"child": {"child": {}}}) == []


@pytest.mark.parametrize("keyword", ["$ref", "$schema"])
def test_nothing_is_ever_fetched(keyword: str):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        checker = SchemaChecker({keyword: url, "type": "object"})
        checker.errors({"a": 1})
        with pytest.raises(BlockingIOError):  # nobody has knocked
            listener.accept()
    assert checker.problem


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"properties": {"a": {"type": "strng"}}}, 'properties/a/type: "strng" is not valid under any'),
        ({"required": "a"}, 'required: "a" is not of type "array"'),
        ({"$schema": "http://example.org/mine"}, "its $schema 'http://example.org/mine' is not known"),
        ({"$schema": 5}, "its $schema '5' is not known"),
    ],
)
def test_a_schema_that_breaks_its_own_rules_is_told_with_the_place(schema: dict[str, Any], problem: str):
    found = schema_problem({"type": "object", **schema})
    assert found is not None
    assert found.startswith(problem)


def test_each_draft_is_known_in_every_spelling_and_none_is_fetched():
    for name in DRAFTS:
        for spelling in (f"http://{name}", f"http://{name}#", f"https://{name}", f"https://{name}#"):
            assert schema_problem({"$schema": spelling, "type": "object"}) is None, spelling
            assert schema_problem({"$schema": spelling, "type": "strng"}) is not None, spelling
    assert schema_problem({"type": "object", "$ref": "#/$defs/missing"}) is None
