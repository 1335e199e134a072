"""A dispatcher whose server is a function in the test: our shared part, without any transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mcp.shared.dispatcher import CallOptions

from mcp_client_app.client.dispatch import BaseDispatcher, Pending
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.exceptions import MCPClientError
from tests.client.peers import PATIENCE


async def until(fits: Callable[[], object]) -> None:
    """Let the tasks of this loop run until something is so."""
    async with asyncio.timeout(PATIENCE):
        while not fits():  # noqa: ASYNC110 - what is waited for happens on this loop, in its next rounds
            await asyncio.sleep(0)


Message = dict[str, Any]
Answer = Callable[[Message], dict[str, Any] | MCPClientError | None]
"""Gives ``result`` or ``error`` of an answer, a failure of the link, or None for silence."""


class Loopback(BaseDispatcher):
    """Asks ``answer`` for every request, and remembers what it was sent."""

    kind = "loopback"

    def __init__(self, answer: Answer = lambda message: None, *, queue_size: int = 1000) -> None:
        super().__init__(server="srv", repairer=Repairer("srv"), queue_size=queue_size)
        self.answer = answer
        self.sent: list[Message] = []

    async def _send_request(self, message: Message, pending: Pending, opts: CallOptions) -> None:
        self.sent.append(message)
        pending.exchange.sent = True
        answer = self.answer(message)
        if isinstance(answer, MCPClientError):
            self._fail(answer)
        elif answer is not None:
            self._receive({"jsonrpc": "2.0", "id": message["id"], **answer})

    async def _send_message(self, message: Message, opts: CallOptions) -> None:
        self.sent.append(message)

    def _abandon(self, pending: Pending, reason: str) -> None:
        self.sent.append({"method": "notifications/cancelled", "params": {"requestId": pending.request_id}})

    def receive(self, **message: Any) -> None:
        """Have a message come in."""
        self._receive({"jsonrpc": "2.0", **message})
