"""The verbs tools, resources and prompts."""

from __future__ import annotations

import pytest

from tests.management.conftest import faulty


def first_words(result) -> list[str]:
    return [line.split()[0] for line in result.lines[1:]]


# Tools -------------------------------------------------------------------------------


def test_tools_are_listed_under_the_names_by_which_they_are_called(workshop):
    result = workshop("tools")
    assert result.code == 0, result.err
    rows = {line.split()[0]: line for line in result.lines[1:]}
    assert {"workshop__echo", "workshop__sand"} <= set(rows)
    assert rows["workshop__echo"].endswith("Return the text unchanged.")
    assert "read-only" in rows["workshop__echo"]
    assert "read-only" not in rows["workshop__sand"]


def test_a_search_looks_into_names_and_descriptions(workshop):
    assert first_words(workshop("tools", "--search", "SWATCH")) == ["workshop__draw_swatch"]
    assert first_words(workshop("tools", "workshop", "--search", "two numbers")) == ["workshop__add"]
    assert workshop("tools", "--search", "nothing like it").out == "No tools.\n"


def test_schemas_are_shown_on_request_and_always_to_machines(workshop):
    shown = workshop("tools", "--search", "measure", "--schema").out
    assert shown.startswith("workshop__measure\n")
    assert '"exclusiveMinimum": 0' in shown
    [tool] = workshop("tools", "--search", "measure", "--json").document["tools"]
    assert tool["input_schema"]["required"] == ["length", "width"]
    assert tool["output_schema"]["type"] == "object"
    assert (tool["server"], tool["name"], tool["public_name"]) == ("workshop", "measure", "workshop__measure")


def test_one_server_that_cannot_be_asked_hides_no_other_and_is_explained(servers):
    result = servers("tools")
    assert result.code == 3
    assert "good__echo" in first_words(result)
    assert "dead: The command '/no/such/program'" in result.err
    document = servers("tools", "--json").document
    assert document["errors"]["dead"]["code"] == "configuration"
    assert {tool["server"] for tool in document["tools"]} == {"good"}


def test_a_server_without_a_tool_counts_as_asked(servers):
    assert servers("tools", "--search", "nothing like it").code == 3


def test_nobody_to_be_asked_is_a_failure(servers):
    servers("remove", "good", "--yes")
    assert servers("tools").code == 1


def test_a_stopped_server_is_left_alone_with_a_note(servers):
    servers("disconnect", "dead")
    result = servers("tools")
    assert result.code == 0
    assert "dead is stopped; to use it again: mcp_client connect dead" in result.err


def test_one_named_server_that_cannot_be_reached_is_an_error(servers):
    assert servers("tools", "dead").code == 2
    assert servers("tools", "nobody").code == 2
    result = servers("tools", "dead", "--json")
    assert result.document["error"]["code"] == "configuration"


def test_blocked_tools_are_not_listed(run):
    run("add", "good", faulty(), "--block-tool", "e*", "--no-connect")
    assert not [name for name in first_words(run("tools")) if name.startswith("good__e")]


# Resources ---------------------------------------------------------------------------


def test_resources_and_templates_are_listed(workshop):
    assert {"workshop://rules", "workshop://logo"} == {
        item["uri"] for item in workshop("resources", "--json").document["resources"]
    }
    result = workshop("resources", "workshop")
    assert any("workshop://rules" in line and "text/markdown" in line for line in result.lines)
    assert "workshop://tools/{name}" in workshop("resources", "--templates").out
    document = workshop("resources", "--templates", "--json").document
    assert [item["uri_template"] for item in document["resource_templates"]] == ["workshop://tools/{name}"]


def test_a_resource_is_read_as_text_and_a_binary_one_described(workshop):
    assert workshop("resources", "workshop", "--read", "workshop://rules").out.startswith("# Rules\n")
    picture = workshop("resources", "workshop", "--read", "workshop://logo").out
    assert picture.startswith("[workshop://logo, image/png, ")
    document = workshop("resources", "workshop", "--read", "workshop://logo", "--json").document
    assert document["resource"]["contents"][0]["blob"]


def test_an_unknown_resource_is_something_to_change(workshop):
    assert workshop("resources", "workshop", "--read", "workshop://nothing").code == 2


@pytest.mark.parametrize("words", [["resources", "--read", "a://b"], ["prompts", "--get", "plan"]])
def test_reading_needs_the_server(workshop, words):
    result = workshop(*words)
    assert result.code == 2
    assert result.err.startswith("SERVER: ")


# Prompts -----------------------------------------------------------------------------


def test_prompts_are_listed_with_their_arguments(workshop):
    result = workshop("prompts")
    [line] = [line for line in result.lines if " plan " in line]
    assert "piece, [days]" in line
    arguments = {
        item["name"]: item["arguments"] for item in workshop("prompts", "--json").document["prompts"]
    }
    assert [(argument["name"], argument["required"]) for argument in arguments["plan"]] == [
        ("piece", True),
        ("days", False),
    ]


def test_a_prompt_is_filled_in_with_texts(workshop):
    result = workshop("prompts", "workshop", "--get", "plan", "piece=a stool", "days=3")
    assert result.lines[:2] == ["user:", "I want to build a stool in 3 days. Which steps do you suggest?"]
    assert result.lines[2] == "assistant:"
    document = workshop("prompts", "workshop", "--get", "explain", "tool=saw", "--json").document
    assert document["prompt"]["messages"][0]["content"]["text"].startswith("Explain in English what a saw")


def test_a_prompt_without_a_required_argument_is_an_error(workshop):
    assert workshop("prompts", "workshop", "--get", "plan").code in (1, 2)
