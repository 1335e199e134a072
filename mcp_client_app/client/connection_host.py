"""What a connection needs from whoever owns it. All of it is called on the loop and must not block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp_client_app.client.input_desk import InputDesk
from mcp_client_app.client.link import Link, LinkContext
from mcp_client_app.datatypes import LogMessage, ManagerOptions, ProtocolMode, StderrLine

__all__ = ["ConnectionHost"]


@dataclass(kw_only=True)
class ConnectionHost:
    """Shared by all connections of a manager."""

    options: ManagerOptions
    make_link: Callable[[LinkContext], Link]
    link_context: Callable[..., LinkContext]
    """Fills in what all links share; takes the rest as keywords."""
    state_changed: Callable[[Any], None]
    """A ``Connection`` has moved to another state."""
    catalogue_changed: Callable[[Any], None]
    """A ``Connection`` has a new catalogue."""
    desk: InputDesk
    logged: Callable[[LogMessage], None]
    stderr: Callable[[StderrLine], None]
    eras: dict[str, ProtocolMode] = field(default_factory=dict)
    """By server, the era found the last time: spares the probe."""
    generation: int = 0
    """Grows whenever a tool's name may have come to mean something else."""

    def names_changed(self) -> None:
        """A server came or went, its filter or its catalogue changed."""
        self.generation += 1
