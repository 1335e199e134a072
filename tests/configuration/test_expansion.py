from __future__ import annotations

import pytest

from mcp_client_app.configuration.expansion import consists_of_references, expand, placeholders, references
from mcp_client_app.exceptions import ConfigurationError

VARIABLES = {"TOKEN": "t0k", "USER": "ada", "EMPTY": "", "DOLLARS": "${USER} $USER $${X}", "ecret": "no"}


def full(value, *, bare_words=True, may_read=lambda name: True):
    return expand(value, VARIABLES, bare_words=bare_words, field="env.X", may_read=may_read)


def expanded(value, **options):
    return full(value, **options).value


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("${TOKEN}", "t0k"),
        ("${env:TOKEN}", "t0k"),
        ("mysql://${USER}:${TOKEN}@h/db", "mysql://ada:t0k@h/db"),
        ("${EMPTY}", ""),
        ("${NOPE:-plan b}", "plan b"),
        ("${env:NOPE:-plan b}", "plan b"),
        ("${EMPTY:-plan b}", "plan b"),
        ("${NOPE:-}", ""),
        ("${TOKEN:-plan b}", "t0k"),
        ("${NOPE:-${USER}}!", "ada!"),
        ("${NOPE:-${NEITHER:-c}}", "c"),
        ("${NOPE:-$USER}", "$USER"),
        ('${NOPE:-{"a": 1}', '{"a": 1'),
    ],
)
def test_references_in_braces_are_filled_in_anywhere(value, result):
    """C12, C17."""
    assert expanded(value) == result
    assert expanded(value, bare_words=False) == result


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("$TOKEN", "t0k"),
        ("Bearer $TOKEN", "Bearer t0k"),
        ("$USER $TOKEN", "ada t0k"),
        ("a  $USER ", "a  ada "),
    ],
)
def test_bare_words_are_filled_in_where_they_count(value, result):
    """C17: as a whole word only."""
    assert expanded(value) == result
    assert expanded(value, bare_words=False) == value


@pytest.mark.parametrize(
    "value",
    [
        "pa$USERword",
        "x$9",
        "$9",
        "$",
        "ends in $",
        "$USER-x",
        "x=$USER",
        "$USER\t",
        "\t$USER",
        "$USER,$TOKEN",
        "a$$b",
        "$$",
        "$$ USER",
        "echo $$",
        "$$USER-x",
        "pa$$USER",
        "${",
        "${}",
        "${1A}",
        "${A B}",
        "${TOKEN",
        "${NOPE:-never closed",
        "${{TOKEN}}",
        "$(TOKEN)",
        "%TOKEN%",
        "{{TOKEN}}",
        "\u20ac \U0001f600 \r\n",
        "",
    ],
)
def test_everything_else_stays_byte_for_byte(value):
    """C13: dollars in passwords."""
    assert full(value).value == value
    assert full(value).warnings == ()


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("$${TOKEN}", "${TOKEN}"),
        ("$${NOPE:-${USER}}", "${NOPE:-ada}"),
        ("$$${TOKEN}", "$${TOKEN}"),
        ("a$${", "a${"),
        ("$${input:x}", "${input:x}"),
        ("${NOPE:-$${X}}", "${X}"),
    ],
)
def test_two_dollars_before_a_brace_stand_for_one(value, result):
    """C16."""
    assert expanded(value) == result
    assert expanded(value, bare_words=False) == result


def test_two_dollars_before_a_bare_word_stand_for_one_where_bare_words_count():
    assert expanded("$$TOKEN") == "$TOKEN"
    assert expanded("Bearer $$TOKEN") == "Bearer $TOKEN"
    assert expanded("$$TOKEN", bare_words=False) == "$$TOKEN"


def test_a_value_that_was_filled_in_is_not_looked_at_again():
    assert expanded("${DOLLARS}") == VARIABLES["DOLLARS"]
    assert expanded("$DOLLARS") == VARIABLES["DOLLARS"]


def test_a_missing_variable_in_braces_is_an_error_that_names_field_and_variable():
    """C14."""
    with pytest.raises(ConfigurationError) as caught:
        full("Bearer ${NOPE} and ${TOKEN}")

    assert (caught.value.field, caught.value.variable) == ("env.X", "NOPE")
    assert str(caught.value) == "The variable 'NOPE' in 'env.X' is not set."


def test_a_missing_bare_word_stays_with_a_warning():
    outcome = full("Bearer $NOPE")

    assert outcome.value == "Bearer $NOPE"
    assert outcome.warnings == ("The variable 'NOPE' in 'env.X' is not set; the text is used as it stands.",)


def test_what_looks_like_a_password_is_not_shown_in_a_warning():
    assert full("$hunter2").value == "$hunter2"
    assert "hunter2" not in "".join(full("$hunter2").warnings)


@pytest.mark.parametrize("value", ["${TOKEN}", "$TOKEN", "${TOKEN:-x}", "${NOPE:-${TOKEN}}"])
def test_a_variable_that_may_not_be_read_is_an_error(value):
    with pytest.raises(ConfigurationError) as caught:
        full(value, may_read=lambda name: name == "NOPE")

    assert caught.value.variable == "TOKEN"
    assert "t0k" not in str(caught.value)
    assert "MCP_CLIENT_ENV_ALLOW" in str(caught.value)


def test_whether_a_variable_is_set_cannot_be_learned_without_the_right_to_read_it():
    def message(name):
        with pytest.raises(ConfigurationError) as caught:
            full(f"${{{name}}}", may_read=lambda name: False)
        return str(caught.value).replace(name, "NAME")

    assert message("TOKEN") == message("NOPE")


@pytest.mark.parametrize(
    "value", ["${input:key}", "Bearer ${input:key}", "${command:a.b}", "${workspaceFolder:x}"]
)
def test_a_placeholder_of_an_editor_is_an_error(value):
    with pytest.raises(ConfigurationError, match="has to be filled in by hand"):
        full(value)


def test_values_stay_out_of_the_repr():
    assert "t0k" not in repr(full("${TOKEN}"))


def test_references_lists_each_variable_once_with_those_of_defaults():
    value = "${A} $B ${C:-${D:-${A}}} $${E} $$F ${env:G} ${input:h} x$I"

    assert references(value, bare_words=True) == ["A", "B", "C", "D", "G"]
    assert references(value) == ["A", "C", "D", "G"]
    assert placeholders(value) == ["input:h"]


def test_defaults_nested_beyond_reason_do_no_harm():
    value = "${A:-" * 5000 + "}" * 5000

    assert references(value) == ["A"]


@pytest.mark.parametrize(
    "value", ["${A}", "$A", "Bearer ${A}", "bearer $A", "${A} ${B}", "${A:-}", "${input:x}"]
)
def test_references_alone_are_no_secret(value):
    assert consists_of_references(value, bare_words=True)


@pytest.mark.parametrize(
    "value", ["", "x", "x${A}", "${A:-secret}", "secret ${A}", "$${A}", "$$A", "Bearer x", "Bearer "]
)
def test_other_text_may_be_secret(value):
    assert not consists_of_references(value, bare_words=True)
