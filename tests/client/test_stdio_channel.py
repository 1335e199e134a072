from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcp_client_app.client.exchange import Exchange
from mcp_client_app.client.framing import Oversized
from mcp_client_app.client.process import ChildProcess, spawn
from mcp_client_app.client.redaction import Redactor
from mcp_client_app.client.stdio_channel import ChannelEvents, StdioChannel
from mcp_client_app.datatypes import ServerSpec, Transport
from mcp_client_app.exceptions import ConnectionLostError, MCPClientError, ServerCrashedError
from tests.client.peers import PATIENCE

pytestmark = pytest.mark.anyio


class Heard:
    """What a channel reported."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.oversized: list[Oversized] = []
        self.garbage: list[str] = []
        self.stderr: list[str] = []
        self.down: asyncio.Future[MCPClientError] = asyncio.get_running_loop().create_future()
        self._changed = asyncio.Event()

    def events(self) -> ChannelEvents:
        return ChannelEvents(
            message=lambda message, size: self._note(self.messages, message),
            oversized=lambda line: self._note(self.oversized, line),
            garbage=lambda text, _: self._note(self.garbage, text),
            stderr=lambda line: self._note(self.stderr, line),
            down=self.down.set_result,
        )

    def _note(self, place: list[Any], item: Any) -> None:
        place.append(item)
        self._changed.set()

    async def wait_for(self, place: list[Any], count: int = 1) -> None:
        while len(place) < count:
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def channel(code: str, limit: int = 1_000_000, **env: str) -> AsyncIterator[tuple[StdioChannel, Heard]]:
    """Talk to a small Python program."""
    args = ("-S", "-E", "-c", f"import os, signal, sys, time\n{code}")
    spec = ServerSpec(name="srv", transport=Transport.STDIO, command=sys.executable, args=args, env=env)
    heard = Heard()
    child = ChildProcess(spawn(spec), None)
    found = StdioChannel(
        child, heard.events(), server="srv", redactor=Redactor(spec), max_frame_size=limit, stderr_lines=5
    )
    try:
        async with asyncio.timeout(PATIENCE):
            yield found, heard
    finally:
        await child.end(0.2)


async def test_messages_come_in_order_whatever_their_size():
    code = """
import json
for size in (1, 2_000_000, 1, 1_500_000, 1):
    print(json.dumps({"text": "x" * size}), flush=True)
sys.stdin.read()
"""
    async with channel(code, limit=3_000_000) as (_, heard):
        await heard.wait_for(heard.messages, 5)
        assert [len(message["text"]) for message in heard.messages] == [1, 2_000_000, 1, 1_500_000, 1]


async def test_a_large_line_that_is_no_json_is_garbage_and_what_follows_is_read():
    async with channel(
        "print('x' * 2_000_000); print('{}'); sys.stdout.flush(); sys.stdin.read()", 3_000_000
    ) as (
        _,
        heard,
    ):
        await heard.wait_for(heard.messages)
        assert heard.messages == [{}]
        assert len(heard.garbage) == 1
        assert len(heard.garbage[0]) <= 4000


async def test_secrets_in_garbage_and_standard_error_are_masked():
    code = "print('key hunter2hunter2'); print('key hunter2hunter2', file=sys.stderr); sys.stdout.flush()"
    async with channel(code, KEY="hunter2hunter2") as (_, heard):
        await heard.down
        assert heard.garbage == ["key ***"]
        assert heard.stderr == ["key ***"]


async def test_a_very_long_line_of_standard_error_is_cut():
    async with channel("sys.stderr.write('x' * 100_000 + '\\nnext\\n')") as (found, heard):
        await heard.down
        assert heard.stderr[-1] == "next"
        assert 1000 < len(heard.stderr[0]) <= 16_384
        assert list(found.stderr_tail) == heard.stderr


async def test_a_secret_is_not_halved_where_a_long_line_of_standard_error_is_cut():
    # What is kept are 4096 bytes: the cut goes through the secret, at either end.
    code = "sys.stderr.write('x' * 4090 + KEY + 'y' * 100_000 + KEY + 'z' * 4090 + '\\n')"
    code = "KEY = os.environ['KEY']; " + code
    async with channel(code, KEY="hunter2hunter2") as (_, heard):
        await heard.down
        [line] = heard.stderr
        assert line == "x" * 4090 + "***... (108208 bytes)"


async def test_the_last_words_and_the_last_messages_of_a_dying_server_are_heard():
    code = "print('{\"a\":' + '1' * 5 + '}'); sys.stdout.flush(); sys.stderr.write('no newline'); sys.exit(4)"
    async with channel(code) as (_, heard):
        error = await heard.down
        assert isinstance(error, ServerCrashedError)
        assert (error.exit_code, error.stderr_tail) == (4, ("no newline",))
        assert heard.messages == [{"a": 11111}]


async def test_a_large_message_of_a_server_that_dies_at_once_is_still_delivered():
    code = "import json; print(json.dumps({'a': 'x' * 1_200_000}), flush=True); os._exit(0)"
    async with channel(code, 2_000_000) as (_, heard):
        await heard.down
        assert [len(message["a"]) for message in heard.messages] == [1_200_000]


async def test_all_large_messages_of_a_server_that_dies_at_once_are_delivered():
    code = (
        "import json; [print(json.dumps({'a': 'x' * 1_200_000}), flush=True) for _ in range(3)]; os._exit(0)"
    )
    async with channel(code, 2_000_000) as (_, heard):
        await heard.down
        assert [len(message["a"]) for message in heard.messages] == [1_200_000] * 3


async def test_a_grandchild_that_keeps_writing_does_not_keep_a_dead_server_alive():
    code = """
