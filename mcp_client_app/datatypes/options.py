"""What a manager is told once, at its start."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

__all__ = ["ManagerOptions", "UrlPolicy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlPolicy:
    """Which addresses the client may talk to; checked on the URL *and* on the socket."""

    schemes: tuple[str, ...] = ("http", "https")
    blocked_networks: tuple[str, ...] = ()
    """CIDR networks, such as ``169.254.0.0/16``."""
    allowed_hosts: tuple[str, ...] | None = None
    """Globs on the host name; None allows all. A host that matches is not held to ``blocked_networks``."""


@dataclass(frozen=True, kw_only=True)
class ManagerOptions:
    """What a manager is told once, at its start."""

    client_name: str = "django-mcp-client-app"
    client_version: str = ""
    default_link: str = "own"
    max_starts: int = 8
    """Processes or TLS connections being started at once."""
    url_policy: UrlPolicy = UrlPolicy()
    trust_env: bool = False
    """Honour ``HTTP_PROXY`` and friends."""
    allow_stdio: bool = True
    debug: bool = False
    """Log frames (secrets redacted) at DEBUG."""
    use_uvloop: bool = False
    max_frame_size: int = 64_000_000
    """A longer message is skipped and the request it answers fails."""
    stderr_lines: int = 200
    """Lines of standard error kept per server."""
    queue_size: int = 1000
    """Events (notifications, logs, stderr) that wait for callbacks, per server; the oldest is dropped."""
    callback_threads: int = 4
    max_pages: int = 1000
    max_items: int = 50_000
    reaper: bool = True
    """Start a small process that ends the servers if this process is killed hard."""
    around_callback: Callable[[Callable[[], None]], None] | None = None
    """Wraps every callback on the executor, and every handler of a server's request; runtime closes database
    connections here."""
    run_coroutine: Callable[[Coroutine[Any, Any, Any]], Any] | None = None
    """Runs what a coroutine function that handles a server's request returns, in a thread; None =
    ``asyncio.run``."""
