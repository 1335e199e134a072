"""Makes payloads fit to be kept: secrets masked, long ones cut, characters that databases refuse replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from mcp_client_app import json_codec
from mcp_client_app.conf import app_settings

__all__ = ["redacted"]

MASK: Final = "***"
_SENSITIVE: Final = re.compile(
    r"pass(word|wd|phrase)?|secret|token|api[_-]?key|authorization|credential|private[_-]?key|cookie",
    re.IGNORECASE,
)


def redacted(value: Any, server: str) -> Any:
    """Return a copy of ``value`` for the audit row of a call of ``server``.

    Values under keys that sound like secrets are masked. What is longer than
    ``MCP_CLIENT_AUDIT_PAYLOAD_SIZE`` characters as JSON becomes ``{"cut": ..., "size": ...}``.
    """
    clean = json_codec.scrub(_masked(value))
    limit = app_settings.AUDIT_PAYLOAD_SIZE
    text = json_codec.dumps(clean).decode()
    if len(text) <= limit:
        return clean
    return {"cut": text[:limit], "size": len(text)}


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: MASK if _SENSITIVE.search(str(key)) and item else _masked(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_masked(item) for item in value]
    return value
