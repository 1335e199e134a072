"""Every error that this app raises.

::

    MCPClientError                    base: .code (stable), .server (name or None)
    ├─ ConfigurationError             configuration       a stored or given configuration cannot work
    │  └─ DuplicateServerError        duplicate_server    the name is taken
    ├─ UnknownServerError             unknown_server      no such server, or it is disabled
    ├─ UnknownToolError               unknown_tool        the server offers no such tool
    ├─ UnknownResourceError           unknown_resource
    ├─ UnknownPromptError             unknown_prompt
    ├─ AmbiguousToolError             ambiguous_tool      several servers offer the bare name
    ├─ BadToolNameError               bad_tool_name       not a name that a tool can have
    ├─ InvalidArgumentsError          invalid_arguments   the arguments do not fit the schema
    ├─ ToolBlockedError               tool_blocked        a filter forbids the tool
    ├─ PermissionDeniedError          permission_denied   the user may not do this
    ├─ ServerConnectionError          server_unavailable  the link; base of the following
    │  ├─ ServerUnavailableError      server_unavailable  refused, gave up, waits before the next try
    │  ├─ NotConnectedError           not_connected       stopped on purpose
    │  ├─ ServerCrashedError          server_crashed      the process ended
    │  ├─ ConnectionLostError         connection_lost     broke while a request was in flight
    │  ├─ ManagerClosedError          manager_closed      the manager has been shut down
    │  ├─ TransportError              transport_error     the transport failed or answered nonsense
    │  └─ AuthRequiredError           auth_required       the *server* answered 401 or 403
    ├─ RequestTimeoutError            timeout             no answer in time
    ├─ ProtocolError                  protocol_error      the server answered with a JSON-RPC error
    ├─ ResultTooLargeError            result_too_large    the answer exceeds the limit
    ├─ BusyError                      busy                too many calls wait for this server
    ├─ ThrottledError                 throttled           the server or a throttle asks to slow down
    ├─ ToolError                      tool_failed         the tool ran and reported a failure
    └─ AsyncContextError              sync_in_async       a sync verb was called on an event loop

Rules: the docstring of a class is its default message; data are attributes; instances
survive ``pickle`` and ``copy``; no message holds a secret. Classes that GAIA's interface
promises as builtins derive from these builtins, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "AmbiguousToolError",
    "AsyncContextError",
    "AuthRequiredError",
    "BadToolNameError",
    "BusyError",
    "ConfigurationError",
    "ConnectionLostError",
    "DuplicateServerError",
    "InvalidArgumentsError",
    "MCPClientError",
    "ManagerClosedError",
    "NotConnectedError",
    "PermissionDeniedError",
    "ProtocolError",
    "RequestTimeoutError",
    "ResultTooLargeError",
    "ServerConnectionError",
    "ServerCrashedError",
    "ServerUnavailableError",
    "ThrottledError",
    "ToolBlockedError",
    "ToolError",
    "TransportError",
    "UnknownPromptError",
    "UnknownResourceError",
    "UnknownServerError",
    "UnknownToolError",
]


class MCPClientError(Exception):
    """The MCP client failed."""

    code: ClassVar[str] = "error"
    """Stable, English, for machines: the ``code`` of API answers and audit rows."""

    def __init__(self, message: str | None = None, *, server: str | None = None) -> None:
        self.message: str = message or (type(self).__doc__ or "").partition("\n")[0]
        self.server = server
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses take different keywords; the attributes are the whole state.
        return _rebuild, (type(self), self.__dict__.copy())

    def details(self) -> dict[str, Any]:
        """Return what a machine may want to know besides code and message; JSON-able, free of secrets."""
        return {}

    def copy(self) -> Self:
        """Return an equal, untraced instance: one failure may be raised in many waiting threads."""
        clone: Self = _rebuild(type(self), self.__dict__.copy())
        clone.__cause__ = self.__cause__
        return clone


def _rebuild(cls: type[MCPClientError], state: dict[str, Any]) -> Any:
    error = cls.__new__(cls)
    error.__dict__.update(state)
    error.args = (state["message"],)
    return error


# Configuration -----------------------------------------------------------------------


class ConfigurationError(MCPClientError, ValueError):
    """The configuration cannot work."""

    code = "configuration"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        field: str | None = None,
        variable: str | None = None,
    ) -> None:
        super().__init__(message, server=server)
        self.field = field
        """The field to mend, such as ``command`` or ``env.TOKEN``."""
        self.variable = variable
        """The environment variable that is missing or may not be read."""

    def details(self) -> dict[str, Any]:
        return _present(field=self.field, variable=self.variable)


class DuplicateServerError(ConfigurationError):
    """A server of this name exists already."""

    code = "duplicate_server"


# What was asked for ------------------------------------------------------------------


class UnknownServerError(MCPClientError, LookupError):
    """There is no such server, or it is disabled."""

    code = "unknown_server"


class UnknownToolError(MCPClientError, LookupError):
    """There is no such tool."""

    code = "unknown_tool"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        tool: str | None = None,
        unavailable: Sequence[str] = (),
    ) -> None:
        super().__init__(message, server=server)
        self.tool = tool
        self.unavailable = tuple(unavailable)
        """Servers that could not be asked: the tool may be theirs."""

    def details(self) -> dict[str, Any]:
        return _present(tool=self.tool, unavailable=list(self.unavailable) or None)


class UnknownResourceError(MCPClientError, LookupError):
    """There is no such resource."""

    code = "unknown_resource"

    def __init__(
        self, message: str | None = None, *, server: str | None = None, uri: str | None = None
    ) -> None:
        super().__init__(message, server=server)
        self.uri = uri

    def details(self) -> dict[str, Any]:
        return _present(uri=self.uri)


class UnknownPromptError(MCPClientError, LookupError):
    """There is no such prompt."""

    code = "unknown_prompt"

    def __init__(
        self, message: str | None = None, *, server: str | None = None, prompt: str | None = None
    ) -> None:
        super().__init__(message, server=server)
        self.prompt = prompt

    def details(self) -> dict[str, Any]:
        return _present(prompt=self.prompt)


class AmbiguousToolError(MCPClientError, LookupError):
    """Several servers offer a tool of this name; name the server."""

    code = "ambiguous_tool"

    def __init__(
        self, message: str | None = None, *, tool: str | None = None, candidates: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.tool = tool
        self.candidates = tuple(candidates)
        """Public names (``<server>__<tool>``) to choose from."""

    def details(self) -> dict[str, Any]:
        return _present(tool=self.tool, candidates=list(self.candidates))


class BadToolNameError(MCPClientError, ValueError):
    """This is not a name that a tool can have."""

    code = "bad_tool_name"


class InvalidArgumentsError(MCPClientError, ValueError):
    """The arguments do not fit the tool's schema."""

    code = "invalid_arguments"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        tool: str | None = None,
        schema: Mapping[str, Any] | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, server=server)
        self.tool = tool
        self.schema = schema
        """The tool's input schema, so that a caller can correct itself."""
        self.arguments = arguments

    def details(self) -> dict[str, Any]:
        return _present(tool=self.tool, schema=self.schema, arguments=self.arguments)


