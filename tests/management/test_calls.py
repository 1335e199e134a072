"""The verb call."""

from __future__ import annotations

import json

import pytest

from mcp_client_app.models import ToolCall
from tests.management.conftest import faulty


def test_a_tool_is_called_by_public_or_bare_name_and_written_down(workshop):
    assert workshop("call", "workshop__echo", "text=hello").out == "hello\n"
    assert workshop("call", "echo", "text=hello").out == "hello\n"
    assert workshop("call", "echo", "text=hello", "--server", "workshop").out == "hello\n"
    assert [(call.server_name, call.tool, call.code) for call in ToolCall.objects.all()] == [
        ("workshop", "echo", "ok")
    ] * 3


def test_arguments_are_json_pairs_or_standard_input(workshop):
    assert workshop("call", "add", '{"a": 1, "b": 2}').out == "3.0\n"
    assert workshop("call", "add", "a=1", "b=2.5").out == "3.5\n"
    assert workshop("call", "add", "-", stdin='{"a": 1, "b": 2}').out == "3.0\n"


def test_a_text_that_looks_like_a_number_stays_a_text_where_the_tool_wants_one(workshop):
    assert workshop("call", "echo", "text=0123").out == "0123\n"
    assert workshop("call", "echo", "text=true", "--json").document["text"] == "true"


def test_structured_content_is_shown_once(workshop):
    words = ["call", "measure", "length=1200", "width=300"]
    board = {"area_mm2": 360_000, "volume_mm3": 6_480_000, "fits_on_the_bench": True}
    assert json.loads(workshop(*words).out) == board
    assert json.loads(workshop(*words, "--structured").out) == board
    assert workshop(*words, "--json").document["structured"] == board


def test_structured_content_that_is_not_there_is_a_failure(workshop):
    result = workshop("call", "echo", "text=hi", "--structured")
    assert (result.code, result.out) == (1, "")
    assert "no structured content" in result.err


def test_the_raw_result_is_what_the_server_sent(workshop):
    raw = workshop("call", "echo", "text=hi", "--raw").document
    assert raw["content"] == [{"type": "text", "text": "hi"}]


def test_an_image_is_described(workshop):
    assert workshop("call", "draw_swatch").out == "[image, image/png, 179 bytes]\n"


def test_progress_goes_to_standard_error(workshop):
    result = workshop("call", "sand", "passes=2", "seconds=0")
    assert result.out == "Smooth after 2 passes.\n"
    assert result.err.splitlines() == ["[1/2] pass 1 of 2", "[2/2] pass 2 of 2"]
    assert workshop("call", "sand", "passes=2", "seconds=0", "--json").err == ""


def test_the_failure_of_a_tool_is_told_on_standard_error(workshop):
    result = workshop("call", "break_down", "reason=out of oil")
    assert (result.code, result.out) == (1, "")
    assert "out of oil" in result.err
    document = workshop("call", "break_down", "--json")
    assert document.code == 1
    assert document.document["is_error"] is True


def test_unknown_and_ambiguous_tools_are_something_to_change(servers):
    servers("remove", "dead", "--yes")
    assert servers("call", "good__nothing").code == 2
    servers("add", "other", faulty(), "--no-connect")
    result = servers("call", "echo", "text=hi")
    assert result.code == 2
    assert "good__echo" in result.err
    assert "other__echo" in result.err
    document = servers("call", "echo", "text=hi", "--json").document
    assert document["error"]["details"]["candidates"] == ["good__echo", "other__echo"]


def test_a_tool_that_nobody_offers_may_be_that_of_a_server_that_is_down(servers):
    result = servers("call", "nothing")
    assert result.code == 1
    assert "dead" in result.err


def test_the_time_limit_ends_a_call(servers):
    result = servers("call", "good__sleep", "seconds=600", "--timeout", "0.2", "--json")
    assert result.code == 1
    assert result.document["error"]["code"] == "timeout"
    assert result.document["error"]["details"]["outcome"] == "unknown"


def test_a_server_that_dies_in_the_middle_is_explained(run):
    run("add", "fragile", faulty("die_on_call=7"), "--no-connect")
    result = run("call", "fragile__echo", "text=hi", "--json")
    assert result.code == 1
    assert result.document["error"]["code"] == "server_crashed"
    assert result.document["error"]["details"]["exit_code"] == 7


def test_warnings_about_a_result_are_told(run):
    run("add", "odd", faulty("output_schema_mismatch=wrong"), "--no-connect")
    result = run("call", "odd__echo", "text=hi")
    assert result.code == 0
    assert result.err.startswith("warning: ")


@pytest.mark.parametrize("scenario", ["unknown_blocks", "null_content", "empty_content", "strange_values"])
def test_strange_results_are_shown_without_an_accident(run, scenario):
    run("add", "odd", faulty(scenario), "--no-connect")
    assert run("call", "odd__echo", "text=hi").code == 0
    assert run("call", "odd__echo", "text=hi", "--json").document["tool"] == "echo"
    assert run("call", "odd__echo", "text=hi", "--raw").code == 0
