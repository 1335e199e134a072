"""Makes payloads fit to be kept: secrets masked, long ones cut, characters that databases refuse replaced."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_client_app import json_codec
from mcp_client_app.client.redaction import Redactor
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import ServerSpec

__all__ = ["redacted"]

MASK: Final = "***"
_SENSITIVE: Final = re.compile(
    r"pass(word|wd|phrase)?|secret|token|api[_-]?key|authorization|credential|private[_-]?key|cookie",
    re.IGNORECASE,
)


def redacted(value: Any, spec: ServerSpec | None) -> Any:
    """Return a copy of a payload for the audit row of a call.

    Values under keys that sound like secrets are masked, and so is the server's environment
    and the like wherever it shows up. What is longer than ``MCP_CLIENT_AUDIT_PAYLOAD_SIZE``
    characters as JSON becomes ``{"cut": ..., "size": ...}``.
    """
    clean = json_codec.scrub(_masked(value, Redactor(spec) if spec is not None else str))
    limit = app_settings.AUDIT_PAYLOAD_SIZE
    text = json_codec.dumps(clean).decode()
    if len(text) <= limit:
        # Decoded again: tuples and other things of Python have become what the database will return.
        return json_codec.loads(text.encode())
    return {"cut": text[:limit], "size": len(text)}


def _masked(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: MASK if _SENSITIVE.search(str(key)) and item else _masked(item, redact)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_masked(item, redact) for item in value]
    return redact(value) if isinstance(value, str) else value
