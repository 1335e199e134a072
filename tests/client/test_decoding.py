from __future__ import annotations

import asyncio
import threading

import pytest

from mcp_client_app.client.decoding import BIG_FRAME, decoded, in_utf8

BIG = b'"' + b"x" * BIG_FRAME + b'"'


@pytest.mark.parametrize("data", [b'{"a": 1}', BIG])
async def test_small_and_large_texts_are_decoded(data: bytes) -> None:
    assert await decoded(data) in ({"a": 1}, "x" * BIG_FRAME)


@pytest.mark.parametrize("data", [b"{", BIG[:-1]])
async def test_what_is_no_json_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        await decoded(data)


def test_only_a_large_text_leaves_the_loops_thread() -> None:
    async def workers_after(data: bytes) -> int:
        await decoded(data)
        return sum(thread.name.startswith("asyncio_") for thread in threading.enumerate())

    assert asyncio.run(workers_after(b"1")) == 0
    assert asyncio.run(workers_after(BIG)) == 1


def test_a_large_text_is_decoded_also_while_the_process_ends() -> None:
    async def decode() -> object:
        await asyncio.get_running_loop().shutdown_default_executor()
        return await decoded(BIG)

    assert asyncio.run(decode()) == "x" * BIG_FRAME


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        ("é".encode(), ""),
        ("é".encode(), "utf-8"),
        ("é".encode(), "iso-8859-1"),  # said of everything by many servers, true or not
        ("é".encode("latin-1"), "iso-8859-1"),
        ("é".encode("cp1252"), "windows-1252"),
        ("é".encode("utf-16"), "utf-16"),
        ("é".encode("utf-16-le"), "utf-16le"),
        ("é".encode("utf-32"), "utf-32"),
    ],
)
def test_what_came_in_another_charset_is_read_in_it(data: bytes, charset: str) -> None:
    assert in_utf8(data, charset).decode() == "é"


@pytest.mark.parametrize("charset", ["punycode", "idna", "nonsense", "rot13", "unicode_escape"])
def test_a_charset_in_which_nobody_writes_json_is_not_tried(charset: str) -> None:
    assert in_utf8(b"\xe9" * 10, charset) == b"\xe9" * 10


def test_bytes_that_do_not_fit_their_charset_stay_as_they_are() -> None:
    assert in_utf8(b"\xff\xfe\x00", "utf-16") == b"\xff\xfe\x00"