class ToolBlockedError(MCPClientError):
    """A filter forbids this tool."""

    code = "tool_blocked"

    def __init__(
        self, message: str | None = None, *, server: str | None = None, tool: str | None = None
    ) -> None:
        super().__init__(message, server=server)
        self.tool = tool

    def details(self) -> dict[str, Any]:
        return _present(tool=self.tool)


class PermissionDeniedError(MCPClientError):
    """The user may not do this."""

    code = "permission_denied"

    def __init__(
        self, message: str | None = None, *, server: str | None = None, permission: str | None = None
    ) -> None:
        super().__init__(message, server=server)
        self.permission = permission
        """The missing permission as ``app_label.codename``."""

    def details(self) -> dict[str, Any]:
        return _present(permission=self.permission)


# The link ----------------------------------------------------------------------------


class ServerConnectionError(MCPClientError, RuntimeError):
    """The server cannot be reached."""

    code = "server_unavailable"

    def __init__(
        self, message: str | None = None, *, server: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, server=server)
        self.retry_after = retry_after
        """Seconds after which another try makes sense, if known."""

    def details(self) -> dict[str, Any]:
        return _present(retry_after=self.retry_after)


class ServerUnavailableError(ServerConnectionError):
    """The server is unavailable."""

    code = "server_unavailable"


class NotConnectedError(ServerConnectionError):
    """The server has been disconnected on purpose; connect it first."""

    code = "not_connected"


