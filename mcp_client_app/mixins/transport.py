"""What an ``MCPClient`` talks through: requests in, answers out, both in the form of JSON-RPC."""

from __future__ import annotations

import abc
from typing import Any

__all__ = ["MCPTransport"]


class MCPTransport(abc.ABC):
    """The port behind a client. Subclass it to reach a server in a way of your own.

    Such a transport is on its own: no row, no permissions, no audit. ``ServerTransport`` has them.
    """

    @abc.abstractmethod
    def connect(self) -> bool:
        """Reach the server; returns whether that worked."""

    @abc.abstractmethod
    def disconnect(self) -> None:
        """Leave the server; does nothing if that is done already."""

    @abc.abstractmethod
    def send_request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return the answer: an object with ``result`` or ``error``.

        Raises:
            RuntimeError: There is no connection.
            TimeoutError: Time is over.
        """

    @abc.abstractmethod
    def is_connected(self) -> bool:
        """Say whether the server is reached."""

    def is_usable(self) -> bool:
        """Say whether a request makes sense, because there is a connection or it can be made anew."""
        return self.is_connected()

    def bind(self, name: str) -> None:  # noqa: B027 (most have no use for it)
        """Learn the name that the client has for the server."""
