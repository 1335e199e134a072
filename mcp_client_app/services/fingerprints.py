"""What a call is, as a hash: of server, tool and arguments, the same before and after any database."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from mcp_client_app import json_codec
from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.exceptions import InvalidArgumentsError

__all__ = ["call_fingerprint", "plain_arguments"]


def plain_arguments(arguments: Mapping[str, Any], *, tool: ToolInfo) -> dict[str, Any]:
    """Return arguments as a database can keep them.

    Raises:
        InvalidArgumentsError: They have no JSON form, or are nested too deeply.
    """
    try:
        plain: dict[str, Any] = json_codec.loads(json_codec.dumps(json_codec.scrub(dict(arguments))))
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgumentsError(
            "The arguments have no JSON form, or are nested too deeply.", server=tool.server, tool=tool.name
        ) from None
    return plain


def call_fingerprint(tool: ToolInfo, arguments: Mapping[str, Any]) -> str:
    """Return the fingerprint of a call: SHA-256 of canonical JSON.

    Arguments that were stored as JSON and read again give the same one: what databases do to
    numbers (``1.0`` is ``1``, ``1e22`` is written out) and to NUL characters makes no difference.

    Raises:
        InvalidArgumentsError: They have no JSON form.
    """
    call = [tool.server, tool.name, _whole_numbers(plain_arguments(arguments, tool=tool))]
    return hashlib.sha256(json_codec.canonical(call)).hexdigest()


def _whole_numbers(value: Any) -> Any:
    """Turn floats without a fraction into the integers that their shortest decimal form means."""
    if isinstance(value, float) and value.is_integer():
        return int(Decimal(repr(value)))
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return value
