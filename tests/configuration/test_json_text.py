from __future__ import annotations

import pytest

from mcp_client_app.configuration.json_text import loads
from mcp_client_app.exceptions import ConfigurationError


def test_comments_and_trailing_commas_are_accepted():
    """C01, C02."""
    text = """
    // servers
    {
      "a": [1, 2, /* the last one */ 3, ], // end
      /* several
         lines */
      "b": {"c": 4,},
    }
    """

    assert loads(text) == {"a": [1, 2, 3], "b": {"c": 4}}


def test_strings_are_left_alone():
    """C01: also what looks like a comment in a URL."""
    text = r'{"url": "https://host/a", "b": "/* no */ ,] ,}", "c": "\"// no", "d": "\\",}'

    assert loads(text) == {"url": "https://host/a", "b": "/* no */ ,] ,}", "c": '"// no', "d": "\\"}


def test_a_byte_order_mark_is_accepted():
    """C03."""
    assert loads(b"\xef\xbb\xbf{}") == {}
    assert loads("\ufeff{}") == {}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf_16_and_utf_32_are_refused_by_name(encoding):
    """C03: a clear error, and nothing is imported."""
    with pytest.raises(ConfigurationError, match="save it as UTF-8"):
        loads('{"a": 1}'.encode(encoding))


def test_bytes_that_are_no_utf_8_are_refused_with_their_line():
    with pytest.raises(ConfigurationError, match="Line 2 is not encoded as UTF-8"):
        loads(b'{\n"a": "\xff"}')


def test_an_error_names_line_and_column_of_the_original():
    with pytest.raises(ConfigurationError, match=r"\(line 3, column 8\)"):
        loads('{ // comment\n  /* \n*/ "a" 1 }')


def test_a_comment_without_end_is_an_error_where_it_begins():
    with pytest.raises(ConfigurationError, match=r"comment that begins here has no end \(line 2, column 3\)"):
        loads('{}\n  /* "a"')


@pytest.mark.parametrize(
    "text", ["", "{", "[1 2]", '{"a": NaN}', "1" * 5000, "[" * 100_000, '{"key": "hunter2']
)
def test_what_is_no_json_is_refused_without_quoting_it(text):
    with pytest.raises(ConfigurationError) as caught:
        loads(text)

    assert "hunter2" not in str(caught.value)


def test_keys_that_appear_twice_are_told_and_the_last_one_counts():
    duplicates: set[str] = set()

    assert loads('{"s": {"a": 1, "b": 2, "a": 3}}', duplicates=duplicates) == {"s": {"a": 3, "b": 2}}
    assert duplicates == {"a"}
