"""What both links have in common: everything on top of an SDK ``ClientSession``.

Eras, requests, the relist after a header mismatch, subscriptions. Subclasses supply an
entered session. The SDK's types end here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp_types import HEADER_MISMATCH
from pydantic import BaseModel, TypeAdapter, ValidationError

from mcp_client_app.client.dispatch import ProgressRelay
from mcp_client_app.client.envelope import LOG_LEVEL
from mcp_client_app.client.exchange import Exchange, current_exchange, recorded
from mcp_client_app.client.failures import from_foreign, safe_cause
from mcp_client_app.client.link import InputHandler, Link, LinkContext, OnProgress
from mcp_client_app.client.negotiation import Negotiation
from mcp_client_app.datatypes import ProtocolMode, Transport
from mcp_client_app.exceptions import (
    ConnectionLostError,
    InvalidInputError,
    MCPClientError,
    ServerCrashedError,
    TransportError,
)

logger = logging.getLogger(__name__)

__all__ = ["DiedOnProbe", "SessionLink"]

PROBE = 10.0
"""Seconds for the probe of the new era; at most two fifths of the time to connect."""

USER_REJECTED = -1
"""The code that the specification gives to a request for sampling that the user refuses."""

_Request = types.Request[dict[str, Any], str]
_RESULT: TypeAdapter[Any] = TypeAdapter(dict[str, Any])


class SessionLink(Link):
    """A link over an SDK session."""

    def __init__(self, context: LinkContext) -> None:
        super().__init__(context)
        self._stack = contextlib.AsyncExitStack()
        self._session: ClientSession | None = None

    # What a subclass supplies ----------------------------------------------------------

    async def _enter(self, stack: contextlib.AsyncExitStack) -> ClientSession:
        """Enter everything that is needed, on ``stack``, and return the session."""
        raise NotImplementedError

    async def _negotiate(self, session: ClientSession, mode: ProtocolMode) -> None:
        """Find the era; sets ``handshake``."""
        negotiation = Negotiation(session, server=self.context.spec.name, probe_timeout=self._probe_timeout())
        try:
            self.handshake = await negotiation.run(mode)
        except (ServerCrashedError, ConnectionLostError) as error:
            if negotiation.probing_ended_it and self._took_probe():
                raise DiedOnProbe from error
            raise
        finally:
            self.repairs = negotiation.repairs

    def _took_probe(self) -> bool:
        """Say whether a server that is gone may have read the probe: else it did not die of it."""
        return True

    # The port --------------------------------------------------------------------------

    async def open(self) -> None:
        mode = self.context.mode
        try:
            try:
                await self._attempt(mode)
            except DiedOnProbe as died:
                # Old servers exit on a first message that they do not know: start again, the old way.
                if self.context.spec.transport is not Transport.STDIO:
                    raise (died.__cause__ or died) from None
                await self._stack.aclose()
                await self._attempt(ProtocolMode.LEGACY)
        except (asyncio.CancelledError, MCPClientError):
            raise
        except Exception as error:  # noqa: BLE001 - translated and raised again
            raise self._translate(error, "initialize") from safe_cause(error)

    async def _attempt(self, mode: ProtocolMode) -> None:
        self._session = await self._enter(self._stack)
        await self._negotiate(self._session, mode)

    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        relay = ProgressRelay(on_progress) if on_progress is not None else None
        try:
            return await self._send(method, params, relay)
        except (asyncio.CancelledError, MCPClientError):
            raise
        except Exception as error:  # noqa: BLE001 - translated and raised again
            raise self._translate(error, method) from safe_cause(error)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        session = self._entered()
        try:
            notification = types.Notification[dict[str, Any], str](method=method, params=dict(params))
            await session.send_notification(notification)  # type: ignore[arg-type]  # only dumped
        except MCPClientError:
            raise
        except Exception as error:  # noqa: BLE001 - translated and raised again
            raise self._translate(error, method) from safe_cause(error)

    async def listen(self) -> None:
        session = self._entered()
        capabilities = self.handshake.capabilities if self.handshake else {}
        wanted: dict[str, Any] = {
            f"{kind}_list_changed": bool((capabilities.get(kind) or {}).get("listChanged"))
            for kind in ("tools", "prompts", "resources")
        }
        if not self._modern or not any(wanted.values()):
            return
        try:
            async with asyncio.timeout(self.context.spec.list_timeout or None) as limit:
                async with listen(session, **wanted) as subscription:
                    limit.reschedule(None)
                    async for _ in subscription:
                        pass  # the session hands each event to ``_on_message``, too
        except (SubscriptionLost, ListenNotSupportedError, TimeoutError, MCPError) as error:
            raise self._translate(error, "subscriptions/listen") from safe_cause(error)
        # In good order, as servers do that are restarted or that allow no longer stream.
        raise TransportError(
            f"The server {self.context.spec.name!r} ended its stream of changes.",
            server=self.context.spec.name,
            sent=False,
        )

    async def close(self) -> None:
        try:
            await self._stack.aclose()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - it is being closed, whatever it says
            logger.debug("Closing the link to %r: %r", self.context.spec.name, error)
        finally:
            self._session = None
            self._down(None)

    # Requests --------------------------------------------------------------------------

    async def _send(
        self, method: str, params: Mapping[str, Any], relay: ProgressRelay | None
    ) -> dict[str, Any]:
        if method == "tools/list" and self._modern:
            return await self._list_tools(params)
        try:
            return await self._exchange(method, params, relay)
        except MCPError as error:
            if error.error.code != HEADER_MISMATCH or not self._modern or method != "tools/call":
                raise
        # The mirrored headers come from a listing that is stale: list again, and send once more.
        await self._relist()
        return await self._exchange(method, params, relay)

    async def _exchange(
        self, method: str, params: Mapping[str, Any], relay: ProgressRelay | None
    ) -> dict[str, Any]:
        """Send once, through the session."""
        request = _Request(method=method, params=dict(params))
        result: dict[str, Any] = await self._entered().send_request(request, _RESULT, progress_callback=relay)
        return result

    async def _list_tools(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Read a page through the session's own verb: it learns there which arguments become headers."""
        cursor = params.get("cursor")
        listed = await self._entered().list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        result: dict[str, Any] = listed.model_dump(by_alias=True, mode="json", exclude_none=True)
        exchange = current_exchange()
        if exchange is not None and exchange.raw is not None:
            kept = {tool.name for tool in listed.tools}
            exchange.repairs += [
                f"tool {item['name']!r}: its x-mcp-header annotations are invalid"
                for item in exchange.raw.get("tools") or ()
                if isinstance(item, dict)
                and isinstance(item.get("name"), str)
                and item["name"] not in kept
                and "x-mcp-header" in str(item.get("inputSchema"))
            ]
        return result

    async def _relist(self) -> None:
        cursor: str | None = None
        seen: set[str] = set()
        with recorded(Exchange()):  # not the call's own record
            for _ in range(self.context.options.max_pages):
                page = await self._list_tools({"cursor": cursor} if cursor is not None else {})
                cursor = page.get("nextCursor")
                if cursor is None or cursor in seen:
                    return
                seen.add(cursor)

    # What the session is given ---------------------------------------------------------

    def _session_arguments(self) -> dict[str, Any]:
        options, handlers = self.context.options, self.context.input_handlers
        return {
            "client_info": types.Implementation(name=options.client_name, version=options.client_version),
            "message_handler": self._on_message,
            "log_level": LOG_LEVEL,
            "elicitation_callback": _callback(handlers, "elicitation/create", types.ElicitResult),
            "sampling_callback": _callback(handlers, "sampling/createMessage", types.CreateMessageResult),
            "list_roots_callback": _roots_callback(handlers),
        }

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, Exception):
            self._on_stream_error(message)
            return
        params = (
            message.params.model_dump(by_alias=True, mode="json", exclude_none=True) if message.params else {}
        )
        self.context.on_notification(message.method, params)

    def _on_stream_error(self, error: Exception) -> None:
        """A message that the SDK could not read; our dispatchers count these themselves."""

    # Pieces ----------------------------------------------------------------------------

    @property
    def _modern(self) -> bool:
        return self.handshake is not None and self.handshake.mode is ProtocolMode.MODERN

    def _probe_timeout(self) -> float:
        limit = self.context.spec.connect_timeout
        return min(PROBE, 0.4 * limit) if limit else PROBE

    def _entered(self) -> ClientSession:
        if self._session is None:
            error = self.failure or ConnectionLostError(
                f"The connection to {self.context.spec.name!r} is closed.", server=self.context.spec.name
            )
            error = error.copy()
            if hasattr(error, "sent"):
                error.sent = False
            raise error
        return self._session

    def _translate(self, error: BaseException, method: str) -> MCPClientError:
        exchange = current_exchange()
        return from_foreign(
            error,
            server=self.context.spec.name,
            method=method,
            redact=self.context.redact,
            sent=exchange.sent if exchange is not None else True,
        )


