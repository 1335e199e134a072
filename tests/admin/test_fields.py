"""The editor for lists: what is typed, what is stored, and back."""

from __future__ import annotations

import pytest

from mcp_client_app.admin.fields import LinesField


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["-y", "two words", "${HOME}/x"], "-y\ntwo words\n${HOME}/x"),
        ([""], '[""]'),
        ([" a"], '[" a"]'),
        (["a\nb"], r'["a\nb"]'),
        (["a\u2028b"], '["a\u2028b"]'),
        (["[x]"], '["[x]"]'),
        (["a", "[x]"], "a\n[x]"),
    ],
)
def test_a_list_survives_the_editor(items, text):
    field = LinesField()
    assert field.prepare_value(items) == text
    assert field.clean(text) == items
    assert not field.has_changed(items, text.replace("\n", "\r\n"))


@pytest.mark.parametrize(("items", "text"), [(None, ""), ([], "[]"), (["a"], "a")])
def test_all_and_none_are_told_apart(items, text):
    field = LinesField(null=True)
    assert (field.prepare_value(items) or "") == text
    assert field.clean(text) == items


def test_blank_lines_and_the_space_around_items_do_not_count():
    assert LinesField().clean(" a \r\n\r\n b\n") == ["a", "b"]


def test_json_may_be_as_lenient_as_in_a_file():
    assert LinesField().clean('\n["a", // first\n "b",]') == ["a", "b"]
