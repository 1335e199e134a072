"""Servers given in code, as entries of an ``mcp.json``: used by whoever gives them, stored nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.core.exceptions import ValidationError

from mcp_client_app.client.private_servers import private_name
from mcp_client_app.client.sources import ServerEntry
from mcp_client_app.configuration.dialects import parse
from mcp_client_app.datatypes import Transport
from mcp_client_app.exceptions import ConfigurationError, MCPClientError
from mcp_client_app.models import ServerConfig
from mcp_client_app.models.importing import messages
from mcp_client_app.naming import MAX_SERVER_NAME, is_server_name
from mcp_client_app.services.permissions import REFERENCE, RUN_CODE, may, require

__all__ = ["check_name", "private_entry"]


def check_name(name: object) -> str:
    """Return the name, if a server can have it.

    Raises:
        ConfigurationError: It cannot.
    """
    if not isinstance(name, str) or not is_server_name(name):
        raise ConfigurationError(
            f"{str(name)[:100]!r} cannot name a server: a letter, then letters, digits, '-' and '_', "
            f"at most {MAX_SERVER_NAME} characters.",
            field="name",
        )
    return name


def private_entry(name: str, config: Mapping[str, Any], *, principal: str, user: Any) -> ServerEntry:
    """Return a server as a manager takes it, for one principal alone.

    A configuration that cannot work is an entry that says why: the server is unavailable, as it
    would be if it did not answer.

    Args:
        name: The name by which its holder knows it.
        config: An entry of an ``mcp.json``.
        principal: Who alone may use it.
        user: For whom; None for trusted code.

    Raises:
        ConfigurationError: The name cannot be one.
        PermissionDeniedError: The server runs code, and the user may not have code run.
    """
    (imported,) = parse({"mcpServers": {check_name(name): dict(config)}})
    row = ServerConfig(name=name)
    row.apply_import(imported)
    if row.runs_code:
        require(user, RUN_CODE, server=name)
    row.judge_references(saver_may=may(user, REFERENCE))
    row.name = private_name(name)
    entry = ServerEntry(name=row.name, transport=Transport(row.transport), principal=principal)
    try:
        if imported.error is not None:
            raise ConfigurationError(f"The server {name!r}: {imported.error}", server=name)
        if not row.enabled:
            raise ConfigurationError(
                f"The server {name!r} is disabled, or values of it have to be filled in.", server=name
            )
        row.clean_fields(exclude=["name"])
        row.clean()
        resolved = row.resolve()
    except ValidationError as error:
        reason: MCPClientError = ConfigurationError(
            f"The server {name!r}: {' '.join(messages(error))}", server=name
        )
    except MCPClientError as error:
        reason = error
    else:
        return replace(entry, spec=resolved.spec, warnings=resolved.warnings)
    reason.server = name
    return replace(entry, error=reason)
