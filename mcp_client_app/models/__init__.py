"""The tables. No network, no event loop: rows meet connections in ``services`` and ``runtime``."""

from __future__ import annotations

from mcp_client_app.models.agent_servers import AgentServer
from mcp_client_app.models.agents import AgentConfig
from mcp_client_app.models.approvals import Approval
from mcp_client_app.models.calls import ToolCall
from mcp_client_app.models.importing import ImportEntry
from mcp_client_app.models.receipts import CallReceipt
from mcp_client_app.models.resolution import ResolvedServer
from mcp_client_app.models.runs import AgentEvent, AgentRun, RunCall
from mcp_client_app.models.servers import ServerConfig
from mcp_client_app.models.workers import ServerState, WorkerProcess

__all__ = [
    "AgentConfig",
    "AgentEvent",
    "AgentRun",
    "AgentServer",
    "Approval",
    "CallReceipt",
    "ImportEntry",
    "ResolvedServer",
    "RunCall",
    "ServerConfig",
    "ServerState",
    "ToolCall",
    "WorkerProcess",
]
