from __future__ import annotations

import base64
from typing import Any

import pytest

from mcp_client_app.client.limits import cut_content
from mcp_client_app.exceptions import ResultTooLargeError


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def test_what_fits_is_returned_as_it_is():
    content = (text("hello"), {"type": "image", "data": "QUJD", "mimeType": "image/png"})
    assert cut_content(content, {"a": 1}, 100, server="srv") == (content, {"a": 1}, False)


def test_text_is_cut_at_the_limit_and_says_how_much_is_missing():
    content, _, cut = cut_content((text("0123456789"),), None, 4, server="srv")
    assert content == (text("0123\n[cut: 6 more bytes]"),)
    assert cut


def test_blocks_share_the_limit_in_order():
    content, _, _ = cut_content((text("aaaa"), text("bbbb"), text("cccc")), None, 6, server="srv")
    assert [block["text"] for block in content] == [
        "aaaa",
        "bb\n[cut: 2 more bytes]",
        "\n[cut: 4 more bytes]",
    ]


@pytest.mark.parametrize("limit", range(1, 12))
def test_a_character_is_never_cut_in_half(limit: int):
    (block,) = cut_content((text("é😀検x" * 3),), None, limit, server="srv")[0]
    kept = block["text"].partition("\n[cut")[0]
    assert kept + ("é😀検x" * 3)[len(kept) :] == "é😀検x" * 3
    assert len(kept.encode()) <= limit


def test_of_a_text_with_wide_characters_the_missing_bytes_are_told():
    (block,) = cut_content((text("é" * 10),), None, 5, server="srv")[0]
    assert block == text("éé\n[cut: 16 more bytes]")


def test_binary_is_left_out_whole_with_a_note():
    data = base64.b64encode(b"x" * 300).decode()
    image = {"type": "image", "data": data, "mimeType": "image/png"}
    blob = {"type": "resource", "resource": {"uri": "a://b", "blob": data, "mimeType": "application/pdf"}}
    content, _, cut = cut_content((image, blob, text("after")), None, 100, server="srv")
    assert content == (
        text("[left out: image/png of 400 bytes]"),
        text("[left out: application/pdf of 400 bytes]"),
        text("after"),
    )
    assert cut


def test_embedded_text_is_cut_within_its_resource():
    block = {"type": "resource", "resource": {"uri": "a://b", "text": "0123456789"}}
    (short,) = cut_content((block,), None, 3, server="srv")[0]
    assert short["resource"] == {"uri": "a://b", "text": "012\n[cut: 7 more bytes]"}
    assert block["resource"]["text"] == "0123456789"  # type: ignore[index]


def test_of_a_resource_with_text_and_a_blob_the_text_is_kept():
    block = {"type": "resource", "resource": {"uri": "a://b", "text": "short", "blob": "A" * 100}}
    content, _, cut = cut_content((block,), None, 50, server="srv")
    assert content == ({"type": "resource", "resource": {"uri": "a://b", "text": "short"}},)
    assert cut
    assert cut_content((block,), None, 200, server="srv") == ((block,), None, False)


def test_structure_over_the_limit_is_left_out_beside_content_and_refused_alone():
    structured = {"a": "x" * 100}
    assert cut_content((text("a"),), structured, 50, server="srv") == ((text("a"),), None, True)
    with pytest.raises(ResultTooLargeError) as caught:
        cut_content((), structured, 50, server="srv")
    assert (caught.value.limit, caught.value.size) == (50, 108)


@pytest.mark.parametrize("more", [{}, {"text": "no field of a link"}], ids=["sound", "odd"])
def test_a_link_whose_description_is_over_the_limit_is_left_out(more: dict[str, str]):
    link = {"type": "resource_link", "uri": "a://b", "name": "n", "description": "d" * 100, **more}
    content, _, cut = cut_content((link,), None, 50, server="srv")
    assert cut
    assert content[0]["text"].startswith("[left out: resource_link of ")
    assert cut_content((link,), None, 200, server="srv") == ((link,), None, False)
