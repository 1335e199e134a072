"""A process of the site ``clerks`` that does what it is told: orders runs, cancels one, tidies up."""

from __future__ import annotations

import json
import sys
from typing import Any

import django


def do(wish: dict[str, Any]) -> Any:
    """Do one thing; return what there is to say."""
    from mcp_client_app import services
    from mcp_client_app.agents.api import start_agent
    from mcp_client_app.models import AgentConfig, ServerConfig

    if "prepare" in wish:
        agent = AgentConfig.objects.create(name="clerk", model="scripted:clerk")
        agent.servers.add(ServerConfig.objects.get(name="early"))
        return None
    if "start" in wish:
        return [start_agent("clerk", json.dumps(prompt)).pk.hex for prompt in wish["start"]]
    if "cancel" in wish:
        return services.cancel_run(wish["cancel"]).status
    return {run_id: str(what) for run_id, what in services.reap().runs.items()}


if __name__ == "__main__":
    django.setup()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(do(json.loads(line))) + "\n")
        sys.stdout.flush()