class DiedOnProbe(Exception):  # noqa: N818 - never leaves the links
    """The server died on the probe of the new era."""


def _callback(handlers: Mapping[str, InputHandler], method: str, result_type: type[BaseModel]) -> Any:
    handler = handlers.get(method)
    if handler is None:
        return None  # the session refuses, and does not declare the capability

    async def callback(context: ClientRequestContext, params: BaseModel) -> Any:
        asked = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        return await _answer(handler, method, asked, result_type)

    return callback


def _roots_callback(handlers: Mapping[str, InputHandler]) -> Any:
    handler = handlers.get("roots/list")
    if handler is None:
        return None

    async def callback(context: ClientRequestContext) -> Any:
        return await _answer(handler, "roots/list", {}, types.ListRootsResult)

    return callback


async def _answer(
    handler: InputHandler, method: str, asked: Mapping[str, Any], result_type: type[BaseModel]
) -> Any:
    """Ask the project's handler. The server is not told why it failed: the text is none of its business."""
    try:
        answer = await handler(method, asked)
        if answer is None:
            code = USER_REJECTED if method == "sampling/createMessage" else types.INVALID_REQUEST
            return types.ErrorData(code=code, message=f"{method} was refused.")
        return result_type.model_validate(answer)
    except (InvalidInputError, ValidationError) as error:
        logger.error("The handler of %r returned an invalid answer: %s", method, _explained(error))
    except TimeoutError:
        logger.warning("The handler of %r did not answer in time.", method)
    except Exception:
        logger.exception("The handler of %r failed.", method)
    return types.ErrorData(code=types.INTERNAL_ERROR, message=f"{method} could not be answered.")


def _explained(error: InvalidInputError | ValidationError) -> str:
    """Return what is wrong; of what was answered, nothing."""
    if isinstance(error, InvalidInputError):
        return str(error)
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in found[:3])
