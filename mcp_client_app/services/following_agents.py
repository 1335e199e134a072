"""A stored agent as it may be used now: read anew when its row, its servers or its groups have changed."""

from __future__ import annotations

import time
from typing import Any

from django.db import router

from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import AgentSpec
from mcp_client_app.models import AgentConfig
from mcp_client_app.services.agents import agent_spec

__all__ = ["FollowedAgent"]


class FollowedAgent:
    """One agent for one user. Uses the database in the caller's thread: never on an event loop.

    Raises:
        UnknownAgentError: There is none, it is disabled, or it is not open to the user's groups.
        PermissionDeniedError: The user may not use agents.
    """

    def __init__(self, name: str, user: Any) -> None:
        self._user = user
        self._name = name
        self._looked_at = time.monotonic()
        # Looked at before it is read: what changes between the two is noticed the next time.
        self._state = self._stored()
        self.spec = agent_spec(name, user=user)
        """As last read."""

    @property
    def is_due(self) -> bool:
        """Whether ``current`` would ask the database."""
        return time.monotonic() - self._looked_at >= app_settings.REVISION_INTERVAL

    def current(self) -> AgentSpec:
        """Return the agent; one query, at most each ``MCP_CLIENT_REVISION_INTERVAL`` seconds.

        Raises:
            UnknownAgentError, PermissionDeniedError: It may not be used any more.
        """
        if self.is_due:
            now, state = time.monotonic(), self._stored()
            # Also if it could not be used when it was first looked at, and could a moment later.
            if state != self._state or not state:
                self.spec = agent_spec(self._name, user=self._user)
                self._state = state
            self._looked_at = now
        return self.spec

    def _stored(self) -> frozenset[tuple[int, str | None]]:
        """Return what differs between two states of the agent; empty if it may not be used."""
        rows = AgentConfig.objects.using(router.db_for_write(AgentConfig)).enabled().for_user(self._user)
        found = rows.named(self._name).values_list("revision", "agent_servers__server__name")
        return frozenset(found.order_by())
