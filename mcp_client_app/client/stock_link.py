"""The link ``stock``: the SDK's client as it is, over transports of ours.

It depends on nothing provisional of the SDK, and so takes over when the dispatcher port has changed;
it alone carries the HTTP transport of 2024-11-05. What the SDK's client does by itself and would do
wrong (take a 401 for an old server, let one failed POST end all) is caught in the transports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.client.client import Client
from mcp.client.session import IncomingMessage
from mcp_types import ProgressNotification

from mcp_client_app.client.exchange import Exchange, current_exchange, recorded
from mcp_client_app.client.failures import safe_cause
from mcp_client_app.client.link import OnProgress
from mcp_client_app.client.negotiation import handshake_of
from mcp_client_app.client.session_link import DiedOnProbe
from mcp_client_app.client.stock_http import StreamableTransport
from mcp_client_app.client.stock_sse import SseTransport
from mcp_client_app.client.stock_stdio import StdioTransport
from mcp_client_app.client.stock_transport import StockTransport
from mcp_client_app.client.wire_link import WireLink
from mcp_client_app.datatypes import ProtocolMode, Transport
from mcp_client_app.exceptions import ConfigurationError, ConnectionLostError, MCPClientError

__all__ = ["StockLink"]


class StockLink(WireLink):
    """The SDK's client over stdio, streamable HTTP and legacy SSE."""

    kind = "stock"

    async def _attempt(self, mode: ProtocolMode) -> None:
        if self.context.spec.transport is Transport.SSE and mode is ProtocolMode.AUTO:
            mode = ProtocolMode.LEGACY  # the new era knows no such transport
        transport = await self._make_transport(mode)
        self._use(transport)
        client = Client(transport, mode=str(mode), cache=None, **self._session_arguments())
        with recorded(Exchange()) as exchange:
            try:
                await self._stack.enter_async_context(client)
            except Exception as error:  # noqa: BLE001 - translated and raised again
                if transport.died_on_probe and self._took_probe():
                    raise DiedOnProbe from transport.failure
                raise self._translate(error, "initialize") from safe_cause(error)
        transport.end_probing()
        self._session = client.session
        if mode is ProtocolMode.MODERN:
            await self._negotiate(client.session, mode)  # the client has only assumed it
        else:
            self.handshake, self.repairs = handshake_of(client.session), exchange.repairs
        self._repairer.modern = self._modern

    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        exchange, wire = current_exchange(), self._wire
        try:
            return await super().request(method, params, on_progress=on_progress)
        finally:
            if exchange is not None and isinstance(wire, StockTransport):
                wire.withdraw(exchange)

    async def _make_transport(self, mode: ProtocolMode) -> StockTransport:
        spec, options = self.context.spec, self.context.options
        probe_timeout = self._probe_timeout() if mode is ProtocolMode.AUTO else None
        match spec.transport:
            case Transport.STDIO:
                transport = StdioTransport(
                    await self._start_process(self._stack),
                    server=spec.name,
                    repairer=self._repairer,
                    redactor=self.context.redact,
                    max_frame_size=options.max_frame_size,
                    probe_timeout=probe_timeout,
                    stderr_lines=options.stderr_lines,
                    strict_parsing=spec.strict.parse_errors,
                    on_stderr=self.context.on_stderr,
                )
                self._channel = transport.channel
                return transport
            case Transport.STREAMABLE_HTTP:
                return StreamableTransport(
                    spec,
                    await self._make_http_client(),
                    repairer=self._repairer,
                    redact=self.context.redact,
                    max_frame_size=options.max_frame_size,
                    probe_timeout=probe_timeout,
                )
            case Transport.SSE:
                return SseTransport(
                    await self._make_http_client(),
                    server=spec.name,
                    repairer=self._repairer,
                    redact=self.context.redact,
                    max_frame_size=options.max_frame_size,
                )
            case transport_name:
                # The SDK would run the server's code on the loop that serves all the others.
                raise ConfigurationError(
                    f"The link 'stock' does not speak {transport_name.value!r}; use 'own'.",
                    server=spec.name,
                    field="link",
                )

    async def _on_message(self, message: IncomingMessage) -> None:
        # The SDK repeats here what has reached the call's own callback.
        if not isinstance(message, ProgressNotification):
            await super()._on_message(message)

    def _translate(self, error: BaseException, method: str) -> MCPClientError:
        failure = super()._translate(error, method)
        wire = self._wire
        if isinstance(failure, ConnectionLostError) and isinstance(wire, StockTransport) and wire.failure:
            # The SDK only knows that it is over, not why.
            return wire.failure_for(current_exchange() or Exchange())
        return failure
