"""The link to a server: it cannot be had, or it broke."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp_client_app.exceptions.base import MCPClientError, outcome, present

__all__ = [
    "AuthRequiredError",
    "ConnectionLostError",
    "ManagerClosedError",
    "NotConnectedError",
    "ServerConnectionError",
    "ServerCrashedError",
    "ServerUnavailableError",
    "TransportError",
]


class ServerConnectionError(MCPClientError, RuntimeError):
    """The server cannot be reached."""

    code = "server_unavailable"

    def __init__(
        self, message: str | None = None, *, server: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, server=server)
        self.retry_after = retry_after
        """Seconds after which another try makes sense, if known."""

    def details(self) -> dict[str, Any]:
        return present(retry_after=self.retry_after)


class ServerUnavailableError(ServerConnectionError):
    """The server is unavailable."""

    code = "server_unavailable"


class NotConnectedError(ServerConnectionError):
    """The server has been disconnected on purpose; connect it first."""

    code = "not_connected"


class ServerCrashedError(ServerConnectionError):
    """The server's process has ended."""

    code = "server_crashed"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        retry_after: float | None = None,
        exit_code: int | None = None,
        stderr_tail: Sequence[str] = (),
        sent: bool = False,
    ) -> None:
        super().__init__(message, server=server, retry_after=retry_after)
        self.exit_code = exit_code
        """Exit status; negative: the number of the signal that ended the process."""
        self.stderr_tail = tuple(stderr_tail)
        """The last lines that the process wrote to its standard error."""
        self.sent = sent
        """Whether the request may have reached the server: then its outcome is unknown."""

    def details(self) -> dict[str, Any]:
        return {
            **super().details(),
            **present(exit_code=self.exit_code, stderr_tail=list(self.stderr_tail) or None),
            **outcome(self.sent),
        }


class ConnectionLostError(ServerConnectionError):
    """The connection broke while a request was in flight."""

    code = "connection_lost"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        retry_after: float | None = None,
        sent: bool = True,
    ) -> None:
        super().__init__(message, server=server, retry_after=retry_after)
        self.sent = sent
        """Whether the request may have reached the server: then its outcome is unknown."""

    def details(self) -> dict[str, Any]:
        return {**super().details(), **outcome(self.sent)}


class ManagerClosedError(ServerConnectionError):
    """The manager has been shut down."""

    code = "manager_closed"


class TransportError(ServerConnectionError):
    """The transport failed."""

    code = "transport_error"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        retry_after: float | None = None,
        status: int | None = None,
        sent: bool = True,
    ) -> None:
        super().__init__(message, server=server, retry_after=retry_after)
        self.status = status
        """HTTP status, when the server gave one."""
        self.sent = sent
        """Whether the request may have reached the server: then its outcome is unknown."""

    def details(self) -> dict[str, Any]:
        return {**super().details(), **present(status=self.status), **outcome(self.sent)}


class AuthRequiredError(ServerConnectionError):
    """The server asks for (other) credentials."""

    code = "auth_required"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        status: int = 401,
        challenge: str | None = None,
    ) -> None:
        super().__init__(message, server=server)
        self.status = status
        self.challenge = challenge
        """The ``WWW-Authenticate`` header as received."""

    def details(self) -> dict[str, Any]:
        return {**super().details(), "status": self.status}
