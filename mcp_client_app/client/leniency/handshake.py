"""Repairs of what a server says about itself."""

from __future__ import annotations

from typing import Any

from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

from mcp_client_app.client.leniency.fields import drop, icons
from mcp_client_app.client.leniency.terms import Terms

__all__ = ["discover", "initialize"]


def initialize(terms: Terms, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Fill in what is missing; an unknown version counts as the latest one with a handshake."""
    version = result.get("protocolVersion")
    if version not in KNOWN_PROTOCOL_VERSIONS and not terms.strict.version_negotiation:
        notes.append(f"the server names the unknown protocol version {str(version)[:20]!r}")
        result["protocolVersion"] = LATEST_HANDSHAKE_VERSION
    info = result.get("serverInfo")
    info = dict(info) if isinstance(info, dict) else {}
    for key, default in (("name", "unknown"), ("version", "unknown")):
        if not isinstance(info.get(key), str):
            info[key] = default
            notes.append(f"serverInfo has no {key}")
    drop(info, "serverInfo", notes, title=str, websiteUrl=str, description=str, icons=list)
    icons(info, "serverInfo", notes)
    result["serverInfo"] = info
    return discover(terms, result, notes)


def discover(_: Terms, result: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Keep the capabilities that make sense."""
    capabilities = result.get("capabilities")
    if not isinstance(capabilities, dict):
        notes.append("capabilities was no object")
        capabilities = {}
    result["capabilities"] = {
        name: value if isinstance(value, dict) else {}
        for name, value in capabilities.items()
        if isinstance(value, dict) or value is True
    }
    drop(result, "server", notes, instructions=str)
    return result
