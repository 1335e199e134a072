"""What the tests of toolsets share: peers that write down what reaches them, stored agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcp_client_app.models import AgentConfig, AgentServer, ServerConfig
from mcp_client_app.services.toolset_results import ToolsetResult
from tests.stored import stored

__all__ = ["agent", "calls_seen", "code_of", "logging_peer"]


def logging_peer(tmp_path: Path, *options: str, name: str = "peer", **fields: Any) -> ServerConfig:
    """Store a raw stdio peer that appends every message it receives to a file."""
    return stored(name, "--wire-log", str(tmp_path / f"{name}.log"), *options, **fields)


def calls_seen(tmp_path: Path, name: str = "peer") -> list[dict[str, Any]]:
    """Return the params of the calls that have reached a peer."""
    log = tmp_path / f"{name}.log"
    frames = [json.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []
    return [frame["params"] for frame in frames if frame.get("method") == "tools/call"]


def code_of(outcome: ToolsetResult) -> str:
    """Return the code of the error of a call that failed."""
    assert outcome.error is not None
    return outcome.error.code


def agent(name: str = "clerk", *servers: ServerConfig, **fields: Any) -> AgentConfig:
    """Store an agent with these servers."""
    row = AgentConfig.objects.create(name=name, **fields)
    for server in servers:
        AgentServer.objects.create(agent=row, server=server)
    return row
