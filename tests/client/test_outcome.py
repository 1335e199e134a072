from __future__ import annotations

from typing import Any

import pytest

from mcp_client_app.client.outcome import CallOptions, blocks, checked, shaped
from mcp_client_app.datatypes import ToolResult
from mcp_client_app.exceptions import ToolError
from mcp_client_app.json_schema import SchemaChecker

INTEGER = SchemaChecker({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def result(*content: dict[str, Any], **fields: Any) -> ToolResult:
    raw = {"structuredContent": fields["structured"]} if "structured" in fields else {}
    return ToolResult(server="srv", tool="tool", content=content, raw=raw, **fields)


def test_without_wishes_the_whole_result_comes():
    found = result(text("a"))
    assert shaped(found, None, CallOptions()) is found


def test_a_failure_without_a_message_is_still_explained():
    with pytest.raises(ToolError, match="reported a failure without a message") as caught:
        shaped(result(is_error=True), None, CallOptions(raise_on_error=True))
    assert (caught.value.server, caught.value.tool) == ("srv", "tool")


def test_a_long_message_of_a_failure_is_cut_but_kept_in_the_result():
    with pytest.raises(ToolError) as caught:
        shaped(result(text("x" * 9000), is_error=True), None, CallOptions(raise_on_error=True))
    assert len(caught.value.detail) == 2000
    assert len(caught.value.result.text) == 9000


def test_a_fitting_structure_gives_no_warning():
    assert checked(result(structured={"n": 1}), INTEGER).warnings == ()


def test_a_misfit_a_gap_and_an_unusable_schema_are_warnings():
    assert checked(result(structured={"n": "x"}), INTEGER).warnings == (
        'the structured content does not fit the output schema: n: "x" is not of type "integer"',
    )
    assert "gave no structured content" in checked(result(text("a")), INTEGER).warnings[0]
    unusable = SchemaChecker({"type": "strng"})
    assert "schema is unusable" in checked(result(structured={"n": 1}), unusable).warnings[0]


def test_earlier_warnings_stay():
    found = checked(result(structured={}, warnings=("first",)), INTEGER)
    assert found.warnings[0] == "first"
    assert len(found.warnings) == 2


def test_blocks_hold_the_structure_as_json_text():
    assert blocks(result(text("a"), structured={"n": 1})) == (text("a"), text('{"n":1}'))


def test_blocks_do_not_repeat_a_structure_that_is_the_text_already():
    assert blocks(result(text('{ "n" : 1 }'), structured={"n": 1})) == (text('{ "n" : 1 }'),)


def test_a_structure_of_blocks_is_merged_block_by_block():
    image = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    assert blocks(result(text("a"), structured=[text("a"), image])) == (text("a"), image)
    assert blocks(result(structured=image)) == (image,)


def test_without_structure_blocks_are_the_content():
    assert blocks(result(text("a"))) == (text("a"),)
    assert blocks(result(structured=[])) == (text("[]"),)
