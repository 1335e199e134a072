"""The servers of one toolset: stored ones by name, and its own, which live as long as it does."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mcp_client_app.client.private_servers import private_principal
from mcp_client_app.client.sources import ServerEntry
from mcp_client_app.datatypes import SHARED, AgentServerSpec, AgentSpec
from mcp_client_app.exceptions import ConfigurationError, DuplicateServerError
from mcp_client_app.runtime import started_manager
from mcp_client_app.services.inline_servers import check_name, private_entry

if TYPE_CHECKING:
    from mcp_client_app.client.manager import MCPClientManager

__all__ = ["Given", "ToolsetServers", "let_go"]

Given = str | AgentServerSpec | Mapping[str, Any]
"""A stored server's name, the same with rules, or an entry of an ``mcp.json`` with its ``name``."""


@dataclass(frozen=True, slots=True)
class _Added:
    spec: AgentServerSpec
    entry: ServerEntry | None = None
    """Of a server that is the toolset's own."""


class ToolsetServers:
    """What was added to and removed from the servers of an agent, or of nothing."""

    def __init__(self, user: Any) -> None:
        self._user = user
        self._principal = private_principal()
        self._lock = threading.Lock()
        self._added: dict[str, _Added] = {}
        """By case-folded name; replaced, never changed."""
        self._removed: frozenset[str] = frozenset()
        self._applied: tuple[AgentSpec, Mapping[str, _Added], frozenset[str], AgentSpec] | None = None
        self.private_names: set[str] = set()
        """What a manager was offered; ``let_go`` takes it away."""

    def add(self, given: Given, taken: Iterable[str] = ()) -> str:
        """Add a server; returns its name.

        Raises:
            DuplicateServerError: The toolset has a server of this name.
            ConfigurationError: This is no server.
            PermissionDeniedError: It runs code, and the user may not have code run.
        """
        spec, config = _read(given, len(self._added) + 1)
        folded = spec.name.casefold()
        with self._lock:
            if folded in self._added or folded in {name.casefold() for name in taken}:
                raise DuplicateServerError(
                    f"The toolset has a server {spec.name!r} already.", server=spec.name, field="name"
                )
            entry = None
            if config is not None:
                entry = private_entry(spec.name, config, principal=self._principal, user=self._user)
            self._added = {**self._added, folded: _Added(spec, entry)}
            self._removed -= {folded}
        return spec.name

    def remove(self, name: str) -> ServerEntry | None:
        """Take a server out; returns its entry if it was the toolset's own. Fine if there is none."""
        folded = name.strip().casefold()
        with self._lock:
            gone = self._added.get(folded)
            self._added = {key: added for key, added in self._added.items() if key != folded}
            self._removed |= {folded}
        return gone.entry if gone is not None else None

    def applied_to(self, spec: AgentSpec) -> AgentSpec:
        """Return a spec with what was added and removed; the same one as long as nothing changes."""
        added, removed, known = self._added, self._removed, self._applied
        if known is not None and known[0] is spec and known[1] is added and known[2] is removed:
            return known[3]
        kept = [server for server in spec.servers if server.name.casefold() not in removed]
        here = {server.name.casefold() for server in kept}
        kept += [each.spec for folded, each in added.items() if folded not in here]
        applied = replace(spec, servers=tuple(kept))
        self._applied = (spec, added, removed, applied)
        return applied

    def is_removed(self, name: str) -> bool:
        """Whether the server was taken out, although ``all_servers`` would let it in."""
        return name.casefold() in self._removed

    def target(self, name: str) -> tuple[str, str]:
        """Return what a manager calls a server, and whose connection is meant."""
        added = self._added.get(name.casefold())
        if added is None or added.entry is None:
            return name, SHARED
        return added.entry.name, added.entry.principal

    def own(self) -> dict[str, str]:
        """Return the names of the toolset's own servers, by what a manager calls them."""
        return {added.entry.name: added.spec.name for added in self._added.values() if added.entry}

    def offer(self, manager: MCPClientManager) -> None:
        """Make the toolset's own servers known to a manager, which may be a new one."""
        entries = [added.entry for added in self._added.values() if added.entry is not None]
        if entries:
            self.private_names.update(entry.name for entry in entries)
            manager.private.offer(entries)

    def withdraw(self, manager: MCPClientManager, names: Iterable[str]) -> list[tuple[str, str]]:
        """Take servers of the toolset's own away from a manager; returns what is to be released."""
        gone = [name for name in names if name in self.private_names]
        self.private_names.difference_update(gone)
        manager.private.withdraw(gone)
        return [(name, self._principal) for name in gone]


def let_go(names: set[str]) -> None:
    """End what a toolset has left behind that was never disconnected; in the collection of garbage."""
    manager = started_manager()
    if manager is not None and names:
        manager.private.withdraw(names)
        manager.apply_soon()


def _read(given: Given, number: int) -> tuple[AgentServerSpec, Mapping[str, Any] | None]:
    if isinstance(given, str) and given.strip():
        return AgentServerSpec(name=given.strip()), None
    if isinstance(given, AgentServerSpec):
        return given, None
    if not isinstance(given, Mapping):
        raise ConfigurationError(
            "A server of a toolset is the name of a stored one, or a configuration such as "
            '{"name": ..., "command": ..., "args": [...]}.',
            field="servers",
        )
    name = check_name(given.get("name", f"server-{number}"))
    return AgentServerSpec(name=name), {key: value for key, value in given.items() if key != "name"}
