"""What a model is told first: the agent's instructions, with the caller's values in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mcp_client_app import json_codec

__all__ = ["fill_in"]

_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


def fill_in(instructions: str, deps: Any) -> str:
    """Return the instructions with ``{{ name }}`` replaced by the caller's values; unknown names stay."""
    if not isinstance(deps, Mapping):
        return instructions

    def value(match: re.Match[str]) -> str:
        if match[1] not in deps:
            return match[0]
        found = deps[match[1]]
        return found if isinstance(found, str) else json_codec.dumps(found).decode()

    return _PLACE.sub(value, instructions)
