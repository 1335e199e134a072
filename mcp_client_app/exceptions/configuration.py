"""Configurations that cannot work."""

from __future__ import annotations

from typing import Any

from mcp_client_app.exceptions.base import MCPClientError, present

__all__ = ["ConfigurationError", "DuplicateServerError"]


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
        return present(field=self.field, variable=self.variable)


class DuplicateServerError(ConfigurationError):
    """A server of this name exists already."""

    code = "duplicate_server"
