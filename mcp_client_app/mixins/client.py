"""One server as a plain object: connect, list tools, call them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Self

from mcp_client_app.exceptions import AsyncContextError, MCPClientError, NotConnectedError
from mcp_client_app.json_schema import SchemaChecker
from mcp_client_app.mixins.entries import check_config, command_entry
from mcp_client_app.mixins.server_transport import ServerTransport
from mcp_client_app.mixins.tools import MCPTool, validation_message
from mcp_client_app.mixins.transport import MCPTransport

logger = logging.getLogger(__name__)

__all__ = ["MCPClient"]

_INVALID_PARAMS = -32602


class MCPClient:
    """A client of one server, for threads. On an event loop, wrap its verbs in ``sync_to_async``.

    Args:
        name: The name for the server; ``mcp_<name>_<tool>`` is what an agent calls its tools.
        transport: What it talks through.
        debug: Log what is asked, at level DEBUG; ``MCP_CLIENT_DEBUG`` logs the frames themselves.
    """

    validate_arguments = True
    """Check arguments against the schema of a tool that is known before anything is sent."""

    def __init__(self, name: str, transport: MCPTransport, debug: bool = False) -> None:
        self.name = name
        self.transport = transport
        self.debug = debug
        self.server_info: dict[str, Any] = {}
        """What the server says about itself: ``name`` and ``version``; empty before ``connect``."""
        self._tools: list[MCPTool] | None = None
        self._checkers: dict[str, SchemaChecker] = {}
        transport.bind(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @classmethod
    def from_config(
        cls,
        name: str,
        config: Mapping[str, Any],
        timeout: float | None = None,
        debug: bool = False,
        *,
        user: Any = None,
        agent: str = "",
    ) -> Self:
        """Make a client from an entry of an ``mcp.json``; it is not connected yet.

        Args:
            name: The name for the server, under which it is stored when connecting.
            config: ``command``, ``args`` and ``env``, or ``url`` and ``headers``, or whatever else an
                ``mcp.json`` may say.
            timeout: Seconds for connecting, and for each call; None = the server's own limits, 0 = no limit.
            debug: See the class.
            user: Who calls; None for trusted code.
            agent: Who calls in the user's name, for the audit.

        Raises:
            ConfigurationError: A ``ValueError``; it lacks ``command``, or cannot be read.
        """
        check_config(name, config)
        return cls(name, ServerTransport(config, timeout, user=lambda: user, agent=agent), debug)

    @classmethod
    def from_command(cls, name: str, command: str, timeout: float | None = None, debug: bool = False) -> Self:
        """Make a client from a command line, split as a shell would, but run without one.

        Raises:
            ConfigurationError: A ``ValueError``; the command is empty, or a quotation mark has no partner.
        """
        return cls.from_config(name, command_entry(command), timeout, debug)

    def connect(self) -> bool:
        """Connect; returns whether that worked. Why it did not is logged."""
        try:
            self.open()
        except AsyncContextError:
            raise
        except Exception as error:  # a transport of somebody else's may raise anything
            logger.warning(
                "The MCP server %r could not be connected: %s", self.name, error, exc_info=_strange(error)
            )
            return False
        return True

    def open(self) -> None:
        """Connect, or raise why that does not work.

        Raises:
            MCPClientError: The typed error; ``RuntimeError`` of a transport that only says no.
        """
        self._tools = None
        try:
            if not self.transport.connect():
                raise NotConnectedError(f"The server {self.name!r} could not be connected.", server=self.name)
            self.introduce()
        except BaseException:
            self.disconnect()
            raise

    def introduce(self) -> None:
        """Ask the server who it is.

        Raises:
            NotConnectedError: It refuses to say.
        """
        answer = self._ask("initialize", {"clientInfo": {"name": "mcp_client_app"}, "capabilities": {}})
        if "error" in answer:
            raise NotConnectedError(
                f"The server {self.name!r} refuses: {_message(answer['error'])}", server=self.name
            )
        info = answer.get("result", {}).get("serverInfo")
        self.server_info = dict(info) if isinstance(info, Mapping) else {}

    def disconnect(self) -> None:
        """Leave the server and forget its tools; does nothing if that is done already."""
        self._tools = None
        self._checkers.clear()
        self.transport.disconnect()

    def is_connected(self) -> bool:
        """Say whether the server can be used: it is up, or asleep until its next use."""
        return self.transport.is_connected()

    def list_tools(self, refresh: bool = False) -> list[MCPTool]:
        """Return the tools, as read before unless ``refresh``; an empty list if they cannot be read."""
        if self._tools is None or refresh:
            try:
                answer = self._ask("tools/list", {})
                if "error" in answer:
                    raise NotConnectedError(_message(answer["error"]), server=self.name)
                self._checkers.clear()
                self._tools = [MCPTool.from_wire(tool) for tool in answer["result"]["tools"]]
            except AsyncContextError:
                raise
            except Exception as error:  # as in connect
                logger.warning(
                    "The tools of the MCP server %r could not be listed: %s",
                    self.name,
                    error,
                    exc_info=_strange(error),
                )
                return []
        return list(self._tools)

    def call_tool(self, tool_name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Call a tool.

        Args:
            tool_name: Its name on the server.
            arguments: What its schema asks for.

        Returns:
            The result, with ``content`` and perhaps ``structuredContent``; or an object with ``error``, a
            text for the model: the tool's own failure, wrong arguments with the schema beside them, or why
            the server could not be asked.

        Raises:
            NotConnectedError: A ``RuntimeError``; the client is not connected.
            AsyncContextError: Called on an event loop.
        """
        given = dict(arguments or {})
        if not self.transport.is_usable():
            raise NotConnectedError(f"Connect the client of {self.name!r} first.", server=self.name)
        if refusal := self._refusal(tool_name, given):
            return {"error": refusal}
        try:
            answer = self._ask("tools/call", {"name": tool_name, "arguments": given})
        except AsyncContextError:
            raise
        except Exception as error:  # as in connect
            strange = _strange(error)
            logger.warning("The call of %r on %r failed: %s", tool_name, self.name, error, exc_info=strange)
            return {"error": "an unexpected error" if strange else str(error) or type(error).__name__}
        if "error" in answer:
            return {"error": self._explained(tool_name, given, answer["error"])}
        result = dict(answer.get("result") or {})
        return {"error": _text(result), "isError": True} if result.get("isError") else result

    def create_tool_wrapper(self, tool: MCPTool) -> Callable[..., dict[str, Any]]:
        """Return a function that calls the tool with its keyword arguments."""

        def call(**kwargs: Any) -> dict[str, Any]:
            return self.call_tool(tool.name, kwargs)

        call.__name__ = call.__qualname__ = tool.name
        call.__doc__ = tool.description
        return call

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        answer = self.transport.send_request(method, params)
        if self.debug:
            outcome = "an error" if "error" in answer else "a result"
            logger.debug("%s: %s %s gave %s", self.name, method, params.get("name", ""), outcome)
        return answer

    def _refusal(self, tool_name: str, given: dict[str, Any]) -> str | None:
        """Return what is wrong with the arguments, if the tool is known."""
        if not self.validate_arguments:
            return None
        wrong = self._wrong(tool_name, given)
        if wrong:
            self.list_tools(refresh=True)  # the schema may have changed since
            wrong = self._wrong(tool_name, given)
        tool = self._known(tool_name)
        if not wrong or tool is None:
            return None
        return validation_message(tool_name, "\n".join(wrong), tool.input_schema, given)

    def _wrong(self, tool_name: str, given: dict[str, Any]) -> list[str]:
        tool = self._known(tool_name)
        if tool is None:
            return []
        checker = self._checkers.get(tool_name)
        if checker is None:
            checker = self._checkers[tool_name] = SchemaChecker(tool.input_schema)
        return checker.errors(given)

    def _known(self, tool_name: str) -> MCPTool | None:
        return next((tool for tool in self._tools or () if tool.name == tool_name), None)

    def _explained(self, tool_name: str, given: dict[str, Any], error: object) -> str:
        message = _message(error)
        if not isinstance(error, Mapping) or error.get("code") != _INVALID_PARAMS:
            return message
        schema = next((tool.input_schema for tool in self.list_tools() if tool.name == tool_name), None)
        return message if schema is None else validation_message(tool_name, message, schema, given)


def _strange(error: Exception) -> bool:
    """Say whether a transport may not raise this: the log needs its traceback, a model none of its words."""
    return not isinstance(error, MCPClientError | RuntimeError | TimeoutError)


def _message(error: object) -> str:
    return str(error.get("message") or "unknown error") if isinstance(error, Mapping) else str(error)


def _text(result: Mapping[str, Any]) -> str:
    blocks = result.get("content") or ()
    texts = [str(block["text"]) for block in blocks if isinstance(block, Mapping) and "text" in block]
    return "\n".join(texts) or "The tool failed without saying why."
