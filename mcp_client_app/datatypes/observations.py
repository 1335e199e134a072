"""What can be observed: states, log messages, standard error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mcp_client_app.datatypes.states import SHARED, ConnectionState, Transport

__all__ = ["LogMessage", "ServerStatus", "StderrLine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMessage:
    """One log message that a server sent over the protocol."""

    server: str
    level: str
    data: Any
    logger: str | None = None
    received_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StderrLine:
    """One line that a stdio server wrote to its standard error; no newline, never blank."""

    server: str
    line: str
    received_at: datetime


@dataclass(frozen=True, kw_only=True)
class ServerStatus:
    """What this process knows about one server. Free of secrets."""

    name: str
    transport: Transport
    target: str = ""
    """Command, or scheme and host."""
    enabled: bool = True
    """The operator's wish."""
    state: ConnectionState = ConnectionState.IDLE
    """What was observed, here."""
    reason: str = ""
    """Why the connection is in this state, in words."""
    code: str = ""
    """The error's code, if the state comes from an error."""
    since: datetime | None = None
    retry_at: datetime | None = None
    """When the next use will try again."""
    failures: int = 0
    """Failed attempts in a row."""
    revision: int = 0
    principal: str = SHARED

    protocol_version: str | None = None
    server_name: str | None = None
    server_version: str | None = None
    instructions: str | None = None
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    link: str = ""
    tools: int = 0
    resources: int = 0
    resource_templates: int = 0
    prompts: int = 0
    warnings: tuple[str, ...] = ()
    """What was mended or left out in the catalogue, unset variables, and the like."""

    pid: int | None = None
    exit_code: int | None = None
    stderr_tail: tuple[str, ...] = ()
    noise_count: int = 0
    """Lines on standard output, or messages, that were no JSON-RPC."""
    noise_last: str = ""
    dropped_events: int = 0
    calls: int = 0
    calls_in_flight: int = 0
    connects: int = 0
    """Successful connects of this process."""

    @property
    def is_ready(self) -> bool:
        """Whether the connection is up."""
        return self.state is ConnectionState.READY
