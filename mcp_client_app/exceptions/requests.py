"""What was asked for does not exist, is not clear, or is not allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_client_app.exceptions.base import MCPClientError, present

__all__ = [
    "AmbiguousToolError",
    "BadToolNameError",
    "CallInProgressError",
    "InvalidArgumentsError",
    "KeyReusedError",
    "PermissionDeniedError",
    "StaleRevisionError",
    "ToolBlockedError",
    "UnknownPromptError",
    "UnknownResourceError",
    "UnknownServerError",
    "UnknownToolError",
]


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
        return present(tool=self.tool, unavailable=list(self.unavailable) or None)


class UnknownResourceError(MCPClientError, LookupError):
    """There is no such resource."""

    code = "unknown_resource"

    def __init__(
        self, message: str | None = None, *, server: str | None = None, uri: str | None = None
    ) -> None:
        super().__init__(message, server=server)
        self.uri = uri

    def details(self) -> dict[str, Any]:
        return present(uri=self.uri)


class UnknownPromptError(MCPClientError, LookupError):
    """There is no such prompt."""

    code = "unknown_prompt"

    def __init__(
        self, message: str | None = None, *, server: str | None = None, prompt: str | None = None
    ) -> None:
        super().__init__(message, server=server)
        self.prompt = prompt

    def details(self) -> dict[str, Any]:
        return present(prompt=self.prompt)


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
        return present(tool=self.tool, candidates=list(self.candidates))


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
        return present(tool=self.tool, schema=self.schema, arguments=self.arguments)


class ToolBlockedError(MCPClientError):
    """A filter forbids this tool."""

    code = "tool_blocked"

    def __init__(
        self, message: str | None = None, *, server: str | None = None, tool: str | None = None
    ) -> None:
        super().__init__(message, server=server)
        self.tool = tool

    def details(self) -> dict[str, Any]:
        return present(tool=self.tool)


class CallInProgressError(MCPClientError):
    """A call with this idempotency key has begun and has no answer yet; ask again later."""

    code = "call_in_progress"


class KeyReusedError(MCPClientError):
    """This idempotency key belongs to another request; take a new one."""

    code = "key_reused"


class StaleRevisionError(MCPClientError):
    """Somebody else has changed this since; load it again and repeat your change."""

    code = "stale_revision"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        expected: int | None = None,
        revision: int | None = None,
    ) -> None:
        super().__init__(message, server=server)
        self.expected = expected
        """The revision that the change was based on."""
        self.revision = revision
        """The stored one."""

    def details(self) -> dict[str, Any]:
        return present(expected=self.expected, revision=self.revision)


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
        return present(permission=self.permission)
