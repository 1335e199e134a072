"""Decodes JSON without keeping the loop busy for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from mcp_client_app import json_codec

__all__ = ["BIG_FRAME", "aside", "decoded", "in_utf8"]

T = TypeVar("T")

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
    return await aside(len(data), json_codec.loads, data)


async def aside(size: int, work: Callable[..., T], *arguments: Any) -> T:
    """Do some work on a message of so many bytes: on a worker thread if it is a large one."""
    if size > BIG_FRAME:
        try:
            job = asyncio.get_running_loop().run_in_executor(None, work, *arguments)
        except RuntimeError:
            pass  # the process is ending and takes no new work on threads
        else:
            return await job
    return work(*arguments)


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
