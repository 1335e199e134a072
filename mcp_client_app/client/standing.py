"""How a connection stands: its state, the reason, and whether another attempt may be made.

The rules of back-off, breaker and stopping are here; the work is the connection's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime

from mcp_client_app.client.backoff import Backoff
from mcp_client_app.datatypes import ConnectionState, ServerSpec
from mcp_client_app.exceptions import (
    AuthRequiredError,
    BusyError,
    ConfigurationError,
    MCPClientError,
    NotConnectedError,
    ServerConnectionError,
    ServerUnavailableError,
)

logger = logging.getLogger(__name__)

__all__ = ["Standing"]

SOUND = 60.0
"""Seconds of life after which a loss starts again from zero failures."""

_TROUBLE = (
    ConnectionState.LOST,
    ConnectionState.BACKING_OFF,
    ConnectionState.FAILED,
    ConnectionState.NEEDS_AUTH,
)


class Standing:
    """State of one connection; ``now`` is always the loop's clock, in seconds."""

    def __init__(self, spec: ServerSpec, backoff: Backoff, moved: Callable[[], None]) -> None:
        self.state = ConnectionState.IDLE
        self.reason = ""
        self.error: MCPClientError | None = None
        """The error behind the state, if there is one."""
        self.since = datetime.now(UTC)
        self.backoff = backoff
        """Of the server: shared with the connections of all other principals."""
        self._refusals = Backoff()
        """Credentials that the server refuses are this principal's, and no reason to keep others waiting."""
        self._spec = spec
        self._moved = moved

    def move(self, state: ConnectionState, reason: str = "", error: MCPClientError | None = None) -> None:
        """Change the state; tells the observers unless nothing changed."""
        self.error = error
        if state is self.state and reason == self.reason:
            return
        self.state, self.reason, self.since = state, reason, datetime.now(UTC)
        level = logging.WARNING if state in _TROUBLE else logging.INFO
        logger.log(level, "Server %r is %s%s", self._spec.name, state.value, f": {reason}" if reason else ".")
        self._moved()

    def check_may_connect(self, now: float) -> None:
        """Raise unless the next use may make an attempt.

        Raises:
            NotConnectedError: Stopped on purpose.
            ServerUnavailableError: Within the delay after a failure; says when to try again.
            MCPClientError: The failure that only a new configuration or an explicit connect can mend.
        """
        match self.state:
            case ConnectionState.STOPPED:
                raise NotConnectedError(
                    f"The server {self._spec.name!r} has been disconnected; connect it first.",
                    server=self._spec.name,
                )
            case ConnectionState.FAILED:
                raise self.explanation()
        wait = self.wait(now)
        if wait > 0:
            raise self.explanation(wait)

    def wait(self, now: float) -> float:
        """Return the seconds until the next use may make an attempt; 0 if it may do so now."""
        refused = self.state is ConnectionState.NEEDS_AUTH
        return max(self.backoff.wait(now), self._refusals.wait(now) if refused else 0.0)

    @property
    def failures(self) -> int:
        """Failures in a row."""
        refused = self.state is ConnectionState.NEEDS_AUTH
        return self._refusals.failures if refused else self.backoff.failures

    def connected(self) -> None:
        """An attempt succeeded; whether the server is sound shows with the first answer."""
        self.backoff.retry_at = 0.0
        self._refusals.reset()

    def reset(self) -> None:
        """Forget a stop and all failures, the server's too, by explicit wish."""
        self.backoff.reset()
        self._refusals.reset()
        self.move(ConnectionState.IDLE)

    def explanation(self, wait: float | None = None) -> MCPClientError:
        """Return an error that says why there is no link; ``wait`` is the time until the next attempt."""
        error = self.error or (self.backoff.error if wait is not None else None)
        if error is None:
            return NotConnectedError(
                f"The server {self._spec.name!r} is not connected.", server=self._spec.name
            )
        if wait is None or isinstance(error, AuthRequiredError):
            again = error.copy()
        else:
            again = ServerUnavailableError(
                f"The server {self._spec.name!r} is unavailable, next try in {wait:.0f} s: {error}",
                server=self._spec.name,
                retry_after=wait,
            )
        again.__cause__ = error
        return again

    def failed(self, error: MCPClientError, now: float) -> None:
        """An attempt failed."""
        if isinstance(error, ConfigurationError):
            self.move(ConnectionState.FAILED, str(error), error)
            return
        retry_after = error.retry_after if isinstance(error, ServerConnectionError | BusyError) else None
        backoff = self._refusals if isinstance(error, AuthRequiredError) else self.backoff
        backoff.failed(now, at_least=retry_after, error=error)
        if isinstance(error, AuthRequiredError):
            self.move(ConnectionState.NEEDS_AUTH, str(error), error)
        elif not self._spec.auto_reconnect:
            self.move(ConnectionState.FAILED, str(error), error)
        else:
            self.move(ConnectionState.BACKING_OFF, str(error), error)

    def lost(self, error: MCPClientError, *, lived: float, now: float) -> None:
        """A live link broke after ``lived`` seconds. The next use connects, unless this is a habit."""
        if lived >= SOUND:
            self.backoff.reset()
        if not self._spec.auto_reconnect:
            self.move(ConnectionState.FAILED, str(error), error)
        elif self.backoff.failures:
            # It came up only to fall again, without one success: behave as for failed attempts.
            self.backoff.failed(now, error=error)
            self.move(ConnectionState.BACKING_OFF, str(error), error)
        else:
            self.backoff.failures = 1
            self.move(ConnectionState.LOST, str(error), error)
