"""The servers of a suite: who connects is told how to reach them."""

from __future__ import annotations

import contextlib

from benchmarks.servers.fast import listening
from benchmarks.variants import MODERN
from benchmarks.workers.protocol import Target

__all__ = ["serving"]


def serving(
    command: tuple[str, ...], transport: str, stack: contextlib.ExitStack, *, era: str = MODERN
) -> Target:
    """Return the target; over HTTP it runs until ``stack`` ends, over stdio whoever connects starts it."""
    if transport == "stdio":
        return Target("stdio", era, command)
    return Target("http", era, url=stack.enter_context(listening(command)))
