"""The server wants something before it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp_client_app.exceptions.base import MCPClientError, present

__all__ = ["InputRequiredError", "InvalidInputError"]


class InputRequiredError(MCPClientError):
    """The server asks for input before it goes on; answer it and call again."""

    code = "input_required"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        tool: str | None = None,
        requests: Sequence[Any] = (),
        request_state: str | None = None,
    ) -> None:
        super().__init__(message, server=server)
        self.tool = tool
        """The tool that was called; None if it was no tool."""
        self.requests = tuple(requests)
        """What is asked for, as ``datatypes.InputRequest``."""
        self.request_state = request_state
        """Opaque, the server's own; goes back with the answers, unchanged, in whatever process."""

    def details(self) -> dict[str, Any]:
        """Return what has to be kept for going on: plain JSON."""
        asked = {request.key: request.as_json() for request in self.requests}
        return present(tool=self.tool, input_requests=asked, request_state=self.request_state)


class InvalidInputError(MCPClientError, ValueError):
    """An answer does not fit what the server asked for."""

    code = "invalid_input"

    def __init__(
        self,
        message: str | None = None,
        *,
        server: str | None = None,
        key: str | None = None,
        errors: Sequence[str] = (),
    ) -> None:
        super().__init__(message, server=server)
        self.key = key
        """Which answer."""
        self.errors = tuple(errors)
        """What is wrong with it; never its values."""

    def details(self) -> dict[str, Any]:
        return present(key=self.key, errors=list(self.errors) or None)
