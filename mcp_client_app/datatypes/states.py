"""Which transports, eras and states there are."""

from __future__ import annotations

import enum

__all__ = ["SHARED", "ConnectionState", "ProtocolMode", "Transport"]

SHARED = "shared"
"""The principal whose credentials a connection carries unless another one is named."""


class Transport(enum.StrEnum):
    """How a server is reached."""

    STDIO = "stdio"
    STREAMABLE_HTTP = "streamable_http"
    SSE = "sse"
    IN_PROCESS = "in_process"


class ProtocolMode(enum.StrEnum):
    """Which era of the protocol a connection speaks."""

    AUTO = "auto"
    """Probe for 2026-07-28, fall back to the handshake; remember what was found."""
    LEGACY = "legacy"
    """Only the ``initialize`` handshake (2024-11-05 to 2025-11-25)."""
    MODERN = "2026-07-28"
    """Only the stateless protocol of 2026-07-28."""


class ConnectionState(enum.StrEnum):
    """Where a connection stands; each state comes with a reason."""

    IDLE = "idle"
    """Not connected, and nothing is wrong: the next use connects."""
    CONNECTING = "connecting"
    READY = "ready"
    LOST = "lost"
    """The link broke; the next use connects anew."""
    BACKING_OFF = "backing_off"
    """The last attempt failed; the next use connects once the delay is over."""
    FAILED = "failed"
    """Waits for a new configuration or an explicit connect."""
    NEEDS_AUTH = "needs_auth"
    """The server refuses the credentials."""
    STOPPED = "stopped"
    """Disconnected on purpose: stays so until ``connect``."""
