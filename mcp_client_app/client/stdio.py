"""The dispatcher for stdio servers: requests and answers over a ``StdioChannel``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.shared.dispatcher import CallOptions

from mcp_client_app.client.dispatch import BaseDispatcher, Pending
from mcp_client_app.client.framing import Oversized
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.client.process import ChildProcess
from mcp_client_app.client.redaction import Redactor
from mcp_client_app.client.rpc_messages import LISTEN, broken_answer_id, skipped_id
from mcp_client_app.client.stdio_channel import ChannelEvents, StdioChannel, unreadable
from mcp_client_app.exceptions import ResultTooLargeError, TransportError

__all__ = ["StdioDispatcher"]


class StdioDispatcher(BaseDispatcher):
    """Speaks newline-delimited JSON-RPC with a child process."""

    kind = "stdio"

    def __init__(
        self,
        child: ChildProcess,
        *,
        server: str,
        repairer: Repairer,
        redactor: Redactor,
        max_frame_size: int,
        queue_size: int = 1000,
        stderr_lines: int = 200,
        strict_parsing: bool = False,
        on_stderr: Callable[[str], None] = lambda line: None,
    ) -> None:
        super().__init__(server=server, repairer=repairer, queue_size=queue_size)
        self.redact = redactor
        self._strict_parsing = strict_parsing
        self._max_frame_size = max_frame_size
        events = ChannelEvents(self._receive, self._oversized, self._garbage, on_stderr, self._fail)
        self.channel = StdioChannel(
            child,
            events,
            server=server,
            redactor=redactor,
            max_frame_size=max_frame_size,
            stderr_lines=stderr_lines,
        )

    async def _send_request(self, message: dict[str, Any], pending: Pending, opts: CallOptions) -> None:
        self.channel.write(message, pending.exchange, gather=len(self._pending) > 1)

    def _give_up(self, pending: Pending, opts: CallOptions, reason: str) -> None:
        others = [
            item.exchange
            for item in self._pending.values()
            if item is not pending and item.method != LISTEN  # which waits for no answer
        ]
        self.channel.give_up(pending.exchange, others)
        super()._give_up(pending, opts, reason)

    async def _send_message(self, message: dict[str, Any], opts: CallOptions) -> None:
        self.channel.write_aside(message)

    def _abandon(self, pending: Pending, reason: str) -> None:
        params = {"requestId": pending.request_id, "reason": reason}
        self.channel.write_aside({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def _garbage(self, text: str, edges: bytes) -> None:
        self._note_noise(text)
        request_id = broken_answer_id(edges)
        pending = self._pending.get(request_id) if request_id is not None else None
        if pending is not None:
            self._settle(pending, unreadable(self.server, pending.method))
        if self._strict_parsing and text.strip():
            self._fail(
                TransportError(
                    f"The server {self.server!r} wrote a line that is no JSON.", server=self.server
                )
            )

    def _oversized(self, line: Oversized) -> None:
        pending = self._addressee(line.edges)
        if pending is None:
            self._note_noise(f"a message of {line.size} bytes was skipped")
            return
        self._settle(
            pending,
            ResultTooLargeError(
                f"An answer of {self.server!r} has {line.size} bytes; "
                f"the limit for a message is {self._max_frame_size}.",
                server=self.server,
                limit=self._max_frame_size,
                size=line.size,
            ),
        )

    def _addressee(self, edges: bytes) -> Pending | None:
        """Find whom a skipped answer was for: by its id, else the only request that waits."""
        request_id = skipped_id(edges)
        return self._only_one_waiting() if request_id is None else self._pending.get(request_id)
