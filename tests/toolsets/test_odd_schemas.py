"""Schemas made up at random, from what schemas are made of and from what they are not."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.exceptions import InvalidArgumentsError
from mcp_client_app.json_schema import SchemaChecker, schema_problem
from mcp_client_app.toolsets import ServerRules, ToolRules, ToolSelection

NAMES = ["a", "b", "$top", "tool_arguments", "c/d~e"]
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
MAPS = ("properties", "$defs", "definitions", "dependentSchemas", "patternProperties", "dependencies")
ONE = ("items", "additionalItems", "additionalProperties", "not", "if", "then", "else", "propertyNames")
WORDS = (
    "const",
    "pattern",
    "exclusiveMaximum",
    "description",
    "default",
    "$schema",
    "$id",
    "format",
    "x-own",
)
KEYWORDS = [
    "type",
    "required",
    "enum",
    "$ref",
    "dependentRequired",
    "minProperties",
    "maximum",
    *LISTS,
    *MAPS,
    *ONE,
    *WORDS,
]
REFERENCES = [
    "#",
    "#/$defs/a",
    "#/$defs/b",
    "#/definitions/a",
    "#/properties/a",
    "#/anyOf/0",
    "#x",
    "other",
    "#/x",
]


def junk(chance: random.Random) -> Any:
    return chance.choice(
        [
            None,
            True,
            False,
            0,
            -1,
            2**70,
            1.5,
            "",
            "object",
            "strng",
            "((",
            [],
            {},
            [1, None],
            {"a": 1},
            [{}],
            [["a"]],
        ]
    )


def made_up(chance: random.Random, depth: int = 0) -> Any:
    """A schema that is mostly sound."""
    if depth > 3 or chance.random() < 0.04:
        return junk(chance)
    keys = chance.sample(KEYWORDS, chance.randint(0, 6))
    return {key: value_of(key, chance, depth) for key in keys}


def value_of(key: str, chance: random.Random, depth: int) -> Any:
    if chance.random() < 0.04:
        return junk(chance)

    def one() -> Any:
        return made_up(chance, depth + 1)

    if key in MAPS:
        return {name: one() for name in chance.sample(NAMES, 2)}
    if key in LISTS or (key == "items" and chance.random() < 0.3):
        return [one() for _ in range(chance.randint(1, 3))]
    if key in ONE:
        return one()
    types = ["object"] * 4 + ["array", "string", "integer", ["object", "null"]]
    plain: dict[str, Any] = {
        "type": chance.choice(types),
        "required": chance.sample(NAMES, 2),
        "enum": chance.sample(NAMES, 2),
        "$ref": chance.choice(REFERENCES),
        "dependentRequired": {"a": ["b"], "b": ["a", "$top"]},
        "minProperties": chance.randint(0, 3),
        "maximum": chance.randint(0, 3),
    }
    return plain[key] if key in plain else junk(chance)


@pytest.mark.parametrize("seed", range(8))
def test_no_schema_raises_spoils_the_others_or_is_changed(seed: int):
    chance = random.Random(seed)
    schemas = [schema for _ in range(150) if isinstance(schema := made_up(chance), dict)]
    before = copy.deepcopy(schemas)
    tools = [
        ToolInfo(server="s", name=f"t{number}", input_schema=item) for number, item in enumerate(schemas)
    ]
    tools.append(ToolInfo(server="s", name="good"))
    fixed = {tool.name: {"a": "s3cret-value"} for tool in tools[::2]}
    selection = ToolSelection(tools, ToolRules(servers={"s": ServerRules(fixed_arguments=fixed)}))

    listed = {"openai": selection.for_openai(), "anthropic": selection.for_anthropic()}
    for provider, those in listed.items():
        assert len(those.tools) + len(those.warnings) == len(tools)
        assert len(those.tools) > len(tools) / 10
        assert "s__good" in json.dumps(those.tools[-1])
        for tool in those.tools:
            shown = tool["function"]["parameters"] if provider == "openai" else tool["input_schema"]
            assert shown["type"] == "object"
            assert not {"anyOf", "oneOf", "allOf", "enum", "not"} & set(shown)
            assert schema_problem(shown) is None
            assert SchemaChecker(shown).problem is None
    assert len(selection.for_mcp().tools) == len(tools)

    for selected in selection:
        given = {name: junk(chance) for name in chance.sample(NAMES, 2)}
        call = selection.prepare(selected.name, given, validation="warn")
        assert call.arguments.get("a") == "s3cret-value" or not selected.fixed
        told = " ".join(call.warnings)
        if call.warnings and "not checked" not in told:
            with pytest.raises(InvalidArgumentsError) as caught:
                selection.prepare(selected.name, given)
            assert len(str(caught.value)) < 7000
            told += str(caught.value)
        assert "s3cret" not in told
    assert schemas == before
