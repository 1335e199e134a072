"""Repairs of what a server says about itself."""

from __future__ import annotations

from typing import Any

from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

from mcp_client_app.client.leniency.fields import drop, icons, only_texts
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
    found = result.get("capabilities")
    if not isinstance(found, dict):
        notes.append("capabilities was no object")
        found = {}
    capabilities = result["capabilities"] = {
        name: dict(value) if isinstance(value, dict) else {}
        for name, value in found.items()
        if isinstance(value, dict) or value is True
    }
    for name, flags in _FLAGS.items():
        if name in capabilities:
            drop(capabilities[name], f"capability {name!r}", notes, **dict.fromkeys(flags, bool))
    for name in ("experimental", "extensions"):
        if name in capabilities:
            capabilities[name] = {
                key: value for key, value in capabilities[name].items() if isinstance(value, dict)
            }
    if "tasks" in capabilities:
        _tasks(capabilities["tasks"], notes)
    if isinstance(result.get("supportedVersions"), list):
        result["supportedVersions"] = only_texts(result["supportedVersions"])
    drop(result, "server", notes, instructions=str)
    return result


_FLAGS = {
    "tools": ("listChanged",),
    "prompts": ("listChanged",),
    "resources": ("listChanged", "subscribe"),
}


def _tasks(tasks: dict[str, Any], notes: list[str]) -> None:
    label = "capability 'tasks'"
    drop(tasks, label, notes, cancel=dict, list=dict, requests=dict)
    if "requests" in tasks:
        requests = tasks["requests"] = dict(tasks["requests"])
        drop(requests, label, notes, tools=dict)
        if "tools" in requests:
            requests["tools"] = dict(requests["tools"])
            drop(requests["tools"], label, notes, call=dict)
