"""Tables: aligned, cut where they may be cut, harmless whatever a server writes."""

from __future__ import annotations

import pytest

from mcp_client_app.management.tables import Column, display_width, one_line, render, shorten, visible


def test_columns_are_as_wide_as_their_widest_cell_and_lines_end_without_blanks():
    table = render([Column("NAME"), Column("STATE")], [("files", "ready"), ("a-long-name", "ok")])
    assert table.splitlines() == ["NAME         STATE", "files        ready", "a-long-name  ok"]


def test_a_table_fits_into_the_width_by_cutting_only_what_may_be_cut():
    columns = [Column("NAME"), Column("DESCRIPTION", can_shrink=True)]
    name = "a_name_that_people_copy"
    lines = render(columns, [(name, "word " * 30)], width=60).splitlines()
    assert all(display_width(line) <= 60 for line in lines)
    assert name in lines[1]
    assert lines[1].endswith("…")


def test_narrow_columns_keep_their_width_while_wide_ones_share_what_is_left():
    columns = [Column("A", can_shrink=True), Column("B", can_shrink=True), Column("C", can_shrink=True)]
    line = render(columns, [("short", "x" * 100, "y" * 100)], width=60).splitlines()[1]
    assert line.split() == ["short", "x" * 24 + "…", "y" * 24 + "…"]


def test_a_name_is_never_cut_even_if_the_table_does_not_fit():
    assert "n" * 80 in render([Column("NAME"), Column("B", can_shrink=True)], [("n" * 80, "b")], width=40)


def test_without_a_width_nothing_is_cut():
    assert "x" * 500 in render([Column("A", can_shrink=True)], [("x" * 500,)])


def test_colour_does_not_count_as_width():
    columns = [Column("STATE", paint=lambda word: f"\x1b[32m{word}\x1b[0m"), Column("NEXT")]
    lines = render(columns, [("ready", "a"), ("ok", "b")]).splitlines()
    assert lines == ["STATE  NEXT", "\x1b[32mready\x1b[0m  a", "\x1b[32mok\x1b[0m     b"]


@pytest.mark.parametrize(
    ("text", "width"),
    [("plain", 5), ("漢字", 4), ("e\u0301", 1), ("👩\u200d🚀", 4), ("", 0)],
)
def test_width_is_counted_in_cells_of_a_terminal(text, width):
    assert display_width(text) == width


def test_wide_characters_are_never_cut_in_half():
    assert shorten("漢字漢字", 6) == "漢字…"


@pytest.mark.parametrize(
    "text",
    ["\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "\u202egnihton", "\u2066x", "\x7f", "a\rb", "\ud800"],
)
def test_characters_that_act_on_a_terminal_are_shown_instead(text):
    assert "�" in visible(text)
    assert not set(visible(text)) & set("\x1b\x07\x9b\u202e\u2066\x7f\r\ud800")


def test_line_breaks_and_tabs_of_text_stay():
    assert visible("a\r\n\tb\n") == "a\n\tb\n"


def test_a_cell_is_one_line():
    assert one_line("  several\n\tlines  ") == "several lines"
