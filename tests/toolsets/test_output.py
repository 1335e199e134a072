from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from mcp_client_app.datatypes import ToolInfo, ToolResult
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.toolsets import (
    apply_filters,
    best_pattern,
    output_filters_for,
    parse_output_filters,
    render_result,
)

TOOL = ToolInfo(server="shop", name="List Orders")
SECRET = "planted-secret"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(300)).decode()
ORDERS = {"items": [{"name": "a", "tags": [1, 2]}, {"name": "b"}, {"id": 3}], "odd key's": {"]": "deep"}}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def refuse(name: str) -> Any:
    raise ConfigurationError(f"{name!r} is not to be found.")


def filtered(
    filters: list[Any], *content: dict[str, Any], resolve: Any = refuse, **fields: Any
) -> ToolResult:
    fields.setdefault("raw", {"content": list(content), "_meta": {"key": SECRET}})
    result = ToolResult(server="shop", tool=TOOL.name, content=content, **fields)
    parsed = parse_output_filters({"*": filters})["*"]
    return apply_filters(parsed, result, tool=TOOL, resolve=resolve)


# what is written down ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "place", "why"),
    [
        (["cut"], "output_filters", "must map tools"),
        ({"  ": []}, "output_filters", "no name or pattern"),
        ({"t": {"cut": 5}}, "output_filters.t", "must be a list"),
        ({"t": "drop_binary"}, "output_filters.t", "must be a list"),
        ({"t": [{"cut": 0}]}, "output_filters.t[0]", "1 or more"),
        ({"t": [{"cut": True}]}, "output_filters.t[0]", "1 or more"),
        ({"t": ["drop_binary", {"cut": "9"}]}, "output_filters.t[1]", "1 or more"),
        ({"t": [{"cut": 5, "pick": "$"}]}, "output_filters.t[0]", "is no filter"),
        ({"t": [{"drop": 5}]}, "output_filters.t[0]", "is no filter"),
        ({"t": [None]}, "output_filters.t[0]", "is no filter"),
        ({"t": [{"pick": "items"}]}, "output_filters.t[0]", "begins with '$'"),
        ({"t": [{"pick": "$..name"}]}, "output_filters.t[0]", "'..name' is no step"),
        ({"t": [{"pick": "$.a[?(@.x)]"}]}, "output_filters.t[0]", "'[?(@.x)]' is no step"),
        ({"t": [{"pick": "$.a[1:2]"}]}, "output_filters.t[0]", "is no step"),
        ({"t": [{"pick": "$['a"}]}, "output_filters.t[0]", "is no step"),
        ({"t": [{"pick": "$" + ".a" * 300}]}, "output_filters.t[0]", "more than 500"),
        ({"t": ["os.system; x"]}, "output_filters.t[0]", "nor a dotted path"),
    ],
)
def test_what_is_no_filter_is_refused_with_its_place(value: Any, place: str, why: str):
    with pytest.raises(ConfigurationError, match="output_filters") as caught:
        parse_output_filters(value)
    assert caught.value.field == place
    assert why in str(caught.value)


@pytest.mark.parametrize("value", ["os.system", "other", "Known", repr, len])
def test_where_names_are_given_no_other_code_is_named(value: Any):
    with pytest.raises(ConfigurationError):
        parse_output_filters({"t": [value]}, known={"known": "package.module.function"})


def test_where_names_are_given_those_are_known():
    parsed = parse_output_filters({"t": ["known", {"cut": 5}, "drop_binary"]}, known=["known"])
    assert [str(each) for each in parsed["t"]] == ["known", "cut 5", "drop_binary"]
    assert parse_output_filters(parsed, known=["known"]) == parsed


def test_nothing_written_down_is_no_filter():
    assert parse_output_filters(None) == {}


# which filters ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patterns", "best"),
    [
        ([], None),
        (["*delete*"], None),
        (["*", "list*", "list orders"], "list orders"),
        (["list*", "*", "l*"], "list*"),
        ([" SHOP__List_Orders_* ", "*orders*"], " SHOP__List_Orders_* "),
        (["*", TOOL.public_name.upper()], TOOL.public_name.upper()),
    ],
)
def test_a_name_beats_patterns_and_a_long_pattern_a_short_one(patterns: list[str], best: str | None):
    assert best_pattern(patterns, TOOL) == best
    assert best_pattern(reversed(patterns), TOOL) == best


def test_the_first_level_that_says_anything_counts_also_if_it_says_none():
    agent: dict[str, list[Any]] = {"*": [{"cut": 5}]}
    assert [str(each) for each in output_filters_for(TOOL, {}, agent)] == ["cut 5"]
    assert output_filters_for(TOOL, {"list*": []}, agent) == ()
    assert output_filters_for(TOOL, {"other": []}, {}) == ()


# cut ----------------------------------------------------------------------------------


def test_text_is_cut_over_all_blocks_and_marked():
    inner = {"type": "resource", "resource": {"uri": "x:y", "text": "cdef"}}
    result = filtered([{"cut": 4}], text("ab"), inner, text("gh"))
    assert result.content[0] == text("ab")
    assert result.content[1]["resource"] == {"uri": "x:y", "text": "cd\n[cut: 4 more characters]"}
    assert len(result.content) == 2
    assert result.truncated
    assert result.raw == {}


def test_text_that_fits_is_left_alone():
    result = filtered([{"cut": 4}], text("ab"), {"type": "image", "data": PNG}, text("cd"), structured=[1])
    assert result.content == (text("ab"), {"type": "image", "data": PNG}, text("cd"))
    assert result.structured == [1]
    assert not result.truncated


def test_a_cut_ends_at_a_whole_block():
    result = filtered([{"cut": 2}], text("ab"), {"type": "image", "data": PNG}, text("cd"))
    assert result.content == (text("ab\n[cut: 2 more characters]"), {"type": "image", "data": PNG})


