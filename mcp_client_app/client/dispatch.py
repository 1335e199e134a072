"""The part of a dispatcher that every transport shares.

Implements the SDK's ``Dispatcher`` protocol (``mcp.shared.dispatcher``) on plain dicts:
ids, waiting requests, progress, cancellation, requests and notifications of the server.
A transport supplies three things: ``_send_request``, ``_send_message`` and a call of
``_receive`` for each decoded message. Everything runs on one event loop.

Unlike the SDK's dispatchers it raises our own exceptions for everything that is not a
JSON-RPC error, so that a network fault can never be mistaken for a server's answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.shared.dispatcher import (
    CallOptions,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    ProgressFnT,
    as_request_id,
    coerce_request_id,
    run_notify_intercept,
)
from mcp.shared.exceptions import MCPError
from mcp_types import REQUEST_TIMEOUT, RequestId

from mcp_client_app.client.background import spawn
from mcp_client_app.client.decoding import aside
from mcp_client_app.client.exchange import Exchange, current_exchange
from mcp_client_app.client.failures import carrying
from mcp_client_app.client.leniency import Repairer, notifications
from mcp_client_app.client.rpc_messages import LISTEN, is_batch, named_id, rpc_error
from mcp_client_app.client.serving import DispatchContext, Serving
from mcp_client_app.exceptions import MCPClientError, TransportError

logger = logging.getLogger(__name__)

__all__ = ["BaseDispatcher", "Pending", "ProgressRelay"]


@dataclass(slots=True, eq=False)
class Pending:
    """A request that waits for its answer."""

    request_id: RequestId
    method: str
    future: asyncio.Future[dict[str, Any]]
    on_progress: ProgressFnT | None
    exchange: Exchange


class ProgressRelay:
    """A progress callback that is called in receive order, without a task of its own."""

    def __init__(self, report: Any) -> None:
        self.report = report

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.report(progress, total, message)


class BaseDispatcher:
    """Correlates requests and answers over a transport that a subclass supplies."""

    kind = "base"

    def __init__(self, *, server: str, repairer: Repairer, queue_size: int = 1000) -> None:
        self.server = server
        self.repairer = repairer
        self.failure: MCPClientError | None = None
        """Why nothing can be sent any more; None while the link is up."""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done as soon as the link is down, whatever the reason; never an exception."""
        self.noise_count = 0
        self.noise_last = ""
        self.dropped_notifications = 0
        self.trace: Callable[[str, Any], None] | None = None
        """Called with ``->`` or ``<-`` and each message; for debugging."""
        self.redact: Callable[[str], str] = str
        """Takes the server's secrets out of text that people will see."""
        self.discover_meta: Mapping[str, Any] = {}
        """The ``_meta`` that the session sent with ``server/discover``."""
        self._next_id = 0
        self._pending: dict[RequestId, Pending] = {}
        self._serving = Serving(server, self, lambda message: self._tell(message, {}))
        self._notifications: deque[tuple[str, dict[str, Any] | None]] = deque()
        self.listener: Callable[[str, Mapping[str, Any]], None] | None = None
        """Takes the server's notifications, at once and in order, instead of the session; must not block.

        Without one they wait in a queue for the session, and the oldest are dropped.
        """
        self._queue_size = queue_size
        self._wake = asyncio.Event()
        self._intercept: OnNotifyIntercept | None = None

    # What a transport supplies ---------------------------------------------------------

    async def _send_request(self, message: dict[str, Any], pending: Pending, opts: CallOptions) -> None:
        """Send the request and set ``pending.exchange.sent`` as soon as a byte may have left.

        May return before the answer is there (``_receive`` or ``_settle`` brings it) or
        raise one of our exceptions. Cancelled when nobody waits any more.
        """
        raise NotImplementedError

    async def _send_message(self, message: dict[str, Any], opts: CallOptions) -> None:
        """Send a notification or an answer; a link that is down drops it."""
        raise NotImplementedError

    def _abandon(self, pending: Pending, reason: str) -> None:
        """Tell the server, without waiting, that nobody waits for the answer any more."""
        raise NotImplementedError

    # The SDK's Dispatcher protocol -----------------------------------------------------

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request of the session's and return its result, repaired.

        Raises:
            MCPError: The server answered with a JSON-RPC error, or ``opts["timeout"]`` is over.
            MCPClientError: The transport failed; ``sent`` says whether the request may have run.
            ValueError: The request id in ``opts`` is in flight already.
        """
        if method == "server/discover":
            self.discover_meta = (params or {}).get("_meta") or {}
        try:
            return await self._request(method, params, opts)
        except MCPClientError as error:
            if method != LISTEN:
                raise
            # The SDK awaits this one in a task of the session; an exception that it does not expect there
            # would end the session, and cancel the connection's owner.
            raise carrying(error) from error

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        on_progress: ProgressFnT | None = None,
        headers: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        """Send a request that does not pass the session; with the errors of ``send_raw_request``."""
        opts: CallOptions = {}
        if on_progress is not None:
            opts["on_progress"] = on_progress
        if headers is not None:
            opts["headers"] = headers
        return await self._request(method, params, opts)

    async def _request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None
    ) -> dict[str, Any]:
        exchange = current_exchange() or Exchange()
        if self.failure is not None:
            raise self._failure_for(exchange)
        opts = opts or {}
        pending = self._register(method, opts, exchange)
        try:
            timeout = opts.get("timeout")
            if timeout is None:
                result = await self._round_trip(params, pending, opts)
            else:
                async with asyncio.timeout(timeout):
                    result = await self._round_trip(params, pending, opts)
        except TimeoutError:
            self._give_up(pending, opts, "timed out")
            raise MCPError(REQUEST_TIMEOUT, f"The request {method!r} was not answered in time.") from None
        except asyncio.CancelledError:
            self._give_up(pending, opts, "cancelled")
            raise
        finally:
            self._pending.pop(coerce_request_id(pending.request_id), None)
            if pending.future.done() and not pending.future.cancelled():
                pending.future.exception()  # marks it as seen, should nobody have awaited it
        exchange.raw = result
        repaired, exchange.repairs = await aside(exchange.size, self.repairer.repair, method, result)
        return repaired

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification; dropped when the link is down."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = dict(params)
        await self._tell(message, opts or {})

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Hand the server's requests and notifications to the session until cancelled.

        Stays until the session is left, also when the link is down: the owner decides.
        """
        self._serving.handler = on_request
        self._intercept = on_notify_intercept
        task_status.started()
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._notifications:
                    method, params = self._notifications.popleft()
                    try:
                        await on_notify(DispatchContext(self, None), method, params)
                    except Exception:
                        logger.exception("The handler of %r of %r failed.", method, self.server)
        finally:
            self._serving.stop()

    # Receiving -------------------------------------------------------------------------

    def _receive(self, message: Any, size: int = 0) -> None:
        """Route one decoded message. Never raises: a bad message costs itself only."""
        if is_batch(message):
            for item in message:
                self._receive(item)
            return
        if self.trace is not None:
            self.trace("<-", message)
        if not isinstance(message, dict):
            self._note_noise(f"not a JSON-RPC message: {str(message)[:4000]}")
            return
        method = message.get("method")
        if isinstance(method, str):
            params = message.get("params")
            if params is not None and not isinstance(params, dict):
                params = None
            request_id = as_request_id(message.get("id"))
            if "id" in message and request_id is not None:
                self._serving.serve(request_id, method, params)
            else:
                self._notified(method, params)
        elif "result" in message or "error" in message:
            self._answered(message, size)
        else:
            self._note_noise("a message without method, result and error")

    def _answered(self, message: dict[str, Any], size: int) -> None:
        request_id = named_id(message)
        if request_id is not None:
            pending = self._pending.get(request_id)
        else:
            pending = self._only_one_waiting() if "error" in message else None
        if pending is None or pending.future.done():  # answered twice, before the first was taken
            logger.debug("Dropped an answer of %r: nobody waits for it.", self.server)
            return
        pending.exchange.size = size
        if message.get("error") is not None:
            self._settle(pending, MCPError.from_error_data(rpc_error(message["error"])))
        elif isinstance(message.get("result"), dict):
            self._settle(pending, message["result"])
        else:
            self._settle(
                pending,
                TransportError(
                    f"The server {self.server!r} answered {pending.method!r} "
                    "with a result that is no object.",
                    server=self.server,
                ),
            )

    def _only_one_waiting(self) -> Pending | None:
        """Return the request that an error without an id must mean; a subscription waits for no answer."""
        waiting = [pending for pending in self._pending.values() if pending.method != LISTEN]
        return waiting[0] if len(waiting) == 1 else None

    def _settle(self, pending: Pending, outcome: dict[str, Any] | Exception) -> None:
        if pending.future.done():
            return
        if isinstance(outcome, Exception):
            pending.future.set_exception(outcome)
        else:
            pending.future.set_result(outcome)

    def _notified(self, method: str, params: dict[str, Any] | None) -> None:
        if method in notifications.KNOWN:
            params = notifications.notification(method, params)
            if params is None:
                self._note_noise(f"a malformed notification {method!r}")
                return
        if method == "notifications/progress":
            self._progressed(params or {})
        elif method == "notifications/cancelled":
            request_id = as_request_id((params or {}).get("requestId"))
            if request_id is not None:
                self._serving.cancel(request_id)
        if run_notify_intercept(self._intercept, method, params) or method == "notifications/progress":
            return
        if self.listener is not None:
            if method in notifications.KNOWN and method != "notifications/cancelled":
                self.listener(method, params or {})
            return
        if len(self._notifications) >= self._queue_size:
            self._notifications.popleft()
            self.dropped_notifications += 1
        self._notifications.append((method, params))
        self._wake.set()

    def _progressed(self, params: dict[str, Any]) -> None:
        token = as_request_id(params.get("progressToken"))
        progress = _number(params.get("progress"))
        if token is None or progress is None:
            return
        pending = self._pending.get(coerce_request_id(token))
        if pending is None or pending.on_progress is None or pending.future.done():
            return
        total, text = _number(params.get("total")), params.get("message")
        message = text if isinstance(text, str) else None
        if isinstance(pending.on_progress, ProgressRelay):
            pending.on_progress.report(progress, total, message)
        else:
            spawn(pending.on_progress(progress, total, message), "A progress callback")

    async def _tell(self, message: dict[str, Any], opts: CallOptions) -> None:
        if self.failure is None:
            if self.trace is not None:
                self.trace("->", message)
            await self._send_message(message, opts)

    # Inner workings --------------------------------------------------------------------

    def _register(self, method: str, opts: CallOptions, exchange: Exchange) -> Pending:
        request_id = opts.get("request_id")
        if request_id is None:
            self._next_id += 1
            while self._next_id in self._pending:
                self._next_id += 1
            request_id = self._next_id
        elif coerce_request_id(request_id) in self._pending:
            raise ValueError(f"The request id {request_id!r} is in flight already.")
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        pending = Pending(request_id, method, future, opts.get("on_progress"), exchange)
        self._pending[coerce_request_id(request_id)] = pending
        return pending

    async def _round_trip(
        self, params: Mapping[str, Any] | None, pending: Pending, opts: CallOptions
    ) -> dict[str, Any]:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": pending.request_id, "method": pending.method}
        if pending.on_progress is not None:
            params = dict(params or {})
            params["_meta"] = {**(params.get("_meta") or {}), "progressToken": pending.request_id}
        if params:
            message["params"] = params
        if self.trace is not None:
            self.trace("->", message)
        await self._send_request(message, pending, opts)
        return await pending.future

    def _give_up(self, pending: Pending, opts: CallOptions, reason: str) -> None:
        if pending.exchange.sent and self.failure is None and opts.get("cancel_on_abandon", True):
            self._abandon(pending, reason)

    def _fail(self, failure: MCPClientError) -> None:
        """Take the link down: every waiting request fails, later ones at once. The first reason stays."""
        if self.failure is None:
            self.failure = failure
        # First of all: who waits for a request may try again at once, and must not find the link up.
        if not self.closed.done():
            self.closed.set_result(None)
        for pending in list(self._pending.values()):
            self._settle(pending, self._failure_for(pending.exchange))

    def _failure_for(self, exchange: Exchange) -> MCPClientError:
        assert self.failure is not None
        error = self.failure.copy()
        error.__cause__ = self.failure
        if hasattr(error, "sent"):
            error.sent = exchange.sent
        return error

    def _note_noise(self, text: str) -> None:
        self.noise_count += 1
        self.noise_last = self.redact(text)[:200]  # in this order: half a secret would not be known as one
        logger.debug("Noise from %r: %s", self.server, self.noise_last)


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None
