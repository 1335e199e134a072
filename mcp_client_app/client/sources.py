"""Where the manager learns which servers there are. The rows behind it are not its business."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mcp_client_app.datatypes import SHARED, ServerSpec, Transport
from mcp_client_app.exceptions import (
    AmbiguousToolError,
    ConfigurationError,
    DuplicateServerError,
    MCPClientError,
    NotConnectedError,
    ToolBlockedError,
    UnknownServerError,
    UnknownToolError,
)

__all__ = ["REFUSALS", "ServerEntry", "Snapshot", "Source", "StaticSource"]

REFUSALS = (
    AmbiguousToolError,
    ConfigurationError,
    NotConnectedError,
    ToolBlockedError,
    UnknownServerError,
    UnknownToolError,
)
"""What follows from a snapshot, before anything is sent: not the last word until somebody has looked
whether there is a newer one."""


@dataclass(frozen=True, kw_only=True)
class ServerEntry:
    """One known server: its spec, or why it has none."""

    name: str
    transport: Transport
    spec: ServerSpec | None = None
    error: MCPClientError | None = None
    enabled: bool = True
    stopped: bool = False
    """Disconnected on purpose, for all processes."""
    revision: int = 0
    warnings: tuple[str, ...] = ()
    principal: str = SHARED
    """Of a private server: who alone may use it."""

    def usable_spec(self) -> ServerSpec:
        """Return the spec.

        Raises:
            UnknownServerError: Disabled.
            ConfigurationError: It cannot work as configured.
        """
        if not self.enabled:
            raise UnknownServerError(f"The server {self.name!r} is disabled.", server=self.name)
        if self.spec is None:
            raise self.error.copy() if self.error is not None else ConfigurationError(server=self.name)
        return self.spec


_versions = itertools.count(1)


@dataclass(frozen=True)
class Snapshot:
    """All known servers at one moment."""

    entries: Mapping[str, ServerEntry] = field(default_factory=dict)
    version: int = field(default_factory=_versions.__next__)
    """Grows: an older snapshot never replaces a newer one."""
    private: Mapping[str, ServerEntry] = field(default_factory=dict)
    """Servers of single principals; see ``private_servers``."""

    def known(self, name: str) -> ServerEntry | None:
        """Return the entry of a server by its exact name, a private one, too."""
        return self.entries.get(name) or self.private.get(name)

    def entry(self, name: str, principal: str = SHARED) -> ServerEntry:
        """Return the entry of a server; names are compared without regard to case.

        Raises:
            UnknownServerError: There is none, or it is another principal's.
        """
        own = self.private.get(name)
        if own is not None and own.principal == principal:
            return own
        found = self.entries.get(name)
        if found is None:
            folded = str(name).strip().casefold()
            found = next((entry for key, entry in self.entries.items() if key.casefold() == folded), None)
        if found is None:
            raise UnknownServerError(f"There is no server {name!r}.", server=name)
        return found


class Source(Protocol):
    """Supplies snapshots; called in the caller's thread, may use the database."""

    def current(self, *, fresh: bool = False) -> Snapshot:
        """Return the servers as they are now, at most a little outdated unless ``fresh``."""

    async def acurrent(self, *, fresh: bool = False) -> Snapshot:
        """Async twin of ``current``."""

    def invalidate(self) -> None:
        """Have the next ``current`` look, however lately somebody has."""

    def add(self, name: str, config: Mapping[str, Any]) -> None:
        """Store a new server; raises ``DuplicateServerError`` or ``ConfigurationError``."""

    def remove(self, name: str) -> bool:
        """Delete a server; returns whether there was one."""

    def load(self, path: str | Path) -> list[str]:
        """Read a configuration file; returns the names of its servers."""


class StaticSource:
    """A fixed set of specs, for tests and programs without a database."""

    def __init__(self, specs: Iterable[ServerSpec] = ()) -> None:
        self._snapshot = Snapshot()
        self.replace(specs)

    def replace(self, specs: Iterable[ServerSpec], *, stopped: Iterable[str] = ()) -> None:
        """Take other servers from now on."""
        flagged = set(stopped)
        self._snapshot = Snapshot(
            {
                spec.name: ServerEntry(
                    name=spec.name,
                    transport=spec.transport,
                    spec=spec,
                    revision=spec.revision,
                    stopped=spec.name in flagged,
                )
                for spec in specs
            }
        )

    def current(self, *, fresh: bool = False) -> Snapshot:
        return self._snapshot

    async def acurrent(self, *, fresh: bool = False) -> Snapshot:
        return self._snapshot

    def invalidate(self) -> None:
        """Nothing to do: what is known is what there is."""

    def add(self, name: str, config: Mapping[str, Any]) -> None:
        if name in self._snapshot.entries:
            raise DuplicateServerError(f"There is a server {name!r} already.", server=name)
        try:
            spec = ServerSpec(name=name, **{"transport": Transport.STDIO, **config})
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"The server {name!r} cannot be configured so: {error}.", server=name
            ) from error
        self.replace([*self._specs(), spec])

    def remove(self, name: str) -> bool:
        known = name in self._snapshot.entries
        self.replace(spec for spec in self._specs() if spec.name != name)
        return known

    def load(self, path: str | Path) -> list[str]:
        raise ConfigurationError("A fixed set of servers reads no files.")

    def _specs(self) -> list[ServerSpec]:
        return [entry.spec for entry in self._snapshot.entries.values() if entry.spec is not None]
