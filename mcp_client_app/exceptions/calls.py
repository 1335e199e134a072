"""The call: no answer, a bad answer, or one that says no."""

from __future__ import annotations

from typing import Any

from mcp_client_app.exceptions.base import MCPClientError, outcome, present

__all__ = [
    "AsyncContextError",
    "BusyError",
    "ProtocolError",
    "RequestTimeoutError",
    "ResultTooLargeError",
    "ThrottledError",
    "ToolError",
]


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
        return {**present(seconds=self.seconds), **outcome(self.sent)}


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
        return present(rpc_code=self.rpc_code, data=self.data)


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
        return present(limit=self.limit, size=self.size)


class BusyError(MCPClientError):
    """Too many calls wait for this server."""

    code = "busy"

    def __init__(
        self, message: str | None = None, *, server: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, server=server)
        self.retry_after = retry_after

    def details(self) -> dict[str, Any]:
        return present(retry_after=self.retry_after)


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
        return present(tool=self.tool)


class AsyncContextError(MCPClientError, RuntimeError):
    """A sync verb was called on a running event loop; await its async twin instead."""

    code = "sync_in_async"
