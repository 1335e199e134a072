"""For tests in the manner of ``unittest``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.models import ServerConfig
from mcp_client_app.testing.overrides import Server, fresh_manager, stored_server

if TYPE_CHECKING:
    from django.test import TransactionTestCase as Base
else:
    Base = object

__all__ = ["MCPClientTestMixin"]


class MCPClientTestMixin(Base):
    """Gives each test a manager of its own over the test database; closed with all it has started.

    Put it before ``TestCase`` or ``TransactionTestCase``::

        class ShopTests(MCPClientTestMixin, TestCase):
            mcp_servers = {"shop": fake_server(tools={"price": lambda article: 3})}
    """

    mcp_servers: ClassVar[Mapping[str, Server]] = {}
    """Servers that every test of the class finds stored, by name."""
    mcp_manager: MCPClientManager
    """What ``get_mcp_manager()`` returns during the test."""

    def setUp(self) -> None:
        super().setUp()
        self.mcp_manager = self.enterContext(fresh_manager())
        for name, server in self.mcp_servers.items():
            self.add_mcp_server(name, server)

    def add_mcp_server(self, name: str, server: Server, **fields: Any) -> ServerConfig:
        """Store a server for this test; further keywords are fields of ``ServerConfig``."""
        return self.enterContext(stored_server(name, server, **fields))
