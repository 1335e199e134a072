"""Fixtures of the tests of the mixin: a manager over the test's rows, agents that are left in good order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_client_app.mixins import MCPClientMixin, server_transport
from mcp_client_app.testing.fixtures import add_mcp_server, mcp_manager

__all__ = ["add_mcp_server", "mcp_manager"]

ROOT = Path(__file__).resolve().parents[2]


def files_config(folder: Path) -> dict[str, Any]:
    """Return the configuration of a server of files, as the reference's examples start one."""
    return {"command": sys.executable, "args": [str(ROOT / "example_project/servers/files.py"), str(folder)]}


WORKSHOP: dict[str, Any] = {
    "command": sys.executable,
    "args": [str(ROOT / "example_project/servers/workshop.py")],
}
PEER: dict[str, Any] = {"command": sys.executable, "args": [str(ROOT / "tests/servers/sdk_stdio.py")]}
NOWHERE: dict[str, Any] = {"command": "surely-no-such-program"}


class Agent:
    """An agent class of somebody else's, which knows nothing of MCP and calls no ``super().__init__``."""

    def __init__(self, debug: bool = False) -> None:
        self.debug = debug
        self.prompts = 0

    def rebuild_system_prompt(self) -> None:
        self.prompts += 1


class MyAgent(Agent, MCPClientMixin):
    """Such an agent with the mixin."""

    def tool(self, name: str) -> Any:
        return self._TOOL_REGISTRY[name]["function"]


@pytest.fixture(autouse=True)
def _clients_are_left() -> Iterator[None]:
    """Leave a test's clients: one that waits for the garbage collector counts as its server's user."""
    yield
    for transport in list(server_transport._open):
        transport.disconnect()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file in it."""
    (tmp_path / "example.txt").write_text("Hello from a file.")
    return tmp_path
