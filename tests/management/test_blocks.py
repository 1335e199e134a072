"""Content blocks as people see them."""

from __future__ import annotations

import io

import pytest
from django.core.management.base import OutputWrapper
from django.core.management.color import no_style

from mcp_client_app.management.blocks import show_blocks, show_structured
from mcp_client_app.management.console import Console


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def console(out: io.StringIO) -> Console:
    return Console(OutputWrapper(out), OutputWrapper(io.StringIO()), no_style())


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"type": "text", "text": "two\nlines"}, "two\nlines\n"),
        ({"type": "image", "mimeType": "image/png", "data": "AAAA"}, "[image, image/png, 3 bytes]\n"),
        ({"type": "audio", "data": "AA=="}, "[audio, unknown type, 1 bytes]\n"),
        ({"type": "image", "mimeType": "image/png", "data": None}, "[image, image/png]\n"),
        ({"type": "resource_link", "uri": "a://b"}, "[link to a://b]\n"),
        ({"type": "resource", "resource": {"uri": "a://b", "text": "inside"}}, "inside\n"),
        (
            {"type": "resource", "resource": {"uri": "a://b", "mimeType": "x/y", "blob": "AAAA"}},
            "[a://b, x/y, 3 bytes]\n",
        ),
        ({"type": "from_the_future", "x": 1}, "[from_the_future]\n"),
        ({"type": "resource", "resource": None}, "[resource]\n"),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_text_is_written_and_the_rest_described(console, out, block, shown):
    show_blocks(console, [block])
    assert out.getvalue() == shown


@pytest.mark.parametrize(
    ("structured", "text"),
    [({"a": 1}, '{"a":  1}'), ({"result": "plain"}, "plain"), ({"result": 3}, "3"), ([1], "[1]")],
)
def test_structured_content_that_a_text_repeats_is_not_shown_again(console, out, structured, text):
    show_structured(console, structured, [{"type": "image"}, {"type": "text", "text": text}])
    assert out.getvalue() == ""


def test_structured_content_that_says_more_is_shown(console, out):
    show_structured(console, {"a": 1}, [{"type": "text", "text": "Done."}])
    assert out.getvalue() == '{\n  "a": 1\n}\n'
    show_structured(console, None, [])
    assert out.getvalue().count("\n") == 3
