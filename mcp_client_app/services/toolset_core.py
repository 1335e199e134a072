"""What the verbs of a toolset build on: its rules, its servers, who may use it, and looking."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

from mcp_client_app.datatypes import AgentSpec
from mcp_client_app.exceptions import NotConnectedError
from mcp_client_app.services.following_agents import FollowedAgent
from mcp_client_app.services.permissions import CALL, RUN_AGENT, require
from mcp_client_app.services.steps import Step, Steps, at_once, in_thread
from mcp_client_app.services.toolset_servers import ToolsetServers, let_go
from mcp_client_app.services.toolset_view import ToolsetView, View

if TYPE_CHECKING:
    from mcp_client_app.client.manager import MCPClientManager

__all__ = ["PATIENCE", "ToolsetCore"]

PATIENCE: Final = 5.0
"""Seconds that are granted to servers that have to be connected first."""


class ToolsetCore:
    """State of a toolset, and the steps that several verbs take."""

    def __init__(self, spec: AgentSpec, user: Any, agent: FollowedAgent | None = None) -> None:
        self.user = user
        self.name = spec.name
        self.is_stored = bool(spec.revision)
        """Whether it is that of a stored agent: it names no code, and users need another right."""
        self.servers = ToolsetServers(user)
        self.is_closed = False
        """Whether it was disconnected: nothing can be seen or called until it is connected again."""
        self._spec = spec
        self._agent = agent
        self._view = ToolsetView(self.servers)
        weakref.finalize(self, let_go, self.servers.private_names).atexit = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {', '.join(self.server_names)}>"

    @property
    def spec(self) -> AgentSpec:
        """The rules, as last read."""
        return self.servers.applied_to(self._agent.spec if self._agent is not None else self._spec)

    @property
    def server_names(self) -> tuple[str, ...]:
        """The names of the servers, in order; with ``all_servers`` there are others besides."""
        return tuple(server.name for server in self.spec.servers)

    def admitted(self) -> AgentSpec:
        """Return the rules as they are now, for whom they are meant; uses the database.

        Raises:
            PermissionDeniedError, UnknownAgentError: The user may not use this (any more).
            NotConnectedError: The toolset was disconnected.
        """
        require(self.user, RUN_AGENT if self.is_stored else CALL)
        if self._agent is not None:
            self._agent.current()
        if self.is_closed:
            raise NotConnectedError("The toolset has been disconnected; connect it first.")
        return self.spec

    def admitting(self) -> Step:
        """Return the step of ``admitted``; coroutines leave their thread only if the database is asked."""
        if self.user is None and (self._agent is None or not self._agent.is_due):
            return at_once(self.admitted)
        return in_thread(self.admitted)

    def look(self, manager: MCPClientManager, spec: AgentSpec, *, wait: float = PATIENCE) -> Steps[View]:
        """Ask the servers what they offer, without waiting for those that are slow."""
        self.servers.offer(manager)
        targets = [self.servers.target(server.name) for server in spec.servers]
        options: dict[str, Any] = {"every": spec.all_servers, "wait": wait}
        listing = yield Step(
            lambda: manager.listings("known_tools", targets, **options),
            lambda: manager.alistings("known_tools", targets, **options),
        )
        return self._view.of(spec, listing, manager)

    def reread(self, manager: MCPClientManager, server: str, *, wait: float) -> Step:
        """Have the lists of one server read anew."""
        target, principal = self.servers.target(server)
        return Step(
            lambda: manager.refresh(target, principal=principal, wait=wait),
            lambda: manager.arefresh(target, principal=principal, wait=wait),
        )
