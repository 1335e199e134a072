"""Limits how many servers are being *started* at once: exec of a process, TCP and TLS.

The slot is given back before the handshake is awaited, and after a while in any case:
a server that hangs must not hold up the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["StartSlots"]

LONGEST = 1.0
"""Seconds after which a slot is given back although the start is not over."""


class StartSlots:
    """``release = await slots.acquire()``; calling ``release`` again does no harm."""

    def __init__(self, limit: int) -> None:
        self._semaphore = asyncio.Semaphore(max(1, limit))

    async def acquire(self) -> Callable[[], None]:
        """Wait for a slot; returns the function that gives it back."""
        await self._semaphore.acquire()
        held = True

        def release() -> None:
            nonlocal held
            if held:
                held = False
                timer.cancel()
                self._semaphore.release()

        timer = asyncio.get_running_loop().call_later(LONGEST, release)
        return release
