"""Requests that the server makes of us: each gets a task of its own and is answered over the link.

Knows neither transports nor requests of ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import anyio
from mcp.shared.dispatcher import CallOptions, OnRequest, coerce_request_id
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.transport_context import TransportContext
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, RequestId
from pydantic import ValidationError

from mcp_client_app.client.background import spawn
from mcp_client_app.exceptions import MCPClientError

logger = logging.getLogger(__name__)

__all__ = ["DispatchContext", "Serving"]

MOST = 32
"""Requests of the server that are handled at once; more are refused."""


class BackChannel(Protocol):
    """The part of a dispatcher that a handler may use."""

    kind: str
    failure: MCPClientError | None

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]: ...

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None: ...


class DispatchContext:
    """What a handler of the server's request or notification is given; the SDK's protocol of that name."""

    message_metadata = None

    def __init__(self, channel: BackChannel, request_id: RequestId | None) -> None:
        self._channel = channel
        self.request_id = request_id
        self.transport = TransportContext(kind=channel.kind, can_send_request=True)
        self.cancel_requested = anyio.Event()

    @property
    def can_send_request(self) -> bool:
        return self._channel.failure is None

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if not self.can_send_request:
            raise NoBackChannelError(method)
        return await self._channel.send_raw_request(method, params, opts)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        await self._channel.notify(method, params, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Client-to-server progress does not exist in the eras spoken here."""


class Serving:
    """The server's requests that are being handled."""

    def __init__(
        self, server: str, channel: BackChannel, answer: Callable[[dict[str, Any]], Awaitable[None]]
    ) -> None:
        self.handler: OnRequest | None = None
        """The session's; None before and after its time: requests are refused."""
        self._server = server
        self._channel = channel
        self._answer = answer
        self._tasks: dict[RequestId, asyncio.Task[None]] = {}

    def serve(self, request_id: RequestId, method: str, params: dict[str, Any] | None) -> None:
        """Handle a request; the answer follows."""
        handler = self.handler
        if handler is None or len(self._tasks) >= MOST:
            spawn(self._refuse(request_id, INTERNAL_ERROR, "The client is busy."), "Refusing a request")
            return
        key = coerce_request_id(request_id)
        task = spawn(self._handle(handler, request_id, method, params), f"Serving {method!r}")
        self._tasks[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))

    def cancel(self, request_id: RequestId) -> None:
        """The server does not want the answer any more."""
        task = self._tasks.get(coerce_request_id(request_id))
        if task is not None:
            task.cancel()

    def stop(self) -> None:
        """Drop what is being handled; nobody could be answered any more."""
        self.handler = None
        for task in list(self._tasks.values()):
            task.cancel()

    def _forget(self, key: RequestId, task: asyncio.Task[None]) -> None:
        # A careless server may use an id again while its first request is still being handled.
        if self._tasks.get(key) is task:
            del self._tasks[key]

    async def _handle(
        self, handler: OnRequest, request_id: RequestId, method: str, params: dict[str, Any] | None
    ) -> None:
        try:
            result = await handler(DispatchContext(self._channel, request_id), method, params)
        except MCPError as error:
            await self._refuse(request_id, error.error.code, error.error.message, error.error.data)
        except ValidationError:
            await self._refuse(request_id, INVALID_PARAMS, "Invalid request parameters")
        except Exception:
            logger.exception("The handler of %r of %r failed.", method, self._server)
            await self._refuse(request_id, INTERNAL_ERROR, "The client failed to answer.")
        else:
            await self._answer({"jsonrpc": "2.0", "id": request_id, "result": result})

    async def _refuse(self, request_id: RequestId, code: int, message: str, data: Any = None) -> None:
        error: dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        await self._answer({"jsonrpc": "2.0", "id": request_id, "error": error})
