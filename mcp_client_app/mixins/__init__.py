"""MCP tools for any agent class, with the names and the manners of GAIA's MCP client.

``MCPClientMixin`` gives an agent a registry of tools; ``MCPClient``, ``MCPClientManager`` and
``MCPConfig`` are the pieces it is made of, usable alone. Behind them are the servers and connections of
the site: calls go through ``services``, so permissions, filters, time limits and the audit hold here, too.
"""

from __future__ import annotations

from mcp_client_app.mixins.agent import MCPClientMixin
from mcp_client_app.mixins.client import MCPClient
from mcp_client_app.mixins.manager import MCPClientManager
from mcp_client_app.mixins.server_transport import ServerTransport, StdioTransport
from mcp_client_app.mixins.store import MCPConfig
from mcp_client_app.mixins.tools import MCPTool
from mcp_client_app.mixins.transport import MCPTransport

__all__ = [
    "MCPClient",
    "MCPClientManager",
    "MCPClientMixin",
    "MCPConfig",
    "MCPTool",
    "MCPTransport",
    "ServerTransport",
    "StdioTransport",
]
