"""Decodes JSON without keeping the loop busy for long."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp_client_app import json_codec

__all__ = ["BIG_FRAME", "decoded", "in_utf8"]

_OTHER_CHARSETS = frozenset(
    {
        "iso-8859-1",
        "iso-8859-15",
        "latin-1",
        "latin1",
        "windows-1252",
        "utf-16",
        "utf-16le",
        "utf-16be",
        "utf-32",
    }
)
"""Those in which JSON is met; Python has others that take for ever."""

BIG_FRAME = 1_000_000
"""Bytes from which on a message is decoded on a worker thread, so that other servers need not wait."""


async def decoded(data: bytes) -> Any:
    """Decode JSON, a large text on a worker thread.

    Raises:
        ValueError: It is no JSON.
    """
    if len(data) > BIG_FRAME:
        try:
            job = asyncio.get_running_loop().run_in_executor(None, json_codec.loads, data)
        except RuntimeError:
            pass  # the process is ending and takes no new work on threads
        else:
            return await job
    return json_codec.loads(data)


def in_utf8(data: bytes, charset: str) -> bytes:
    """Return JSON in UTF-8 that came in ``charset``, if it did: many servers name a wrong one."""
    if charset not in _OTHER_CHARSETS:
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        pass
    else:
        if b"\0" not in data:  # else UTF-16 or UTF-32
            return data
    try:
        return data.decode(charset).encode()
    except UnicodeError:
        return data
