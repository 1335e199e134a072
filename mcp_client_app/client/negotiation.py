"""Finds out which era of the protocol a server speaks.

2026-07-28 is probed with ``server/discover``; the ``initialize`` handshake follows when the
answer shows that the server does not know it. Only a JSON-RPC error, HTTP 400, 404 or 405,
and the probe's own time-out show that: a 401, a 500 or a dead network says nothing about
eras and must not silently downgrade.
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION, DiscoverResult, UnsupportedProtocolVersionErrorData
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from mcp_client_app.client.exchange import Exchange, recorded
from mcp_client_app.client.link import Handshake
from mcp_client_app.datatypes import ProtocolMode
from mcp_client_app.exceptions import (
    MCPClientError,
    ProtocolError,
    RequestTimeoutError,
    ServerConnectionError,
    TransportError,
)

__all__ = ["Negotiation", "handshake_of", "tells_the_era"]

NOT_MODERN = (400, 404, 405)
"""HTTP statuses with which a legacy server refuses the probe."""


class Negotiation:
    """One negotiation on one fresh session."""

    def __init__(self, session: ClientSession, *, server: str, probe_timeout: float) -> None:
        self._session = session
        self._server = server
        self._probe_timeout = probe_timeout
        self._probing = False
        self.probing_ended_it = False
        """The link broke while the probe was on its way: a server that does not know it may just exit."""
        self.repairs: list[str] = []

    async def run(self, mode: ProtocolMode) -> Handshake:
        """Negotiate and return what the server said.

        Raises:
            MCPError: The server refused the handshake.
            ProtocolError: No common version.
            MCPClientError: The transport failed.
        """
        try:
            if mode is ProtocolMode.LEGACY:
                await self._initialize()
            elif mode is ProtocolMode.MODERN:
                await self._discover_or_raise()
            else:
                await self._auto()
        except ServerConnectionError:
            self.probing_ended_it = self._probing and mode is ProtocolMode.AUTO
            raise
        return handshake_of(self._session)

    async def _auto(self) -> None:
        version = await self._probe(LATEST_MODERN_VERSION)
        if version is not None:
            await self._probe(version)
        if self._session.protocol_version is not None:
            return
        try:
            await self._initialize()
        except MCPError as error:
            # The server knows the new era after all: its answer to the probe came too late.
            version = _mutual(error) if error.error.code == UNSUPPORTED_PROTOCOL_VERSION else None
            if version is None:
                raise
            await self._probe(version)
            if self._session.protocol_version is None:
                raise

    async def _probe(self, version: str) -> str | None:
        """Ask once; adopts a fitting answer. Returns another version to ask for, if the server names one.

        Raises:
            ProtocolError: The server speaks only versions that we do not.
        """
        self._probing = True
        try:
            async with asyncio.timeout(self._probe_timeout):
                raw = await self._send(self._session.send_discover(version))
        except TimeoutError:
            self._probing = False
            return None
        except MCPError as error:
            self._probing = False
            return self._refused(error)
        except TransportError as error:
            if not tells_the_era(error):
                raise
            self._probing = False
            return None
        self._probing = False
        self._adopt(raw)
        return None

    def _refused(self, error: MCPError) -> str | None:
        if error.error.code != UNSUPPORTED_PROTOCOL_VERSION:
            return None
        supported = _supported(error)
        if supported is not None and not {*MODERN_PROTOCOL_VERSIONS, *HANDSHAKE_PROTOCOL_VERSIONS} & set(
            supported
        ):
            raise self._no_common_version(supported)
        return _mutual(error)

    def _adopt(self, raw: dict[str, Any]) -> None:
        try:
            result = DiscoverResult.model_validate(raw)
        except ValidationError:
            return
        if any(version in MODERN_PROTOCOL_VERSIONS for version in result.supported_versions):
            self._session.adopt(result)

    async def _discover_or_raise(self) -> None:
        version = await self._probe_strictly(LATEST_MODERN_VERSION)
        if version is not None:
            await self._probe_strictly(version)
        if self._session.protocol_version is None:
            raise self._no_common_version(())

    async def _probe_strictly(self, version: str) -> str | None:
        try:
            self._adopt(await self._send(self._session.send_discover(version)))
        except MCPError as error:
            other = self._refused(error)
            if other is None:
                raise
            return other
        return None

    async def _initialize(self) -> None:
        await self._send(self._session.initialize())

    async def _send(self, request: Any) -> Any:
        exchange = Exchange()
        try:
            with recorded(exchange):
                return await request
        finally:
            self.repairs += exchange.repairs

    def _no_common_version(self, supported: Any) -> ProtocolError:
        named = f" It names: {', '.join(map(str, supported))}." if supported else ""
        return ProtocolError(
            f"The server {self._server!r} speaks no protocol version that we know.{named}",
            server=self._server,
        )


def handshake_of(session: ClientSession) -> Handshake:
    """Return what the server said to a session that has found its era."""
    assert session.protocol_version is not None
    info, capabilities = session.server_info, session.server_capabilities
    return Handshake(
        protocol_version=session.protocol_version,
        server_name=info.name if info else None,
        server_version=info.version if info else None,
        instructions=session.instructions,
        capabilities=capabilities.model_dump(by_alias=True, mode="json", exclude_none=True)
        if capabilities
        else {},
    )


def _supported(error: MCPError) -> list[str] | None:
    try:
        return UnsupportedProtocolVersionErrorData.model_validate(error.error.data).supported
    except ValidationError:
        return None


def _mutual(error: MCPError) -> str | None:
    supported = _supported(error) or ()
    return next((version for version in reversed(MODERN_PROTOCOL_VERSIONS) if version in supported), None)


def tells_the_era(error: MCPClientError) -> bool:
    """Say whether a fault of the probe means an old server, rather than nothing about eras."""
    if isinstance(error, TransportError):
        return error.status in NOT_MODERN
    return isinstance(error, RequestTimeoutError)
