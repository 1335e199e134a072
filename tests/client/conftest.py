"""Fixtures of the tests of the core: peers, managers that are closed, threads that are waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.client.observers import Observer
from mcp_client_app.client.sources import StaticSource
from mcp_client_app.datatypes import ManagerOptions, ServerSpec
from tests.client.http_peers import HttpPeer
from tests.client.peers import Peer, Recorder

MakePeer = Callable[..., Peer]
MakeHttpPeer = Callable[..., HttpPeer]
MakeManager = Callable[..., MCPClientManager]


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[MakePeer]:
    """Make faulty peers: ``peer("name", "scenario=value", ..., modern=True, call_timeout=1)``."""
    made: list[Peer] = []

    def make(name: str = "peer", *scenarios: str, **options: Any) -> Peer:
        made.append(Peer(tmp_path, name, scenarios, options))
        return made[-1]

    yield make
    for each in made:
        each.tap.close()


@pytest.fixture
def http_peer() -> Iterator[MakeHttpPeer]:
    """Make raw HTTP peers; given are fields of the spec: ``http_peer(call_timeout=1).start("hang")``."""
    made: list[HttpPeer] = []

    def make(**spec: Any) -> HttpPeer:
        made.append(HttpPeer(**spec))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def manage() -> Iterator[MakeManager]:
    """Make managers of peers or specs; they are closed in the end."""
    made: list[MCPClientManager] = []

    def make(
        *servers: Peer | ServerSpec, observers: Iterable[Observer] = (), **options: Any
    ) -> MCPClientManager:
        specs = [server.spec if isinstance(server, Peer) else server for server in servers]
        manager = MCPClientManager(StaticSource(specs), ManagerOptions(**options), observers)
        made.append(manager)
        return manager

    yield make
    for manager in made:
        manager.close()


@pytest.fixture
def recorder() -> Recorder:
    """Remembers what a manager tells its observers."""
    return Recorder()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Threads to call from: ``threads.submit(manager.call_tool, ...)``."""
    with ThreadPoolExecutor(32) as executor:
        yield executor
