"""Words of the command line: what they become, and what is refused without repeating a value."""

from __future__ import annotations

import argparse
import io

import pytest
from django.core.management import CommandError

from mcp_client_app.management import parsing


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("X-Key=a=b:c", ("X-Key", "a=b:c")),
        ("Authorization: Bearer a=b", ("Authorization", "Bearer a=b")),
        ("X-Empty=", ("X-Empty", "")),
    ],
)
def test_a_header_is_separated_by_what_comes_first(text, pair):
    assert parsing.header_pair(text) == pair


@pytest.mark.parametrize("read", [parsing.environment_pair, parsing.header_pair])
@pytest.mark.parametrize("text", ["s3cret", "=s3cret", ""])
def test_a_word_that_is_no_pair_is_refused_without_repeating_it(read, text):
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        read(text)
    assert "s3cret" not in str(caught.value)


def test_a_variable_may_hold_anything():
    assert parsing.environment_pair("A=b=c: d") == ("A", "b=c: d")


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "soon", ""])
def test_seconds_are_a_number_from_zero(text):
    with pytest.raises(argparse.ArgumentTypeError):
        parsing.seconds(text)


def test_one_text_is_split_as_a_shell_would_and_several_words_stay():
    assert parsing.command_words(["npx -y 'a b'"]) == ["npx", "-y", "a b"]
    assert parsing.command_words(["npx", "-y", "a b"]) == ["npx", "-y", "a b"]


@pytest.mark.parametrize("text", ["npx 'open", "   "])
def test_a_command_that_cannot_be_split_is_a_mistake_of_use(text):
    with pytest.raises(CommandError, match="COMMAND") as caught:
        parsing.command_words([text])
    assert caught.value.returncode == 2


def test_values_are_json_if_they_can_be_and_texts_otherwise():
    words = ["n=5", "f=1.5", "b=true", "l=[1, 2]", "o={}", "s=plain text", 'q="5"', "e=", "x=NaN", "eq=a=b"]
    assert parsing.tool_arguments(words, io.StringIO()) == {
        "n": 5,
        "f": 1.5,
        "b": True,
        "l": [1, 2],
        "o": {},
        "s": "plain text",
        "q": "5",
        "e": "",
        "x": "NaN",
        "eq": "a=b",
    }


def test_what_the_tool_wants_as_text_stays_text():
    assert parsing.tool_arguments(["zip=01234", "n=5"], io.StringIO(), {"zip"}) == {"zip": "01234", "n": 5}


def test_arguments_may_be_one_object_or_come_from_standard_input():
    assert parsing.tool_arguments([' {"a": [1]}'], io.StringIO()) == {"a": [1]}
    assert parsing.tool_arguments(["-"], io.StringIO('{"a": 1}')) == {"a": 1}
    assert parsing.tool_arguments([], io.StringIO()) == {}


@pytest.mark.parametrize(
    "words",
    [
        ["s3cret"],
        ["a=1", "s3cret"],
        ["=s3cret"],
        ["a=1", "a=s3cret"],
        ['{"s3cret'],
        ['{"a": NaN}'],
        ["-", "a=1"],
    ],
)
def test_arguments_that_cannot_be_read_are_a_mistake_of_use(words):
    with pytest.raises(CommandError) as caught:
        parsing.tool_arguments(words, io.StringIO("[]"))
    assert caught.value.returncode == 2
    assert "s3cret" not in str(caught.value)


def test_standard_input_must_hold_an_object():
    with pytest.raises(CommandError, match="JSON object"):
        parsing.tool_arguments(["-"], io.StringIO("[1]"))


def test_arguments_of_prompts_are_always_texts():
    assert parsing.text_arguments(["days=2", "piece=a chair"]) == {"days": "2", "piece": "a chair"}


def test_only_properties_that_can_be_nothing_but_texts_are_text_keys():
    properties = {
        "a": {"type": "string"},
        "b": {"type": ["string", "null"]},
        "c": {"type": "integer"},
        "d": True,
    }
    assert parsing.text_keys({"properties": properties}) == {"a"}
    assert parsing.text_keys({}) == frozenset()


def test_a_file_that_cannot_be_read_is_a_mistake_of_use(tmp_path):
    with pytest.raises(CommandError, match=r"FILE: .*No such file") as caught:
        parsing.read_input(str(tmp_path / "missing.json"), io.StringIO())
    assert caught.value.returncode == 2
