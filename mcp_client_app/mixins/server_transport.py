"""A client's way to a server of the site: its row, its shared connection, the services in front of both."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from mcp_client_app import services
from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.datatypes import SHARED, ConnectionState, ServerStatus, ToolInfo
from mcp_client_app.exceptions import (
    AsyncContextError,
    InvalidArgumentsError,
    MCPClientError,
    NotConnectedError,
    RequestTimeoutError,
    UnknownServerError,
)
from mcp_client_app.mixins.entries import command_entry, store_server
from mcp_client_app.mixins.transport import MCPTransport
from mcp_client_app.models import ServerConfig
from mcp_client_app.runtime import started_manager

logger = logging.getLogger(__name__)

__all__ = ["ServerTransport", "StdioTransport"]

_INVALID_PARAMS = -32602
_METHOD_NOT_FOUND = -32601
_SERVER_ERROR = -32000
_METHODS = ("initialize", "tools/list", "tools/call")
_ALIVE = frozenset({ConnectionState.READY, ConnectionState.IDLE})
"""An idle server was put to sleep, and wakes for the next request."""

_open: weakref.WeakSet[ServerTransport] = weakref.WeakSet()
"""Those of this process that are connected: the last one to leave a server closes the connection."""
_lock = threading.Lock()


class ServerTransport(MCPTransport):
    """Speaks to a stored server over the connection that all of the process share.

    Args:
        config: An entry of an ``mcp.json``, which is stored under the client's name when connecting;
            None uses what is stored already.
        timeout: Seconds for connecting, and for each call; None = the server's own limits, 0 = no limit.
        debug: Log each request at level DEBUG, without arguments and results.
        user: Returns who calls; nobody is trusted code.
        agent: The agent's name, for the audit.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        debug: bool = False,
        *,
        user: Callable[[], Any] = lambda: None,
        agent: str = "",
    ) -> None:
        self.config = config
        self.timeout = timeout
        self.debug = debug
        self.server = ""
        """The server's own name: the client's, in the form that names of servers have."""
        self._user = user
        self._agent = agent
        self._is_open = False
        self._has_listed = False

    def bind(self, name: str) -> None:
        """Learn the name under which the server is stored."""
        self.server = self.server or name

    def connect(self) -> bool:
        """Store the server if need be, and connect it; raises the typed error if that fails.

        Raises:
            ConfigurationError: The configuration cannot work.
            NotConnectedError: An operator has stopped the server, for all processes.
            MCPClientError: Why it cannot be connected.
        """
        row = self.store()
        if row.stopped:
            raise NotConnectedError(
                f"The server {row.name!r} has been stopped; connect it in the admin, or over REST, first.",
                server=row.name,
            )
        status = services.connect(row.name, wait=self.timeout or None)
        if not status.is_ready:
            raise RequestTimeoutError(
                f"The server {row.name!r} was not ready within {self.timeout or 0:.3g} s.",
                server=row.name,
                seconds=self.timeout,
            )
        self.opened(row.name)
        return True

    def store(self) -> ServerConfig:
        """Store the server if there is a configuration for it; returns its row.

        Raises:
            ConfigurationError: The configuration cannot work.
            UnknownServerError: There is no such server, and no configuration.
        """
        forbid_running_loop("connect")
        if self.config is not None:
            self.server = store_server(self.server, self.config)
        return services.get_server(self.server)

    def opened(self, server: str) -> None:
        """Take note that the server is connected."""
        self.server, self._is_open, self._has_listed = server, True, False
        with _lock:
            _open.add(self)

    def disconnect(self) -> None:
        """Leave the server; the last one of the process that brought its configuration has it closed.

        It is not stopped: who else uses it connects it anew.
        """
        if not self._is_open:
            return
        forbid_running_loop("disconnect")
        self._is_open = False
        with _lock:
            _open.discard(self)
            others = [other for other in _open if other.server.casefold() == self.server.casefold()]
        manager = started_manager()
        if self.config is not None and not others and manager is not None:
            manager.release(self.server, SHARED)

    def is_connected(self) -> bool:
        """Say whether the server is up, or asleep until its next use."""
        return self._is_open and (status := self.status()) is not None and status.state in _ALIVE

    def is_usable(self) -> bool:
        """Say whether ``connect`` has worked; what was lost since is connected anew by the next request."""
        return self._is_open

    def status(self) -> ServerStatus | None:
        """Return how the server stands in this process; None if it is gone."""
        forbid_running_loop("status")
        try:
            status = services.server_status(self.server)
        except UnknownServerError:
            return None
        return status if status.enabled else None

    def send_request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Carry out ``initialize``, ``tools/list`` or ``tools/call``; failures are answers with ``error``."""
        if not self._is_open:
            raise NotConnectedError(f"Connect the client of {self.server!r} first.", server=self.server)
        if method not in _METHODS:
            message = f"{method!r} is none of {', '.join(_METHODS)}; for the rest, use services."
            return {"error": {"code": _METHOD_NOT_FOUND, "message": message}}
        try:
            answer = {"result": self._result(method, params or {})}
        except AsyncContextError:
            raise  # a mistake in the caller's code, which no model can mend
        except InvalidArgumentsError as error:
            answer = _failure(_INVALID_PARAMS, error)
        except MCPClientError as error:
            answer = _failure(_SERVER_ERROR, error)
        if self.debug:
            outcome = "error" if "error" in answer else "ok"
            logger.debug("%s %s (%s): %s", self.server, method, (params or {}).get("name", ""), outcome)
        return answer

    def _result(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            return _introduction(services.server_status(self.server))
        if method == "tools/list":
            # What was read when connecting is new enough for the first answer.
            refresh, self._has_listed = self._has_listed, True
            listing = services.list_tools(self.server, refresh=refresh, user=self._user())
            return {"tools": [_on_the_wire(tool) for tool in listing.items]}
        result = services.call_tool(
            str(params.get("name", "")),
            params.get("arguments") or {},
            server=self.server,
            user=self._user(),
            agent=self._agent,
            timeout=self.timeout,
        )
        answer: dict[str, Any] = {"content": [dict(block) for block in result.content]}
        if result.structured is not None:
            answer["structuredContent"] = result.structured
        if result.is_error:
            answer["isError"] = True
        return answer


class StdioTransport(ServerTransport):
    """A server that is started by a command line, split as a shell would, but run without one."""

    def __init__(self, command: str, timeout: float | None = None, debug: bool = False) -> None:
        """Read the command.

        Raises:
            ConfigurationError: It is empty, or has a quotation mark without its partner.
        """
        self.command = command
        super().__init__(command_entry(command), timeout, debug)

    def connect(self) -> bool:
        """Start the server; without a client it is called after its program."""
        self.bind(PurePath(str((self.config or {})["command"])).name)
        return super().connect()


def _introduction(status: ServerStatus) -> dict[str, Any]:
    return {
        "protocolVersion": status.protocol_version,
        "capabilities": dict(status.capabilities),
        "serverInfo": {"name": status.server_name, "version": status.server_version},
        "instructions": status.instructions,
    }


def _on_the_wire(tool: ToolInfo) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description or tool.title or "",
        "inputSchema": dict(tool.input_schema),
    }


def _failure(rpc_code: int, error: MCPClientError) -> dict[str, Any]:
    return {"error": {"code": rpc_code, "message": str(error), "data": {"code": error.code}}}


def _after_fork() -> None:
    """In a forked child, where a thread that is gone may hold the lock."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
