"""The servers that one agent, or one piece of a program, uses: a view on what the process has connected."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from mcp_client_app import services
from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.exceptions import (
    DuplicateServerError,
    MCPClientError,
    ServerConnectionError,
    ServerUnavailableError,
)
from mcp_client_app.mixins.client import MCPClient
from mcp_client_app.mixins.entries import check_config, store_server
from mcp_client_app.mixins.server_transport import ServerTransport
from mcp_client_app.mixins.store import MCPConfig
from mcp_client_app.naming import slugify_server_name

logger = logging.getLogger(__name__)

__all__ = ["MCPClientManager"]


class MCPClientManager:
    """Clients by name. Connections belong to the process's manager, and are shared with all who use them.

    Args:
        config: The file in which servers are kept; None keeps them as rows only, and
            ``load_from_config`` then takes all enabled servers of the site.
        debug: As for ``MCPClient``.
        user: Returns who calls; nobody is trusted code.
        agent: Who calls in the user's name, for the audit.
    """

    def __init__(
        self,
        config: MCPConfig | None = None,
        debug: bool = False,
        *,
        user: Callable[[], Any] = lambda: None,
        agent: str = "",
    ) -> None:
        self.config = config
        self.debug = debug
        self._user = user
        self._agent = agent
        self._clients: dict[str, MCPClient] = {}

    def add_server(self, name: str, config: Mapping[str, Any] | None = None) -> MCPClient:
        """Store a server, connect it, and keep it in the file, if there is one.

        Args:
            name: The name for it.
            config: An entry of an ``mcp.json``; None uses the stored server of this name.

        Raises:
            DuplicateServerError: A ``ValueError``; there is a connected client of this name.
            ConfigurationError: A ``ValueError``; the configuration lacks ``command``, or cannot work, or
                the file cannot be written.
            ServerConnectionError: A ``RuntimeError``; it could not be connected.
            UnknownServerError: There is no server of this name, and no configuration.
        """
        if config is not None:
            check_config(name, config)
        before = self._clients.get(name)
        if before is not None and before.is_connected():
            raise DuplicateServerError(
                f"There is a connected server {name!r} already; remove it first.", server=name, field="name"
            )
        client, transport = self._client(name, config)
        transport.store()
        try:
            client.open()
        except RuntimeError:
            raise
        except MCPClientError as error:
            # Whatever is wrong with the server (no such program, no answer in time): one kind of error.
            raise ServerUnavailableError(str(error), server=name) from error
        if self.config is not None and config is not None:
            try:
                self.config.add_server(name, config)
            except MCPClientError:
                _leave(client)
                raise
        self._replace(client)
        return client

    def remove_server(self, name: str) -> None:
        """Leave a server, and remove it from the file, if there is one. Its row stays, for others.

        An unknown name is only worth a warning.
        """
        forbid_running_loop("remove_server")
        client = self._clients.pop(name, None)
        if client is None:
            logger.warning("There is no MCP server %r to remove.", name)
        else:
            _leave(client)
        if self.config is not None:
            self.config.remove_server(name)

    def get_client(self, name: str) -> MCPClient | None:
        """Return the client of a server, or None."""
        return self._clients.get(name)

    def get_clients(self) -> list[MCPClient]:
        """Return all clients, also those whose servers are gone."""
        return list(self._clients.values())

    def list_servers(self) -> list[str]:
        """Return the names of the servers that are connected."""
        forbid_running_loop("list_servers")
        return [client.name for client in self.get_clients() if client.is_connected()]

    def disconnect_all(self) -> None:
        """Leave all servers; one that makes trouble does not keep the others."""
        forbid_running_loop("disconnect_all")
        while self._clients:
            _leave(self._clients.popitem()[1])

    def load_from_config(self) -> list[MCPClient]:
        """Connect the servers of the file, or else all enabled ones of the site, side by side.

        Returns:
            The new clients. What is connected already, has no command, is stopped or does not
            answer is left out, with a line in the log.
        """
        forbid_running_loop("load_from_config")
        wanted = self._stored() if self.config is None else self._kept(self.config)
        statuses = services.connect_all(wanted.values()) if wanted else {}
        loaded = []
        for name, server in wanted.items():
            status = statuses.get(server)
            if status is None or not status.is_ready:
                reason = status.reason if status is not None else "it is unknown"
                logger.warning("The MCP server %r could not be connected: %s", name, reason)
                continue
            entry = self.config.get_server(name) if self.config is not None else None
            client, transport = self._client(name, entry)
            transport.opened(server)
            try:
                client.introduce()
            except ServerConnectionError as error:
                logger.warning("%s", error)
                _leave(client)
                continue
            self._replace(client)
            loaded.append(client)
        return loaded

    def _stored(self) -> dict[str, str]:
        rows = [row.name for row in services.list_servers() if row.enabled and not row.stopped]
        return {name: name for name in rows if not self._has(name)}

    def _kept(self, config: MCPConfig) -> dict[str, str]:
        """Store the servers of the file; returns their own names by those of the file."""
        wanted: dict[str, str] = {}
        taken: dict[str, str] = {}
        for name, entry in config.get_servers().items():
            first = taken.setdefault(slugify_server_name(name).casefold(), name)
            if first != name:
                logger.warning("The MCP server %r was not loaded: %r has taken its name.", name, first)
                continue
            if self._has(name):
                continue
            try:
                row = services.get_server(store_server(name, entry))
            except MCPClientError as error:
                logger.warning("The MCP server %r was not loaded: %s", name, error)
                continue
            if row.stopped or not row.enabled:
                logger.warning("The MCP server %r was not loaded: it is stopped or disabled.", name)
            else:
                wanted[name] = row.name
        return wanted

    def _has(self, name: str) -> bool:
        client = self._clients.get(name)
        return client is not None and client.is_connected()

    def _client(self, name: str, config: Mapping[str, Any] | None) -> tuple[MCPClient, ServerTransport]:
        transport = ServerTransport(config, user=self._user, agent=self._agent)
        return MCPClient(name, transport, self.debug), transport

    def _replace(self, client: MCPClient) -> None:
        before, self._clients[client.name] = self._clients.get(client.name), client
        if before is not None:
            _leave(before)


def _leave(client: MCPClient) -> None:
    try:
        client.disconnect()
    except MCPClientError as error:
        logger.warning("Leaving the MCP server %r failed: %s", client.name, error)
