from __future__ import annotations

import asyncio
import threading

import pytest

from mcp_client_app.client.decoding import BIG_FRAME, decoded

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
