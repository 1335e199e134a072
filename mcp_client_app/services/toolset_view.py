"""What a toolset shows, made of what servers offer: built anew only when something has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mcp_client_app.datatypes import AgentSpec, Listing, ToolFilter, ToolInfo
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.naming import split_public_name
from mcp_client_app.services.shared_selections import same_tools, shared_selections
from mcp_client_app.services.toolset_servers import ToolsetServers
from mcp_client_app.toolsets import ToolSelection
from mcp_client_app.toolsets.policies import rules_of

if TYPE_CHECKING:
    from mcp_client_app.client.manager import MCPClientManager

__all__ = ["ToolsetView", "View", "called"]


@dataclass(frozen=True, slots=True)
class View:
    """One moment of a toolset."""

    spec: AgentSpec
    selection: ToolSelection
    errors: Mapping[str, MCPClientError]
    """Why servers are unavailable, by name."""


@dataclass(frozen=True, slots=True)
class _Basis:
    """What a view depends on."""

    spec: AgentSpec
    tools: tuple[ToolInfo, ...]
    filters: Mapping[str, ToolFilter]

    def is_same(self, other: _Basis) -> bool:
        return (
            self.spec is other.spec and same_tools(self.tools, other.tools) and self.filters == other.filters
        )


class ToolsetView:
    """Turns listings into views; keeps the last one."""

    def __init__(self, servers: ToolsetServers) -> None:
        self._servers = servers
        self._last: tuple[_Basis, ToolSelection] | None = None

    def of(self, spec: AgentSpec, listing: Listing[Any], manager: MCPClientManager) -> View:
        """Return what there is to see of a listing."""
        own = self._servers.own()
        hidden = {name.casefold() for name in own.values()}  # stored servers behind own ones of their name

        def shows(server: str) -> bool:
            return server in own or (server.casefold() not in hidden and not self._servers.is_removed(server))

        errors = {
            own.get(name, name): called(error, own) for name, error in listing.errors.items() if shows(name)
        }
        tools = tuple(tool for tool in listing.items if shows(tool.server))
        # A server that is away is known all the same: no other one may speak in its name.
        known = dict.fromkeys([*(tool.server for tool in tools), *filter(shows, listing.errors)])
        filters = {own.get(name, name): _own_filter(manager, name) for name in known}
        if spec.all_servers:
            filters = {**dict.fromkeys(_named_by(tools, manager), ToolFilter()), **filters}
        reasons = {name: str(error) for name, error in errors.items()}
        basis = _Basis(spec, tools, filters)
        last = self._last
        if last is not None and last[0].is_same(basis):
            if last[1].reasons != reasons:
                last = self._last = (basis, last[1].with_unavailable(reasons))
        else:
            last = self._last = (basis, _selection(basis, own, reasons))
        return View(spec, last[1], errors)


def _selection(basis: _Basis, own: Mapping[str, str], reasons: Mapping[str, str]) -> ToolSelection:
    """Return a selection: the one that others have, unless servers are the toolset's own."""
    rules = rules_of(basis.spec, basis.filters)
    if own:
        named = [
            replace(tool, server=own[tool.server], public_name="") if tool.server in own else tool
            for tool in basis.tools
        ]
        return ToolSelection(named, rules, reasons)
    shared = shared_selections.of(rules, basis.tools, is_stored=bool(basis.spec.revision))
    return shared.with_unavailable(reasons) if reasons else shared


def called(error: MCPClientError, own: Mapping[str, str]) -> MCPClientError:
    """Return the error with the name by which the toolset knows the server."""
    for internal, name in own.items():
        if internal in error.message or error.server == internal:
            error = error.copy()
            error.message = error.message.replace(internal, name)
            error.args = (error.message,)
            error.server = name if error.server == internal else error.server
    return error


def _named_by(tools: tuple[ToolInfo, ...], manager: MCPClientManager) -> Iterator[str]:
    """Yield servers, disabled ones too, in whose name some of the tools speak."""
    for tool in tools:
        parts = split_public_name(tool.name.strip())
        entry = manager.entry(parts[0]) if parts is not None else None
        if entry is not None:
            yield entry.name


def _own_filter(manager: MCPClientManager, server: str) -> ToolFilter:
    entry = manager.entry(server)
    return entry.spec.filter if entry is not None and entry.spec is not None else ToolFilter()
