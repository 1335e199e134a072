"""The stream that the SDK's dispatcher writes to, for our transports."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from mcp.shared.message import SessionMessage

__all__ = ["WriteStream"]


class WriteStream:
    """Hands messages on. Closing it closes nothing: the owner of the transport does that."""

    def __init__(self, send: Callable[[SessionMessage], Awaitable[None]]) -> None:
        self._send = send

    async def send(self, item: SessionMessage, /) -> None:
        await self._send(item)

    async def aclose(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return None
