"""The Django admin: editing servers, looking at what they offer, reading the audit.

An entry point: whatever touches a connection or saves a server goes through ``services``.
Importing the package registers the classes with Django's default site, as autodiscovery
expects; :func:`register` does the same for a site of your own, with classes of your own if
you like.
"""

from __future__ import annotations

from django.contrib import admin

from mcp_client_app.admin.agents import AgentConfigAdmin
from mcp_client_app.admin.approvals import ApprovalAdmin
from mcp_client_app.admin.calls import ToolCallAdmin
from mcp_client_app.admin.runs import AgentRunAdmin
from mcp_client_app.admin.servers import ServerConfigAdmin
from mcp_client_app.admin.sites import register
from mcp_client_app.admin.workers import ServerStateAdmin, WorkerProcessAdmin

__all__ = [
    "AgentConfigAdmin",
    "AgentRunAdmin",
    "ApprovalAdmin",
    "ServerConfigAdmin",
    "ServerStateAdmin",
    "ToolCallAdmin",
    "WorkerProcessAdmin",
    "register",
]

register(admin.site)
