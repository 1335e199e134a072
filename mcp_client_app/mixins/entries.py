"""Configurations of servers as agents give them: their form, and how they become the site's servers."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping
from typing import Any

from mcp_client_app import services
from mcp_client_app.configuration.dialects import parse
from mcp_client_app.exceptions import ConfigurationError, UnknownServerError

logger = logging.getLogger(__name__)

__all__ = ["check_config", "command_entry", "store_server"]


def command_entry(command: str) -> dict[str, Any]:
    """Return a command line as an entry of an ``mcp.json``."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigurationError(
            "The command has a quotation mark without its partner.", field="command"
        ) from error
    if not words:
        raise ConfigurationError("Give the command that starts the server.", field="command")
    return {"command": words[0], "args": words[1:]}


def check_config(name: str, config: object) -> None:
    """Judge the form of a configuration; a server may also be given by its URL.

    Raises:
        ConfigurationError: A ``ValueError``: it is no object, says neither ``command`` nor ``url``, or
            one of its values has the wrong form.
    """
    if not str(name).strip():
        raise ConfigurationError("Give the server a name.", field="name")
    if not isinstance(config, Mapping):
        raise ConfigurationError(
            f"The configuration of {name!r} must be an object such as "
            '{"command": ..., "args": [...], "env": {...}}.',
            server=name,
        )
    (entry,) = parse({"mcpServers": {name: dict(config)}})
    if not any(entry.fields.get(field) for field in ("command", "url", "in_process")):
        raise ConfigurationError(
            f"The configuration of {name!r} lacks 'command' (or 'url').", server=name, field="command"
        )
    if entry.error is not None:
        raise ConfigurationError(f"The server {name!r}: {entry.error}", server=name)


def store_server(name: str, config: Mapping[str, Any]) -> str:
    """Store a server, or take over what its configuration changes; returns its own name.

    This is trusted code: the configuration may run programs. One of the settings or the site's file
    counts as it stands there.

    Raises:
        ConfigurationError: It cannot work; says why.
    """
    check_config(name, config)
    (entry,) = services.import_servers({"mcpServers": {name: dict(config)}}).entries
    if entry.error is None:
        return entry.name
    try:
        row = services.get_server(entry.name)
    except UnknownServerError:
        row = None
    if row is None or not row.is_read_only:
        raise ConfigurationError(f"The server {name!r}: {entry.error}", server=name)
    logger.info("The server %r is used as the %s has it.", row.name, row.get_source_display())
    return row.name
