"""What happened to one request: filled in by the dispatcher, read by whoever made the call.

The SDK's session stands between the two and passes only the result on, so the record
travels in a context variable set around the request. It must not know connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Exchange", "current_exchange", "recorded"]


@dataclass(slots=True)
class Exchange:
    """The record of one request and its answer."""

    sent: bool = False
    """A part of the request may have reached the server: its outcome is unknown until an answer comes."""
    raw: Mapping[str, Any] | None = None
    """The result as received, before anything was repaired."""
    size: int = 0
    """Bytes of the answer as received; 0 if not known."""
    repairs: list[str] = field(default_factory=list)
    """What was mended in the result, in words."""
    declared: frozenset[str] = frozenset()
    """The kinds of input that the server may ask for in this call, beyond what the connection declares."""
    withdrawn: bool = False
    """Whoever made the request has been told its end: nothing more of it may go out."""

    def about_to_send(self) -> None:
        """Note that a byte may leave now.

        Raises:
            ConnectionAbortedError: None may any more.
        """
        if self.withdrawn:
            raise ConnectionAbortedError
        self.sent = True


_current: ContextVar[Exchange | None] = ContextVar("mcp_client_exchange", default=None)


def current_exchange() -> Exchange | None:
    """Return the record of the request being made in this context, if anybody keeps one."""
    return _current.get()


class recorded:  # noqa: N801 - reads as the verb that it is
    """Records the request made in its ``with`` block."""

    # A class, and not a generator: this is entered with every call.
    __slots__ = ("_exchange", "_token")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def __enter__(self) -> Exchange:
        self._token: Token[Exchange | None] = _current.set(self._exchange)
        return self._exchange

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
