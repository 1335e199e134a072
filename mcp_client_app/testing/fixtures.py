"""Fixtures for pytest: name this module in ``pytest_plugins``. They need pytest-django."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.models import ServerConfig
from mcp_client_app.testing.overrides import Server, fresh_manager, stored_server

__all__ = ["add_mcp_server", "mcp_manager"]


@pytest.fixture
def mcp_manager(db: None) -> Iterator[MCPClientManager]:
    """A manager of the test's own over the test database; closed with all it has started."""
    with fresh_manager() as manager:
        yield manager


@pytest.fixture
def add_mcp_server(mcp_manager: MCPClientManager) -> Iterator[Callable[..., ServerConfig]]:
    """Store servers for this test: ``add_mcp_server("shop", fake_server(...), **fields)``."""
    with contextlib.ExitStack() as stack:

        def add(name: str, server: Server, **fields: Any) -> ServerConfig:
            return stack.enter_context(stored_server(name, server, **fields))

        yield add