class ServerCrashedError(ServerConnectionError):
    """The server's process has ended."""

    code = "server_crashed"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        retry_after: float | None = None,
        exit_code: int | None = None,
        stderr_tail: Sequence[str] = (),
        sent: bool = False,
    ) -> None:
        super().__init__(message, server=server, retry_after=retry_after)
        self.exit_code = exit_code
        """Exit status; negative: the number of the signal that ended the process."""
        self.stderr_tail = tuple(stderr_tail)
        """The last lines that the process wrote to its standard error."""
        self.sent = sent
        """Whether the request may have reached the server: then its outcome is unknown."""

    def details(self) -> dict[str, Any]:
        return {
            **super().details(),
            **_present(exit_code=self.exit_code, stderr_tail=list(self.stderr_tail) or None),
            **_outcome(self.sent),
        }


class ConnectionLostError(ServerConnectionError):
    """The connection broke while a request was in flight."""

    code = "connection_lost"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        retry_after: float | None = None,
        sent: bool = True,
    ) -> None:
        super().__init__(message, server=server, retry_after=retry_after)
        self.sent = sent
        """Whether the request may have reached the server: then its outcome is unknown."""

    def details(self) -> dict[str, Any]:
        return {**super().details(), **_outcome(self.sent)}


class ManagerClosedError(ServerConnectionError):
    """The manager has been shut down."""

    code = "manager_closed"


class TransportError(ServerConnectionError):
    """The transport failed."""

    code = "transport_error"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        retry_after: float | None = None,
        status: int | None = None,
        sent: bool = True,
    ) -> None:
        super().__init__(message, server=server, retry_after=retry_after)
        self.status = status
        """HTTP status, when the server gave one."""
        self.sent = sent
        """Whether the request may have reached the server: then its outcome is unknown."""

    def details(self) -> dict[str, Any]:
        return {**super().details(), **_present(status=self.status), **_outcome(self.sent)}


class AuthRequiredError(ServerConnectionError):
    """The server asks for (other) credentials."""

    code = "auth_required"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        status: int = 401,
        challenge: str | None = None,
    ) -> None:
        super().__init__(message, server=server)
        self.status = status
        self.challenge = challenge
        """The ``WWW-Authenticate`` header as received."""

    def details(self) -> dict[str, Any]:
        return {**super().details(), "status": self.status}


# The call ----------------------------------------------------------------------------


class RequestTimeoutError(MCPClientError, TimeoutError):
    """The server did not answer in time."""

    code = "timeout"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        seconds: float | None = None,
        sent: bool = False,
    ) -> None:
        super().__init__(message, server=server)
        self.seconds = seconds
        self.sent = sent
        """Whether the request may have reached the server: then its outcome is unknown."""

    def details(self) -> dict[str, Any]:
        return {**_present(seconds=self.seconds), **_outcome(self.sent)}


class ProtocolError(MCPClientError):
    """The server answered with an error."""

    code = "protocol_error"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        rpc_code: int | None = None,
        data: Any = None,
    ) -> None:
        super().__init__(message, server=server)
        self.rpc_code = rpc_code
        """The JSON-RPC error code."""
        self.data = data
        """The ``data`` of the JSON-RPC error, as received."""

    def details(self) -> dict[str, Any]:
        return _present(rpc_code=self.rpc_code, data=self.data)


class ResultTooLargeError(MCPClientError):
    """The answer exceeds the limit."""

    code = "result_too_large"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        limit: int | None = None,
        size: int | None = None,
    ) -> None:
        super().__init__(message, server=server)
        self.limit = limit
        """Bytes allowed."""
        self.size = size
        """Bytes seen before the answer was refused; the whole may be larger."""

    def details(self) -> dict[str, Any]:
        return _present(limit=self.limit, size=self.size)


class BusyError(MCPClientError):
    """Too many calls wait for this server."""

    code = "busy"

    def __init__(
        self, message: str | None = None, *, server: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, server=server)
        self.retry_after = retry_after

    def details(self) -> dict[str, Any]:
        return _present(retry_after=self.retry_after)


class ThrottledError(BusyError):
    """The server asks to slow down."""

    code = "throttled"


class ToolError(MCPClientError):
    """The tool reported a failure."""

    code = "tool_failed"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        tool: str | None = None,
        result: Any = None,
    ) -> None:
        super().__init__(message, server=server)
        self.tool = tool
        self.result = result
        """The whole ``datatypes.ToolResult``, the raw one included."""

    @property
    def detail(self) -> str:
        """The server's own message."""
        return self.message

    def details(self) -> dict[str, Any]:
        return _present(tool=self.tool)


class AsyncContextError(MCPClientError, RuntimeError):
    """A sync verb was called on a running event loop; await its async twin instead."""

    code = "sync_in_async"


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _outcome(sent: bool) -> dict[str, Any]:
    return {"outcome": "unknown" if sent else "not_sent"}
