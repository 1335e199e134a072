from __future__ import annotations

import base64
from typing import Any

import pytest

from mcp_client_app.datatypes import ToolResult
from mcp_client_app.exceptions import InvalidArgumentsError, ServerUnavailableError, UnknownToolError
from mcp_client_app.toolsets import Binary, ImagePart, RenderedResult, TextPart, error_line, render_result

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(300)).decode()
LARGE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(4_000_000)).decode()
BLOB = base64.b64encode(bytes(range(256)) * 4).decode()


def rendered(*content: dict[str, Any], structured: Any = None, **options: Any) -> RenderedResult:
    fields = {key: options.pop(key) for key in ("is_error", "truncated") if key in options}
    result = ToolResult(server="s", tool="t", content=content, structured=structured, **fields)
    return render_result(result, **options)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def test_text_is_text():
    result = rendered(text("one"), text(""), text("two"), structured={"ignored": 1})
    assert result.parts == (TextPart("one"), TextPart("two"))
    assert result.for_openai() == "one\ntwo"
    assert result.for_anthropic() == [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]


@pytest.mark.parametrize("content", [(), (text(""),), (text(" \n"),)])
def test_without_text_the_structure_is_told_as_json(content: tuple[dict[str, Any], ...]):
    assert rendered(*content, structured={"a": [1, "ü"]}).text == '{"a":[1,"ü"]}'  # T19, L10


def test_structure_stands_beside_images():
    result = rendered({"type": "image", "data": PNG, "mimeType": "image/png"}, structured=[1])
    assert [type(part) for part in result.parts] == [TextPart, ImagePart]


@pytest.mark.parametrize("content", [(), (text(""),), (text("  "),)])
def test_an_empty_result_is_something_to_read_and_no_error(content: tuple[dict[str, Any], ...]):
    result = rendered(*content)  # L07, T22
    assert result.text == "(The tool returned nothing.)"
    assert not result.is_error
    assert all(block["text"] for block in result.for_anthropic())


@pytest.mark.parametrize("falsy", [{}, [], 0, False, ""])
def test_structure_that_is_empty_is_structure(falsy: Any):
    assert rendered(structured=falsy).text in ("{}", "[]", "0", "false", '""')


def test_images_are_parts_where_there_are_such_and_notes_elsewhere():
    result = rendered(text("see"), {"type": "image", "data": PNG, "mimeType": "image/png"})
    assert result.for_anthropic()[1] == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
    }
    assert result.for_openai() == "see\n[image: image/png, 308 bytes, not shown]"


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF1234WEBP", "image/webp"),
    ],
)
def test_the_type_of_an_image_is_what_its_bytes_say(start: bytes, kind: str):
    (part,) = rendered(
        {"type": "image", "data": base64.b64encode(start).decode(), "mimeType": "image/bmp"}
    ).parts
    assert isinstance(part, ImagePart)
    assert part.mime_type == kind


@pytest.mark.parametrize(
    "data", ["!!", "", "abc", f"{PNG[:20]}!!{PNG[20:]}", PNG[:-1], BLOB, LARGE], ids=range(7)
)
def test_images_that_would_fail_a_whole_request_are_notes(data: str):
    (part,) = rendered({"type": "image", "data": data, "mimeType": "image/png"}).parts  # T28
    assert isinstance(part, TextPart)
    assert part.text.startswith("[image: image/png")


@pytest.mark.parametrize(
    "block",
    [
        {"type": "audio", "data": BLOB, "mimeType": "audio/wav"},
        {"type": "image", "data": BLOB, "mimeType": "image/svg+xml"},
        {"type": "resource", "resource": {"uri": "file:///a", "blob": BLOB, "mimeType": "application/pdf"}},
        {"type": "video", "data": BLOB},
        {"type": "resource", "resource": BLOB},
        {"data": BLOB},
        {"type": {"odd": BLOB}},
    ],
)
def test_base64_never_becomes_text(block: dict[str, Any]):
    result = rendered(block)  # L11, T21
    assert BLOB[:40] not in result.text
    assert result.text.startswith("[")
    assert len(result.text) < 200


def test_binary_content_is_stored_and_referred_to():
    kept: list[Binary] = []

    def store(content: Binary) -> str:
        kept.append(content)
        return f"file {len(kept)}"

    result = rendered(
        {"type": "resource", "resource": {"uri": "file:///a", "blob": BLOB, "mimeType": "application/pdf"}},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        store=store,
    )
    assert result.text == (
        "[file from file:///a: application/pdf, 1024 bytes, stored as file 1]\n"
        "[image: image/png, 308 bytes, stored as file 2]"
    )
    assert [item.data for item in kept] == [BLOB, PNG]


def test_resources_and_links_say_where_they_come_from():
    result = rendered(
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}},
        {"type": "resource_link", "uri": "file:///b", "name": "b", "mimeType": "text/plain"},
    )
    assert result.text == "[resource file:///a.txt]\ninside\n[link to file:///b: b, text/plain]"


def test_long_text_is_cut_and_marked_over_all_parts():
    result = rendered(text("a" * 60), text("b" * 60), text("c" * 60), limit=100)  # L15
    assert result.truncated
    assert result.parts == (TextPart("a" * 60), TextPart("b" * 40 + "\n[cut: 80 more characters]"))
    exact = rendered(text("a" * 100), limit=100)
    assert (exact.text, exact.truncated) == ("a" * 100, False)
    assert len(rendered(structured=["x" * 500], limit=100).text) < 150
    assert rendered(text("a" * 300_000), limit=0).text == "a" * 300_000
    assert len(rendered(text("a" * 300_000)).text) < 100_100
    assert rendered(text("a"), truncated=True).truncated


def test_what_no_provider_takes_is_replaced():
    assert rendered(text("a\0b\ud800c")).text == "a\ufffdb\ufffdc"


def test_a_failure_is_one_line():
    result = rendered(text("MCP error -32000: it\nbroke"), is_error=True, name="s__t")
    assert result.is_error
    assert result.text == "Error calling mcp tool s__t: it broke"
    long = rendered(text("x" * 5000), is_error=True)
    assert long.text == f"Error calling mcp tool t: {'x' * 200} [cut: 4800 more characters]"
    assert rendered(is_error=True).text == "Error calling mcp tool t: the tool gave no reason"
    assert rendered(structured={"why": 1}, is_error=True).text == 'Error calling mcp tool t: {"why":1}'


def test_a_failure_holds_nothing_but_text():
    result = rendered(text("no"), {"type": "image", "data": PNG, "mimeType": "image/png"}, is_error=True)
    assert [block["type"] for block in result.for_anthropic()] == ["text"]


def test_exceptions_become_the_same_line():
    down = ServerUnavailableError("The server 's' is down.", server="s")
    assert error_line("s__t", down) == "Error calling mcp tool s__t: The server 's' is down."
    assert "secret" not in error_line("s__t", KeyError("secret"))


@pytest.mark.parametrize("kind", [InvalidArgumentsError, UnknownToolError])
def test_what_helps_a_model_to_do_better_is_not_cut(kind: Any):
    assert error_line("t", kind("word\n" * 200)).endswith("word\n" * 200)
