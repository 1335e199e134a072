"""Makes payloads fit to be kept: secrets masked, long ones cut, characters that databases refuse replaced."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_client_app import json_codec
from mcp_client_app.client.redaction import Redactor
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import ServerSpec

__all__ = ["is_sensitive", "redacted"]

MASK: Final = "***"
_SENSITIVE: Final = re.compile(
    r"pass(word|wd|phrase)?|secret|token|api[_-]?key|authorization|credential|private[_-]?key|cookie",
    re.IGNORECASE,
)


def is_sensitive(key: str) -> bool:
    """Say whether a key sounds as if its value were a secret."""
    return _SENSITIVE.search(key) is not None


def redacted(value: Any, spec: ServerSpec | None) -> Any:
    """Return a copy of a payload for the audit row of a call.

    Values under keys that sound like secrets are masked, and so is the server's environment
    and the like wherever it shows up. What is longer than ``MCP_CLIENT_AUDIT_PAYLOAD_SIZE``
    characters as JSON, or nested too deeply to be read back, becomes ``{"cut": ..., "size": ...}``;
    of what has no JSON form, and so was not sent, nothing is kept.
    """
    limit = app_settings.AUDIT_PAYLOAD_SIZE
    try:
        clean = json_codec.scrub(_masked(value, Redactor(spec) if spec is not None else str))
        text = json_codec.dumps(clean).decode()
    except (TypeError, RecursionError):
        return {"cut": "", "size": 0}
    if len(text) <= limit:
        with contextlib.suppress(ValueError):
            # Decoded again: tuples and other things of Python have become what the database will return.
            return json_codec.loads(text.encode())
    return {"cut": text[:limit], "size": len(text)}


def _masked(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return {
            redact(str(key)): MASK if is_sensitive(str(key)) and item else _masked(item, redact)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_masked(item, redact) for item in value]
    return redact(value) if isinstance(value, str) else value
