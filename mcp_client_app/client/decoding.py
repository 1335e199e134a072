"""Decodes JSON without keeping the loop busy for long."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp_client_app import json_codec

__all__ = ["BIG_FRAME", "decoded"]

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
