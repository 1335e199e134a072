"""The verb for stored agents."""

from __future__ import annotations

import argparse

from mcp_client_app import services
from mcp_client_app.management import documents
from mcp_client_app.management.console import Console
from mcp_client_app.management.tables import Column
from mcp_client_app.management.verbs import Verbs
from mcp_client_app.models import AgentConfig

__all__ = ["add_verbs"]


def add_verbs(verbs: Verbs) -> None:
    """Add this module's verb."""
    verbs.add("agents", list_agents, help="list all agents, and what is to be looked at")


def list_agents(options: argparse.Namespace, console: Console) -> None:
    """List all stored agents; connects nothing."""
    agents = services.list_agents()
    if console.as_json:
        console.document({"agents": [documents.agent_document(agent) for agent in agents]})
        return
    console.table(
        [
            Column("NAME"),
            Column("USE", paint=console.paint),
            Column("MODEL", can_shrink=True),
            Column("SERVERS", can_shrink=True),
            Column("APPROVAL"),
            Column("LOOK AT", can_shrink=True),
        ],
        [
            (
                agent.name,
                "enabled" if agent.enabled else "disabled",
                agent.model or "-",
                _servers(agent),
                agent.approval,
                " ".join(documents.problems_of(agent)),
            )
            for agent in agents
        ],
        empty="There are no agents yet. Add one in the admin, over REST or with services.add_agent().",
    )


def _servers(agent: AgentConfig) -> str:
    names = sorted((each.server.name for each in agent.agent_servers.all()), key=str.casefold)
    return ", ".join([*names, *(["(all)"] if agent.all_servers else [])]) or "-"
