"""What a request of 2026-07-28 carries besides its own params: the era's ``_meta``, and mirrored headers.

The SDK's session adds both to what passes its typed layer. Requests that go straight to a
dispatcher of ours get them here: the ``_meta`` is the one that the session sent with
``server/discover``, the headers follow the SDK's shared rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    X_MCP_HEADER_KEY,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import LOG_LEVEL_META_KEY, PROTOCOL_VERSION_META_KEY

from mcp_client_app import json_codec

__all__ = ["LOG_LEVEL", "Envelope"]

LOG_LEVEL = "info"
"""The least severe log messages that we ask servers for."""

_ANNOTATION = json_codec.dumps(X_MCP_HEADER_KEY)


class Envelope:
    """Wraps requests for one connection."""

    def __init__(self, discover_meta: Mapping[str, Any], version: str, *, mirrored: bool) -> None:
        """Start from the ``_meta`` that went with ``server/discover``.

        ``mirrored``: what is routed by is repeated in HTTP headers.
        """
        self._meta = {**discover_meta, PROTOCOL_VERSION_META_KEY: version}
        self._default_meta = {LOG_LEVEL_META_KEY: LOG_LEVEL, **self._meta}
        self._version = version
        self._mirrored = mirrored
        self._argument_headers: dict[str, dict[tuple[str, ...], str]] = {}

    def params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the params with the era's ``_meta``, before which only the caller's log level goes."""
        own = params.get("_meta")
        meta = {LOG_LEVEL_META_KEY: LOG_LEVEL, **own, **self._meta} if own else self._default_meta
        return {**params, "_meta": meta}

    def headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str] | None:
        """Return the headers that mirror a request; None where nothing is mirrored."""
        if not self._mirrored:
            return None
        headers = {MCP_PROTOCOL_VERSION_HEADER: self._version, MCP_METHOD_HEADER: method}
        key = NAME_BEARING_METHODS.get(method)
        if key is not None and isinstance(name := params.get(key), str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            if method == "tools/call" and (paths := self._argument_headers.get(name)):
                headers |= mcp_param_headers(paths, params.get("arguments") or {})
        return headers

    def learn(self, listing: dict[str, Any]) -> list[str]:
        """Learn from a page of ``tools/list`` which arguments become headers; returns what was left out.

        A tool whose annotations are invalid is taken out of the page: it must not be called.
        """
        if not self._mirrored:
            return []
        kept, notes = [], []
        for tool in listing.get("tools") or ():
            name, schema = tool["name"], tool["inputSchema"]
            self._argument_headers.pop(name, None)
            if _ANNOTATION not in json_codec.dumps(schema):
                kept.append(tool)  # nearly all; walking through a schema takes twenty times as long
                continue
            if find_invalid_x_mcp_header(schema) is not None:
                notes.append(f"tool {name!r}: its x-mcp-header annotations are invalid")
                continue
            kept.append(tool)
            if paths := x_mcp_header_map(schema):
                self._argument_headers[name] = paths
        listing["tools"] = kept
        return notes
