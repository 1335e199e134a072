"""The stdio transport under the SDK's client: our pipes, limits and last words, its dispatcher."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from mcp.shared.message import SessionMessage

from mcp_client_app.client.framing import Oversized
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.client.process import ChildProcess
from mcp_client_app.client.redaction import Redactor
from mcp_client_app.client.rpc_messages import LISTEN, broken_answer_id, skipped_id
from mcp_client_app.client.stdio_channel import ChannelEvents, StdioChannel, unreadable
from mcp_client_app.client.stdio_writer import Frame
from mcp_client_app.client.stock_transport import OpenRequest, StockTransport, dumped
from mcp_client_app.exceptions import ResultTooLargeError, TransportError

__all__ = ["StdioTransport"]


class StdioTransport(StockTransport):
    """Moves messages over a ``StdioChannel``. Ending the process is the owner's task."""

    def __init__(
        self,
        child: ChildProcess,
        *,
        server: str,
        repairer: Repairer,
        redactor: Redactor,
        max_frame_size: int,
        probe_timeout: float | None = None,
        stderr_lines: int = 200,
        strict_parsing: bool = False,
        on_stderr: Callable[[str], None] = lambda line: None,
    ) -> None:
        super().__init__(server=server, repairer=repairer, redact=redactor, probe_timeout=probe_timeout)
        self._max_frame_size = max_frame_size
        self._strict_parsing = strict_parsing
        events = ChannelEvents(self._receive, self._oversized, self._garbage, on_stderr, self._fail)
        self.channel = StdioChannel(
            child,
            events,
            server=server,
            redactor=redactor,
            max_frame_size=max_frame_size,
            stderr_lines=stderr_lines,
        )

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        stack.callback(self.channel.detach)

    async def _send(self, item: SessionMessage, request: OpenRequest | None) -> None:
        if request is None:
            self.channel.write_aside(dumped(item))
        elif (frame := self.channel.write(dumped(item), request.exchange)) is not None:
            await self._until_written(frame, request)

    async def _until_written(self, frame: Frame, request: OpenRequest) -> None:
        try:
            await asyncio.wait({frame.written})  # cancelled when the link goes down
        except asyncio.CancelledError:
            others = [
                item.exchange
                for item in self._open.values()
                if item is not request and item.method != LISTEN  # which waits for no answer
            ]
            self.channel.give_up(request.exchange, others)
            raise

    async def _cancel(self, item: SessionMessage, request: OpenRequest | None) -> None:
        # Only what the server has seen a part of can be cancelled.
        if request is not None and request.exchange.sent:
            self.channel.write_aside(dumped(item))

    def _garbage(self, text: str, edges: bytes) -> None:
        self._note_noise(text)
        request = self._open_request(broken_answer_id(edges))
        if request is not None:
            self._fail_request(request, unreadable(self.server, request.method))
        if self._strict_parsing and text.strip():
            self._fail(
                TransportError(
                    f"The server {self.server!r} wrote a line that is no JSON.", server=self.server
                )
            )

    def _oversized(self, line: Oversized) -> None:
        request_id = skipped_id(line.edges)
        request = self._only_one_waiting() if request_id is None else self._open_request(request_id)
        if request is None:
            self._note_noise(f"a message of {line.size} bytes was skipped")
            return
        self._fail_request(
            request,
            ResultTooLargeError(
                f"An answer of {self.server!r} has {line.size} bytes; "
                f"the limit for a message is {self._max_frame_size}.",
                server=self.server,
                limit=self._max_frame_size,
                size=line.size,
            ),
        )
