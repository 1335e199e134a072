"""The writing end of a pipe: order, gathering, withdrawing, and an end that nobody reads."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from mcp_client_app.client.exchange import Exchange
from mcp_client_app.client.stdio_writer import BATCH, StdioWriter

pytestmark = pytest.mark.anyio


class Pipe:
    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.write_end, False)
        os.set_blocking(self.read_end, False)
        self.breaks = 0

    def broke(self) -> None:
        self.breaks += 1

    def read(self) -> bytes:
        try:
            return os.read(self.read_end, 10_000_000)
        except BlockingIOError:
            return b""

    async def read_until(self, end: bytes) -> bytes:
        found = b""
        async with asyncio.timeout(30):
            while not found.endswith(end):
                found += self.read()
                await asyncio.sleep(0)
        return found


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    for descriptor in (made.read_end, made.write_end):
        try:
            os.close(descriptor)
        except OSError:
            continue


async def test_a_lone_message_is_written_at_once(pipe: Pipe):
    writer, exchange = StdioWriter(pipe.write_end, pipe.broke), Exchange()
    assert writer.write({"a": 1}, exchange) is None
    assert exchange.sent
    assert pipe.read() == b'{"a":1}\n'


async def test_what_is_gathered_goes_out_together_when_the_turn_is_over(pipe: Pipe, monkeypatch):
    sizes: list[int] = []
    write = os.write
    writer, exchanges = StdioWriter(pipe.write_end, pipe.broke), [Exchange() for _ in range(3)]
    for number, exchange in enumerate(exchanges):
        assert writer.write({"n": number}, exchange, gather=True) is not None
    assert writer.write({"n": 3}, Exchange()) is not None  # order goes before haste
    assert not any(exchange.sent for exchange in exchanges)
    assert pipe.read() == b""

    def watched(descriptor: int, data: bytes) -> int:
        sizes.append(len(data))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", watched)
    await asyncio.sleep(0)
    assert sizes == [32]
    assert all(exchange.sent for exchange in exchanges)
    assert pipe.read() == b'{"n":0}\n{"n":1}\n{"n":2}\n{"n":3}\n'


async def test_what_is_withdrawn_in_the_same_turn_is_never_sent(pipe: Pipe):
    writer, kept, withdrawn = StdioWriter(pipe.write_end, pipe.broke), Exchange(), Exchange()
    writer.write({"a": "withdrawn"}, withdrawn, gather=True)
    writer.write({"a": "kept"}, kept, gather=True)
    writer.withdraw(withdrawn)
    await asyncio.sleep(0)
    assert (kept.sent, withdrawn.sent) == (True, False)
    assert pipe.read() == b'{"a":"kept"}\n'


async def test_messages_that_do_not_fit_wait_in_order_and_say_what_was_begun(pipe: Pipe):
    writer = StdioWriter(pipe.write_end, pipe.broke)
    small, big, last = Exchange(), Exchange(), Exchange()
    writer.write({"n": 1}, small, gather=True)
    frame = writer.write({"text": "x" * 4 * BATCH}, big, gather=True)
    writer.write({"n": 2}, last, gather=True)
    await asyncio.sleep(0)
    assert (small.sent, big.sent, last.sent) == (True, True, False)
    assert writer.is_blocked
    assert (writer.holds(small), writer.holds(big), writer.holds(last)) == (False, True, True)

    found = await pipe.read_until(b'{"n":2}\n')
    assert found == b'{"n":1}\n{"text":"' + b"x" * 4 * BATCH + b'"}\n{"n":2}\n'
    assert frame is not None
    assert frame.written.done()
    assert (len(writer), writer.is_blocked) == (0, False)


async def test_a_pipe_that_nobody_reads_is_told_and_nothing_counts_as_sent(pipe: Pipe):
    os.close(pipe.read_end)
    writer, exchange = StdioWriter(pipe.write_end, pipe.broke), Exchange()
    writer.write({"a": 1}, exchange)
    assert (exchange.sent, pipe.breaks, len(writer)) == (False, 1, 0)


async def test_stopping_drops_what_waits(pipe: Pipe):
    writer, exchange = StdioWriter(pipe.write_end, pipe.broke), Exchange()
    frame = writer.write({"a": 1}, exchange, gather=True)
    writer.stop()
    await asyncio.sleep(0)
    assert frame is not None
    assert frame.written.cancelled()
    assert (exchange.sent, pipe.read()) == (False, b"")
