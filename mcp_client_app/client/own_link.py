"""The link ``own``: our dispatchers under the SDK's session.

The session finds the era, and serves what the server sends by itself. Requests go straight
to the dispatcher, whose results are repaired: the session would look at every result three
times only to give the same dict back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.client.session import ClientSession

from mcp_client_app.client.declaring import declaring
from mcp_client_app.client.dispatch import BaseDispatcher, ProgressRelay
from mcp_client_app.client.envelope import Envelope
from mcp_client_app.client.exchange import current_exchange
from mcp_client_app.client.in_process import InProcessDispatcher
from mcp_client_app.client.link import LinkContext
from mcp_client_app.client.stdio import StdioDispatcher
from mcp_client_app.client.streamable_http import HttpDispatcher
from mcp_client_app.client.wire_link import WireLink
from mcp_client_app.datatypes import ProtocolMode, Transport
from mcp_client_app.exceptions import ConfigurationError

__all__ = ["OwnLink", "QuietSession"]


class QuietSession(ClientSession):
    """The SDK's session without its check of results.

    The check would raise after the tool has run, and list all tools again for one that it
    does not know. We check on the caller's side and warn.
    """

    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        """Accept every result."""


class OwnLink(WireLink):
    """Our stdio, streamable HTTP and in-process dispatchers."""

    kind = "own"

    def __init__(self, context: LinkContext) -> None:
        super().__init__(context)
        self._dispatcher: BaseDispatcher | None = None
        self._envelope: Envelope | None = None
        """None in the handshake eras, whose requests carry nothing more."""

    async def _enter(self, stack: contextlib.AsyncExitStack) -> ClientSession:
        match self.context.spec.transport:
            case Transport.STDIO:
                dispatcher: BaseDispatcher = await self._stdio(stack)
            case Transport.STREAMABLE_HTTP:
                dispatcher = await self._http(stack)
            case Transport.IN_PROCESS:
                dispatcher = await self._in_process(stack)
            case transport:
                raise ConfigurationError(
                    f"The link 'own' does not speak {transport.value!r}; use 'stock'.",
                    server=self.context.spec.name,
                    field="link",
                )
        self._use(dispatcher)
        self._dispatcher = dispatcher
        dispatcher.listener = self.context.on_notification
        session = QuietSession(dispatcher=dispatcher, **self._session_arguments())
        return await stack.enter_async_context(session)

    async def _negotiate(self, session: ClientSession, mode: ProtocolMode) -> None:
        await super()._negotiate(session, mode)
        self._repairer.modern = self._modern
        if self._modern:
            assert self._dispatcher is not None
            assert self.handshake is not None
            self._envelope = Envelope(
                self._dispatcher.discover_meta,
                self.handshake.protocol_version,
                mirrored=self.context.spec.transport is Transport.STREAMABLE_HTTP,
            )

    async def _exchange(
        self, method: str, params: Mapping[str, Any], relay: ProgressRelay | None
    ) -> dict[str, Any]:
        self._entered()  # raises if it is closed
        assert self._dispatcher is not None
        if self._envelope is None:
            return await self._dispatcher.request(method, params, relay)
        headers = self._envelope.headers(method, params)
        params = self._envelope.params(params)
        exchange = current_exchange()
        if exchange is not None and exchange.declared:
            params = declaring(params, exchange.declared)
        return await self._dispatcher.request(method, params, relay, headers)

    async def _list_tools(self, params: Mapping[str, Any]) -> dict[str, Any]:
        assert self._envelope is not None
        page = await self._exchange("tools/list", params, None)
        notes = self._envelope.learn(page)
        exchange = current_exchange()
        if exchange is not None:
            exchange.repairs += notes
        return page

    async def _stdio(self, stack: contextlib.AsyncExitStack) -> StdioDispatcher:
        spec, options = self.context.spec, self.context.options
        dispatcher = StdioDispatcher(
            await self._start_process(stack),
            server=spec.name,
            repairer=self._repairer,
            redactor=self.context.redact,
            max_frame_size=options.max_frame_size,
            queue_size=options.queue_size,
            stderr_lines=options.stderr_lines,
            strict_parsing=spec.strict.parse_errors,
            on_stderr=self.context.on_stderr,
        )
        self._channel = dispatcher.channel
        stack.callback(dispatcher.channel.detach)
        return dispatcher

    async def _http(self, stack: contextlib.AsyncExitStack) -> HttpDispatcher:
        spec, options = self.context.spec, self.context.options
        dispatcher = HttpDispatcher(
            spec,
            await self._make_http_client(),
            repairer=self._repairer,
            redactor=self.context.redact,
            max_frame_size=options.max_frame_size,
            queue_size=options.queue_size,
        )
        stack.push_async_callback(dispatcher.aclose, spec.shutdown_timeout or 5.0)
        return dispatcher

    async def _in_process(self, stack: contextlib.AsyncExitStack) -> InProcessDispatcher:
        spec = self.context.spec
        assert self.context.in_process_thread is not None
        dispatcher = InProcessDispatcher(
            spec.in_process,
            server=spec.name,
            repairer=self._repairer,
            thread=self.context.in_process_thread(),
            queue_size=self.context.options.queue_size,
        )
        stack.push_async_callback(dispatcher.aclose)
        await dispatcher.start()
        return dispatcher
