"""Connect and list: what the verbs for tools, resources and prompts have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from mcp_client_app import services
from mcp_client_app.datatypes import Listing
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.management.connections import connect_with_progress
from mcp_client_app.management.console import Console
from mcp_client_app.management.failures import error_document, failure, outcome, usage_error

__all__ = ["Listed", "Lister", "listed", "required_server", "summary"]

T = TypeVar("T")


class Lister(Protocol[T]):
    """A service that lists one kind of thing."""

    def __call__(self, server: str | None = None, *, wait: float | None = None) -> Listing[T]: ...


@dataclass(frozen=True)
class Listed(Generic[T]):
    """What could be listed, and why the rest could not."""

    items: Sequence[T]
    errors: Mapping[str, MCPClientError]
    reached: int
    """How many servers could be asked."""

    def write(self, console: Console, key: str, document: Callable[[T], dict[str, Any]]) -> None:
        """Write the whole for machines."""
        errors = {name: error_document(error) for name, error in self.errors.items()}
        console.document({key: [document(item) for item in self.items], "errors": errors})

    def conclude(self) -> None:
        """Say who could not be asked.

        Raises:
            CommandError: if there is somebody.
        """
        if self.errors:
            reasons = [f"  {name}: {error}" for name, error in sorted(self.errors.items())]
            code = outcome(len(self.errors), len(self.errors) + self.reached)
            raise failure("\n".join(["Could not be asked:", *reasons]), code)


def listed(lister: Lister[T], server: str | None, console: Console) -> Listed[T]:
    """Connect and list one server, or all enabled ones; says how far it is.

    Raises:
        MCPClientError: only with ``server``: it cannot be reached.
    """
    if server is not None:
        with console.progress() as progress:
            progress.waiting(f"connecting {server} ...")
            return Listed(lister(server).items, {}, reached=1)
    # Connected first, each up to its own time limit; then listed without another attempt.
    statuses = connect_with_progress(console, _usable(console))
    listing = lister(None, wait=0)
    errors = {name: error for name, error in listing.errors.items() if name in statuses}
    return Listed(listing.items, errors, reached=len(statuses) - len(errors))


def _usable(console: Console) -> list[str]:
    names = []
    for server in services.list_servers():
        if server.enabled and server.stopped:
            console.note(f"{server.name} is stopped; to use it again: mcp_client connect {server.name}")
        elif server.enabled:
            names.append(server.name)
    return names


def required_server(options: argparse.Namespace, option: str) -> str:
    """Return the server that an option cannot do without.

    Raises:
        CommandError: none is named.
    """
    if options.server is None:
        raise usage_error(f"SERVER: {option} needs the name of the server in front of it.")
    return str(options.server)


def summary(text: str | None) -> str:
    """Return the first line that says something."""
    return next((line for line in (text or "").splitlines() if line.strip()), "")
