"""A stored agent, run from threads: its events, its ledger and its audit are written."""

from __future__ import annotations

from typing import Any

import django
from django.db import connections

from benchmarks.workers import threads


def main() -> None:
    """Store the agent, then take orders: each call is a run."""
    django.setup()

    from benchmarks.workers.agents_script import scripted
    from mcp_client_app.agents.api import run_agent
    from mcp_client_app.models import AgentConfig, AgentServer, ServerConfig
    from mcp_client_app.runtime import close_mcp_manager, get_mcp_manager

    get_mcp_manager().connect("fast")
    agent = AgentConfig.objects.create(name="clerk", model="scripted:benchmark")
    AgentServer.objects.create(agent=agent, server=ServerConfig.objects.get(name="fast"))
    model = scripted("fast__echo")

    def call(tool: str, arguments: dict[str, Any]) -> object:
        result = run_agent("clerk", "Go.", model=model)
        assert result.text == "Done.", result
        return result

    threads.serve(call)
    close_mcp_manager()
    connections.close_all()


if __name__ == "__main__":
    main()
