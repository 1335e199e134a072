"""Support for the tests of host projects: fake servers, and a manager that leaves nothing behind.

Servers run in the test's own process; the path to them (services, manager, protocol) is the
one of production. Needs nothing that the app itself does not need.
"""

from __future__ import annotations

from mcp_client_app.testing.asgi import serve_asgi
from mcp_client_app.testing.cases import MCPClientTestMixin
from mcp_client_app.testing.fakes import fake_server
from mcp_client_app.testing.overrides import Server, override_servers

__all__ = ["MCPClientTestMixin", "Server", "fake_server", "override_servers", "serve_asgi"]
