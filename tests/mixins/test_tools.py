"""Tools in the registry's form, whatever their schemas are."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_client_app.mixins import MCPTool
from mcp_client_app.mixins.tools import validation_message, wrapped


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "integer"}, "integer"),
        ({"type": ["null", "number"]}, "number"),
        ({"anyOf": [{"type": "null"}, {"type": "array"}]}, "array"),
        ({"oneOf": [{"$ref": "#/$defs/X"}, {"type": "null"}]}, "object"),
        ({"properties": {}}, "object"),
        ({"enum": ["a"]}, "string"),
        ({"type": []}, "string"),
        ({"anyOf": "nonsense"}, "string"),
        ({}, "string"),
        (True, "string"),
    ],
)
def test_each_parameter_has_one_type(schema, kind):
    tool = MCPTool("t", "", {"type": "object", "properties": {"x": schema}, "required": ["x"]})

    assert tool.to_gaia_format("s")["parameters"] == {
        "x": {"type": kind, "required": True, "description": ""}
    }


@pytest.mark.parametrize("schema", [None, [], {}, {"properties": None, "required": 1}, {"properties": []}])
def test_odd_schemas_give_no_parameters(schema):
    tool = MCPTool.from_wire({"name": "t", "inputSchema": schema})

    entry = tool.to_gaia_format("s")

    assert (entry["name"], entry["description"], entry["parameters"]) == ("mcp_s_t", "[MCP:s] ", {})


@pytest.mark.parametrize("response", ["text", None, [1], 7])
def test_what_is_no_object_comes_back_unchanged(response):
    assert wrapped("t", response) is response


def test_arguments_that_json_cannot_hold_can_be_shown():
    circle: dict[Any, Any] = {(1, 2): b"x"}
    circle["self"] = circle

    assert "Your arguments:\n{(1, 2): b'x'" in validation_message("t", "no", {}, circle)
