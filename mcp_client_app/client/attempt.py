"""One attempt to connect: its beginning, and how all who wait hear of its end."""

from __future__ import annotations

import asyncio

from mcp_client_app.exceptions import MCPClientError

__all__ = ["Attempt"]


class Attempt:
    """Made by the owner of a connection, on the loop; anybody may wait for it."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.began_at = loop.time()
        self._outcome: asyncio.Future[None] = loop.create_future()
        self._outcome.add_done_callback(_retrieved)

    def end(self, failure: MCPClientError | None = None) -> None:
        """Tell all who wait; only the first end counts."""
        if self._outcome.done():
            return
        if failure is None:
            self._outcome.set_result(None)
        else:
            self._outcome.set_exception(failure)

    async def ended(self) -> None:
        """Wait for the end; raises why it failed, to each who waits a copy."""
        await asyncio.wait({self._outcome})  # unlike awaiting it, this leaves it alone when cancelled
        error = self._outcome.exception()
        if error is not None:
            raise error.copy() if isinstance(error, MCPClientError) else error


def _retrieved(future: asyncio.Future[None]) -> None:
    """An attempt that nobody waits for any more may fail in silence: the state tells."""
    if not future.cancelled():
        future.exception()
