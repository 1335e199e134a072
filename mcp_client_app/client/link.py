"""The port between a connection and whatever talks to the server.

A link carries raw MCP requests: a method and its params in, the result as a dict out.
``own`` (our dispatchers under the SDK's session) and ``stock`` (the SDK's client) implement
it; a project may name a class of its own per server. A link is opened and closed by one
task, used from any task of the same loop, and never reconnects.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_client_app.client.loop import LoopThread
from mcp_client_app.client.reaper import Reaper
from mcp_client_app.client.redaction import Redactor
from mcp_client_app.client.starts import StartSlots
from mcp_client_app.datatypes import SHARED, ManagerOptions, ProtocolMode, ServerSpec
from mcp_client_app.exceptions import MCPClientError

__all__ = ["Diagnostics", "Handshake", "InputHandler", "Link", "LinkContext", "OnProgress"]

OnProgress = Callable[[float, float | None, str | None], None]
"""Called on the loop, in receive order, with progress, total and message; must not block or raise."""

InputHandler = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]
"""Answers a request of the server (elicitation, sampling, roots): method and params in, result out.

None refuses.
"""


@dataclass(frozen=True, kw_only=True)
class LinkContext:
    """What a link is given."""

    spec: ServerSpec
    principal: str = SHARED
    options: ManagerOptions
    redact: Redactor
    starts: StartSlots
    reaper: Reaper | None = None
    mode: ProtocolMode = ProtocolMode.AUTO
    """The era to speak; AUTO may come with a remembered one."""
    on_notification: Callable[[str, Mapping[str, Any]], None] = lambda method, params: None
    """Called on the loop, in order; must not block or raise."""
    on_stderr: Callable[[str], None] = lambda line: None
    in_process_thread: Callable[[], LoopThread] | None = None
    """Returns the loop thread of in-process servers, started on first use."""
    input_handlers: Mapping[str, InputHandler] = field(default_factory=dict)
    """By method: ``elicitation/create``, ``sampling/createMessage``, ``roots/list``.

    A handler declares the capability.
    """


@dataclass(frozen=True, kw_only=True)
class Handshake:
    """What the server said about itself."""

    protocol_version: str
    server_name: str | None = None
    server_version: str | None = None
    instructions: str | None = None
    capabilities: Mapping[str, Any] = field(default_factory=dict)

    @property
    def mode(self) -> ProtocolMode:
        """The era, to be remembered for the next connect."""
        modern = self.protocol_version >= ProtocolMode.MODERN.value
        return ProtocolMode.MODERN if modern else ProtocolMode.LEGACY


@dataclass(frozen=True, kw_only=True)
class Diagnostics:
    """What a link knows about its health, for the status."""

    pid: int | None = None
    exit_code: int | None = None
    stderr_tail: tuple[str, ...] = ()
    noise_count: int = 0
    noise_last: str = ""
    dropped: int = 0


class Link(abc.ABC):
    """One live link to one server."""

    kind: str = "custom"

    def __init__(self, context: LinkContext) -> None:
        self.context = context
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done as soon as the link is down, whatever the reason; never an exception."""
        self.failure: MCPClientError | None = None
        """Why it is down."""
        self.handshake: Handshake | None = None
        self.hurry = False
        """Set before ``close`` when the server never became ready: nothing is worth waiting for."""
        self.repairs: list[str] = []
        """What was mended in the handshake."""

    @property
    def is_down(self) -> bool:
        """Whether nothing can be sent any more; may be so a moment before ``closed`` is done."""
        return self.closed.done()

    @property
    def fault(self) -> MCPClientError | None:
        """Why nothing can be sent any more; may be known a moment before ``closed`` is done."""
        return self.failure

    @abc.abstractmethod
    async def open(self) -> None:
        """Connect and negotiate; sets ``handshake``.

        Raises:
            MCPClientError: Why it cannot be done. ``close`` is called in any case.
        """

    @abc.abstractmethod
    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        """Send a request and return its result, repaired.

        Fills in the current ``Exchange``. Cancelling tells the server.

        Raises:
            MCPClientError: ``ProtocolError`` for a JSON-RPC error, others for the transport.
        """

    @abc.abstractmethod
    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""

    async def listen(self) -> None:  # noqa: B027 - not every link has to
        """Keep a subscription to list changes open; returns at once if none is needed.

        Raises:
            MCPClientError: It ended, for whatever reason: it is opened again after a while.
        """

    @abc.abstractmethod
    async def close(self) -> None:
        """Close; by the task that opened. Bounded by ``spec.shutdown_timeout``."""

    def diagnostics(self) -> Diagnostics:
        """Return what is known about the link's health."""
        return Diagnostics()

    def give_up(self, failure: MCPClientError) -> None:
        """Count as down from now on."""
        self._down(failure)

    def kill_now(self) -> None:  # noqa: B027 - not every link has to
        """Let go of everything at once, without waiting: for the exit path."""

    def forget(self) -> None:  # noqa: B027 - not every link has to
        """After a fork, in the child: close copies of descriptors; never touch the server."""

    def _down(self, failure: MCPClientError | None) -> None:
        if self.failure is None:
            self.failure = failure
        if not self.closed.done():
            self.closed.set_result(None)