def test_structured_content_is_cut_as_text():
    result = filtered([{"cut": 10}], structured={"secret": SECRET * 9})
    assert result.structured is None
    assert result.text.startswith('{"secret":\n[cut: ')
    assert SECRET not in repr((result.content, result.raw))
    assert result.truncated


def test_structured_content_beside_a_text_goes_when_it_is_too_long():
    result = filtered([{"cut": 10}], text("short"), structured={"secret": SECRET})
    assert (result.content, result.structured, result.truncated) == ((text("short"),), None, True)


# pick ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$", ORDERS),
        ("$.items[0].name", "a"),
        ("$.items[-1].id", 3),
        ("$.items[*].name", ["a", "b"]),
        ("$['items'][0][\"tags\"][*]", [1, 2]),
        ("$.items[*].tags[*]", [1, 2]),
        ("$['odd key\\'s'][']']", "deep"),
        ("$[*][*].none", []),
        ("$.items[0].name[*]", []),
    ],
)
def test_a_path_picks_from_structure_and_from_text(path: str, value: Any):
    from_structure = filtered([{"pick": path}], text("words"), structured=ORDERS)
    from_text = filtered([{"pick": path}], text(json.dumps(ORDERS)))
    for result in (from_structure, from_text):
        assert result.structured == value
        assert len(result.content) == 1
        assert result.raw == {}
    assert render_result(from_text).text == (value if isinstance(value, str) else from_structure.text)


@pytest.mark.parametrize(
    "path", ["$.none", "$.items[3]", "$.items[-4]", "$.items.name", "$[0]", "$.items[0].name.x"]
)
def test_a_path_that_leads_nowhere_shows_nothing(path: str):
    result = filtered([{"pick": path}], structured={**ORDERS, "key": SECRET}, warnings=(f"has {SECRET}",))
    assert "output filter 1 (pick" in result.text
    assert "nothing at its path" in result.text
    assert SECRET not in repr((result.content, result.structured, result.raw, result.warnings))
    assert result.warnings == (result.text.strip("[]"),)
    assert not result.is_error


def test_what_is_no_json_has_no_paths():
    result = filtered([{"pick": "$.a"}, {"cut": 5}], text(f"a: {SECRET}"))
    assert "(pick $.a) failed: the result is no JSON" in result.text
    assert SECRET not in repr((result.content, result.raw))


def test_the_words_of_a_failure_are_kept():
    result = filtered([{"pick": "$.a"}], text("no such order"), is_error=True)
    assert (result.text, result.is_error) == ("no such order", True)


# drop_binary --------------------------------------------------------------------------


def test_binary_content_is_dropped_and_named():
    blob = {"uri": "file:///a.zip", "mimeType": "application/zip", "blob": "QUJD"}
    result = filtered(
        ["drop_binary"],
        text("see"),
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "audio", "data": "QUJD", "mimeType": "audio/wav"},
        {"type": "resource", "resource": blob},
        {"type": "resource", "resource": {**blob, "text": "both"}},
        {"type": "resource", "resource": {"uri": "x:y", "text": "words"}},
    )
    assert result.text.splitlines() == [
        "see",
        "[image: image/png, 308 bytes, not shown]",
        "[audio: audio/wav, 3 bytes, not shown]",
        "[file from file:///a.zip: application/zip, 3 bytes, not shown]",
    ]
    kept = [block["resource"] for block in result.content if block["type"] == "resource"]
    assert [inner["text"] for inner in kept] == ["both", "words"]
    assert "QUJD" not in repr((result.content, result.raw))


# callables ----------------------------------------------------------------------------


def test_a_callable_gets_result_and_tool_and_gives_text():
    result = filtered(
        [lambda result, tool: f"{tool.name}: {len(result.text)}", {"cut": 11}],
        text(SECRET),
        structured={"key": SECRET},
    )
    assert result.text == "List Orders\n[cut: 4 more characters]"
    assert SECRET not in repr((result.content, result.structured, result.raw))


def test_a_callable_may_give_a_result():
    given = ToolResult(server="shop", tool="t", content=(text("new"),), is_error=True, raw={"x": SECRET})
    result = filtered([lambda result, tool: given], text("old"))
    assert (result.text, result.is_error, result.raw) == ("new", True, {})


def test_a_name_is_resolved_when_it_is_used():
    names = {"package.shout": lambda result, tool: result.text.upper()}
    assert filtered(["package.shout"], text("a"), resolve=names.__getitem__).text == "A"


async def unfit(result: ToolResult, tool: ToolInfo) -> str:
    return result.text


def fail(result: ToolResult, tool: ToolInfo) -> str:
    raise ValueError(result.text)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (fail, "(fail) failed: ValueError."),
        (unfit, "(unfit) failed: it returned coroutine instead of"),
        (lambda result, tool: None, "it returned NoneType instead of"),
        (lambda result, tool: {"all": result.text}, "it returned dict instead of"),
        (lambda result: result, "failed: TypeError."),
        ("gone", "(gone) failed: 'gone' is not to be found."),
    ],
)
def test_a_callable_that_fails_shows_nothing_of_the_result(function: Any, why: str):
    result = filtered([function, {"cut": 1000}], text(SECRET), structured={"key": SECRET})
    assert "[The tool has run, but its result is not shown: output filter 1 (" in result.text
    assert why in result.text
    assert SECRET not in repr((result.content, result.structured, result.raw, result.warnings))


def test_without_filters_the_result_is_the_same():
    result = ToolResult(server="shop", tool="t", raw={"x": 1})
    assert apply_filters((), result, tool=TOOL, resolve=refuse) is result
