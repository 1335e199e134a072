"""When to try again: growing delays with jitter, and a breaker. Pure; the clock is an argument."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from mcp_client_app.exceptions import MCPClientError

__all__ = ["Backoff"]

FIRST = 1.0
FACTOR = 2.0
LONGEST = 60.0
JITTER = 0.1
BREAKER = 5
"""Failures in a row after which there is one probe a minute."""


@dataclass(slots=True)
class Backoff:
    """The memory of failures of one server, shared by all principals. Times in seconds."""

    failures: int = 0
    retry_at: float = 0.0
    error: MCPClientError | None = None
    """The latest failure."""
    chance: Callable[[], float] = field(default=random.random, repr=False)
    """Python's own differs in each forked process: these shall not all try at the same moment."""

    def failed(
        self, now: float, *, at_least: float | None = None, error: MCPClientError | None = None
    ) -> float:
        """Note a failed attempt; returns the delay until the next one makes sense."""
        self.failures += 1
        self.error = error
        delay = LONGEST if self.failures >= BREAKER else min(FIRST * FACTOR ** (self.failures - 1), LONGEST)
        delay *= 1 + JITTER * (2 * self.chance() - 1)
        if at_least is not None:
            delay = max(delay, at_least)
        self.retry_at = now + delay
        return delay

    def wait(self, now: float) -> float:
        """Return the seconds that are left of the delay; 0 when an attempt may be made."""
        return max(0.0, self.retry_at - now)

    def reset(self) -> None:
        """Forget the failures: a success, a new configuration, or an explicit wish."""
        self.failures = 0
        self.retry_at = 0.0
        self.error = None