if os.fork() == 0:
    signal.alarm(60)
    line = b"{}" + b" " * 65_000 + b"\\n"
    while True:
        os.write(1, line)
os._exit(3)
"""
    async with channel(code) as (_, heard):
        error = await heard.down
        assert isinstance(error, ServerCrashedError)
        assert error.exit_code == 3


async def test_a_server_that_only_closes_its_input_is_lost_with_the_first_write():
    # Its exit code would be known if it had exited; it has not.
    async with channel("os.close(0); print('{}', flush=True); time.sleep(60)") as (found, heard):
        await heard.wait_for(heard.messages)
        exchange = Exchange()
        found.write({"method": "x"}, exchange)
        error = await heard.down
        assert isinstance(error, ConnectionLostError)
        assert "closed its standard input" in str(error)
        assert not exchange.sent


async def test_what_the_pipe_does_not_take_waits_and_can_be_taken_back_while_nothing_of_it_is_written():
    async with channel("time.sleep(60)") as (found, _):
        begun, waiting = Exchange(), Exchange()
        first = found.write({"text": "x" * 3_000_000}, begun)
        second = found.write({"text": "small"}, waiting)
        assert first is not None
        assert second is not None
        assert begun.sent
        assert not waiting.sent
        found.writer.withdraw(begun)  # too late: a half written frame would break the stream
        found.writer.withdraw(waiting)
        assert (found.writer.holds(begun), found.writer.holds(waiting)) == (True, False)
        found.detach()
        assert first.written.cancelled()
        assert found.write({"text": "late"}, Exchange()) is None


async def test_a_slow_reader_gets_everything_in_order():
    code = """
time.sleep(0.1)
for line in sys.stdin:
    print('{"size":%d}' % len(line), flush=True)
"""
    async with channel(code) as (found, heard):
        for size in (10, 2_000_000, 20, 1_000_000):
            found.write({"t": "x" * size}, Exchange())
        await heard.wait_for(heard.messages, 4)
        overhead = len('{"t":""}\n')
        sizes = [message["size"] - overhead for message in heard.messages]
        assert sizes == [10, 2_000_000, 20, 1_000_000]


async def test_after_detaching_nothing_is_heeded_but_a_server_that_writes_can_still_end():
    # It would hang in its last write, far beyond what a pipe holds, if nobody read.
    code = """
sys.stdin.read()
print('x' * 3_000_000, flush=True)
sys.stderr.write('farewell')
"""
    async with channel(code) as (found, heard):
        found.detach("it was closed.")
        assert "it was closed." in str(await heard.down)
        assert await found._child.end(PATIENCE) == 0
        assert heard.messages == []
        assert heard.garbage == []
        assert heard.stderr == ["farewell"]
