"""Servers out, as an ``mcp.json`` that this app and other clients read.

Each entry holds the keys that every client knows, our own fields where they differ from
their defaults, and the unknown keys of an earlier import. Literal secrets are null.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_client_app.configuration.secrets import without_secrets, without_secrets_json
from mcp_client_app.datatypes import ProtocolMode, Transport

__all__ = ["EXPORTED_FIELDS", "export"]

_TYPES: Final[Mapping[str, str]] = {
    Transport.STDIO: "stdio",
    Transport.STREAMABLE_HTTP: "http",
    Transport.SSE: "sse",
    Transport.IN_PROCESS: "in_process",
}

_DEFAULTS: Final[Mapping[str, Any]] = {
    "label": "",
    "description": "",
    "command": "",
    "args": [],
    "env": {},
    "cwd": "",
    "inherit_environment": True,
    "inherited_names": [],
    "url": "",
    "headers": {},
    "terminate_on_close": True,
    "in_process": "",
    "mode": ProtocolMode.AUTO.value,
    "connect_timeout": None,
    "list_timeout": None,
    "call_timeout": None,
    "shutdown_timeout": None,
    "idle_timeout": None,
    "max_concurrency": None,
    "max_result_size": None,
    "auto_reconnect": True,
    "trust_annotations": False,
    "strict": [],
    "allowed_tools": None,
    "blocked_tools": [],
    "link": "",
    "stopped": False,
    "enabled": True,
}
"""Our fields in the order of the export, with the values that go without saying."""

EXPORTED_FIELDS: Final = ("name", "transport", *_DEFAULTS, "extra")
"""What :func:`export` wants of each server."""


def export(servers: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return ``{"mcpServers": {name: entry}}``.

    Args:
        servers: the values of ``EXPORTED_FIELDS`` for each server, in the order wanted.
    """
    return {"mcpServers": {server["name"]: _entry(server) for server in servers}}


def _entry(server: Mapping[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": _TYPES[server["transport"]]}
    for name, default in _DEFAULTS.items():
        value = server[name]
        if name in ("env", "headers"):
            value = without_secrets(value)
        # The label of a server that was never renamed is its name.
        if value != default and not (name == "label" and value == server["name"]):
            entry[name] = value
    if len(server["command"].split()) > 1:
        entry |= _unmistakable(server["command"], server["args"])
    if entry.pop("enabled", True) is False:
        # The word that other clients know.
        entry["disabled"] = True
    # Our own keys win: an unknown key is one that had no meaning when it was imported.
    return {**without_secrets_json(dict(server["extra"])), **entry}


def _unmistakable(command: str, args: list[str]) -> dict[str, Any]:
    """Write a program with white space in its name so that no import takes it for a command line."""
    has_directory = any(separator in command.split()[0] for separator in "/\\")
    return {"command": command if has_directory else shlex.quote(command), "args": args}
