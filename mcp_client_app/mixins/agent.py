"""The mixin that gives any agent class the tools of MCP servers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, MutableMapping
from functools import cached_property
from typing import Any

from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.exceptions import AsyncContextError, MCPClientError
from mcp_client_app.mixins.client import MCPClient
from mcp_client_app.mixins.entries import check_config
from mcp_client_app.mixins.manager import MCPClientManager
from mcp_client_app.mixins.store import MCPConfig
from mcp_client_app.mixins.tools import MCPTool, wrapped
from mcp_client_app.naming import public_tool_name

logger = logging.getLogger(__name__)

__all__ = ["MCPClientMixin"]


class MCPClientMixin:
    """Lets an agent connect to servers and keep their tools in its registry.

    A tool is called ``mcp_<server>_<tool>`` there, and its entry has ``name``, ``description``,
    ``parameters``, ``function`` and the rest of GAIA's form. ``rebuild_system_prompt`` of the agent, if it
    has one, is called once after each change. The verbs are for threads; on an event loop they raise
    ``AsyncContextError``.
    """

    _TOOL_REGISTRY: MutableMapping[str, dict[str, Any]]
    """Tools by name. An agent that has one already keeps it; else each instance gets its own."""

    mcp_config: MCPConfig | None = None
    """The file in which servers are kept; None: the site's servers are the configuration."""
    mcp_wrap_responses: bool = True
    """Put status, message and an instruction for the model around results."""
    mcp_user: Any = None
    """In whose name tools are listed and called, looked at for each call; None for trusted code."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "debug" in kwargs:
            self._mcp_debug = bool(kwargs["debug"])
        # The last class before ``object``, which takes nothing, swallows what is left.
        following = type(self).__mro__[type(self).__mro__.index(MCPClientMixin) + 1 :]
        if any("__init__" in vars(cls) for cls in following if cls is not object):
            super().__init__(*args, **kwargs)
        else:
            super().__init__()

    @cached_property
    def _mcp_manager(self) -> MCPClientManager:
        """Made on first use, for agents whose other bases do not call ``super().__init__``."""
        debug = bool(getattr(self, "_mcp_debug", False) or getattr(self, "debug", False))
        return MCPClientManager(
            self.mcp_config, debug, user=lambda: self.mcp_user, agent=self.mcp_agent_name[:200]
        )

    @property
    def mcp_agent_name(self) -> str:
        """What the audit calls this agent."""
        return type(self).__name__

    # Verbs -------------------------------------------------------------------------------

    def connect_mcp_server(self, name: str, config: Mapping[str, Any] | None = None) -> bool:
        """Connect to a server and register its tools.

        Args:
            name: The name for it.
            config: ``command``, ``args`` and ``env``, or ``url`` and ``headers``; None uses the server
                that the site has under this name.

        Returns:
            Whether that worked; why it did not is logged.

        Raises:
            ConfigurationError: A ``ValueError``; the configuration is no object, or lacks ``command``.
        """
        if config is not None:
            check_config(name, config)
        try:
            client = self._mcp_manager.add_server(name, config)
        except AsyncContextError:
            raise
        except MCPClientError as error:
            logger.warning("The MCP server %r could not be connected: %s", name, error)
            return False
        # A client of this name that had died may have left tools that are gone by now.
        self._unregister_mcp_tools(client)
        self._register_mcp_tools(client)
        self._rebuild()
        return True

    def disconnect_mcp_server(self, name: str) -> None:
        """Unregister a server's tools and leave it; an unknown name is only worth a warning.

        Raises:
            ConfigurationError: That is done, but the file of servers cannot be written.
        """
        forbid_running_loop("disconnect_mcp_server")
        client = self._mcp_manager.get_client(name)
        had_tools = client is not None and self._forget_tools(client)
        try:
            self._mcp_manager.remove_server(name)
        finally:
            if had_tools:
                self._rebuild()

    def list_mcp_servers(self) -> list[str]:
        """Return the names of the servers that are connected."""
        return self._mcp_manager.list_servers()

    def get_mcp_client(self, name: str) -> MCPClient | None:
        """Return the client of a server, or None."""
        return self._mcp_manager.get_client(name)

    def load_mcp_servers_from_config(self) -> int:
        """Connect all servers of the configuration and register their tools; returns how many worked."""
        clients = self._mcp_manager.load_from_config()
        for client in clients:
            self._unregister_mcp_tools(client)
            self._register_mcp_tools(client)
        if clients:
            self._rebuild()
        return len(clients)

    def refresh_mcp_tools(self) -> bool:
        """Make the registry agree with the servers as they are now; returns whether it changed.

        Tools of a server that is gone, stopped or does not answer are unregistered, and come back when
        it does.
        """
        forbid_running_loop("refresh_mcp_tools")
        before = _outline(self._mcp_registry)
        for client in self._mcp_manager.get_clients():
            # Without an answer the client still has the old ones.
            usable = bool(client.list_tools(refresh=True)) and client.is_connected()
            self._unregister_mcp_tools(client)
            if usable:
                self._register_mcp_tools(client)
        if changed := _outline(self._mcp_registry) != before:
            self._rebuild()
        return changed

    # To be overridden --------------------------------------------------------------------

    def _register_mcp_tools(self, client: MCPClient) -> None:
        """Put a server's tools into the registry."""
        for tool in client.list_tools():
            entry = tool.to_gaia_format(client.name)
            if entry["name"] in self._mcp_registry:
                # "a" with "b_c" and "a_b" with "c" give the same name, which belongs to the first.
                entry["name"] = f"mcp_{public_tool_name(client.name, tool.name)}"
            entry["function"] = self._mcp_function(client, tool)
            self._mcp_registry[entry["name"]] = entry

    def _unregister_mcp_tools(self, client: MCPClient) -> None:
        """Take a server's tools out of the registry."""
        registry = self._mcp_registry
        for name in [name for name, entry in registry.items() if _server_of(entry) == client.name]:
            del registry[name]

    # The rest ----------------------------------------------------------------------------

    @property
    def _mcp_registry(self) -> MutableMapping[str, dict[str, Any]]:
        registry: MutableMapping[str, dict[str, Any]] | None = getattr(self, "_TOOL_REGISTRY", None)
        if registry is None:
            registry = self._TOOL_REGISTRY = {}
        return registry

    def _mcp_function(self, client: MCPClient, tool: MCPTool) -> Callable[..., Any]:
        call = client.create_tool_wrapper(tool)

        def function(**kwargs: Any) -> Any:
            try:
                response: Any = call(**kwargs)
            except AsyncContextError:
                raise
            except MCPClientError as error:  # not connected any more: for the model to know
                response = {"error": str(error)}
            return wrapped(tool.name, response) if self.mcp_wrap_responses else response

        function.__name__ = function.__qualname__ = tool.name
        function.__doc__ = tool.description
        return function

    def _forget_tools(self, client: MCPClient) -> bool:
        before = len(self._mcp_registry)
        self._unregister_mcp_tools(client)
        return len(self._mcp_registry) != before

    def _rebuild(self) -> None:
        rebuild = getattr(self, "rebuild_system_prompt", None)
        if callable(rebuild):
            rebuild()


def _server_of(entry: object) -> object:
    return entry.get("_mcp_server") if isinstance(entry, Mapping) else None


def _outline(registry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a system prompt may say about tools."""
    return {
        name: (entry.get("description"), entry.get("parameters")) if isinstance(entry, Mapping) else None
        for name, entry in registry.items()
    }
