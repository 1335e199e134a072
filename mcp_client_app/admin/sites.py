"""Registration with an admin site: Django's or one of the project's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_client_app.admin.agents import AgentConfigAdmin
from mcp_client_app.admin.approvals import ApprovalAdmin
from mcp_client_app.admin.calls import ToolCallAdmin
from mcp_client_app.admin.runs import AgentRunAdmin
from mcp_client_app.admin.servers import ServerConfigAdmin
from mcp_client_app.admin.workers import ServerStateAdmin, WorkerProcessAdmin
from mcp_client_app.models import (
    AgentConfig,
    AgentRun,
    Approval,
    ServerConfig,
    ServerState,
    ToolCall,
    WorkerProcess,
)

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite, ModelAdmin

__all__ = ["register"]


def register(
    site: AdminSite,
    *,
    server_admin: type[ModelAdmin[Any]] = ServerConfigAdmin,
    call_admin: type[ModelAdmin[Any]] = ToolCallAdmin,
    worker_admin: type[ModelAdmin[Any]] = WorkerProcessAdmin,
    state_admin: type[ModelAdmin[Any]] = ServerStateAdmin,
    agent_admin: type[ModelAdmin[Any]] = AgentConfigAdmin,
    approval_admin: type[ModelAdmin[Any]] = ApprovalAdmin,
    run_admin: type[ModelAdmin[Any]] = AgentRunAdmin,
) -> None:
    """Register the app's models; what a site has registered already is replaced.

    Args:
        site: The site.
        server_admin: For servers; derive yours from ``ServerConfigAdmin``.
        call_admin: For the audit; derive yours from ``ToolCallAdmin``.
        worker_admin: For the processes that hold connections.
        state_admin: For the states that they report.
        agent_admin: For agents; derive yours from ``AgentConfigAdmin``.
        approval_admin: For calls that wait for a person; derive yours from ``ApprovalAdmin``.
        run_admin: For runs of agents; derive yours from ``AgentRunAdmin``.
    """
    classes: dict[Any, type[ModelAdmin[Any]]] = {
        ServerConfig: server_admin,
        ToolCall: call_admin,
        WorkerProcess: worker_admin,
        ServerState: state_admin,
        AgentConfig: agent_admin,
        Approval: approval_admin,
        AgentRun: run_admin,
    }
    for model, admin_class in classes.items():
        if site.is_registered(model):
            site.unregister(model)
        site.register(model, admin_class)
