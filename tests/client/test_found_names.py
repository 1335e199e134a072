"""What a name meant is remembered, and never longer than it is true."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcp_client_app.client import pool as pools
from mcp_client_app.client.sources import StaticSource
from mcp_client_app.datatypes import ToolFilter
from mcp_client_app.exceptions import AmbiguousToolError, ToolBlockedError, UnknownServerError
from tests.client.conftest import MakeManager, MakePeer

NAMES = ["echo", "srv__echo"]


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_that_is_blocked_now_is_not_called_any_more(manage: MakeManager, peer: MakePeer, name: str):
    server = peer("srv")
    manager = manage(server)
    assert manager.call_tool(name, {"text": "before"}).text == "before"

    assert isinstance(manager.source, StaticSource)
    manager.source.replace([replace(server.spec, filter=ToolFilter(blocked=("echo",)))])

    with pytest.raises(ToolBlockedError):
        manager.call_tool(name, {"text": "after"})
    assert server.calls() == ["echo"]
    assert len(server.pids) == 1

    manager.source.replace([server.spec])
    assert manager.call_tool(name, {"text": "again"}).text == "again"


def test_a_bare_name_is_ambiguous_as_soon_as_a_second_server_offers_it(manage: MakeManager, peer: MakePeer):
    first, second = peer("first"), peer("second")
    manager = manage(first)
    assert manager.call_tool("echo", {"text": "a"}).server == "first"

    assert isinstance(manager.source, StaticSource)
    manager.source.replace([first.spec, second.spec])
    manager.connect("second")
    with pytest.raises(AmbiguousToolError):
        manager.call_tool("echo", {"text": "b"})

    manager.source.replace([second.spec])
    assert manager.call_tool("echo", {"text": "c"}).server == "second"


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_that_changed_is_the_changed_one(manage: MakeManager, peer: MakePeer, name: str):
    manager = manage(peer("srv", "list_changed"))
    manager.call_tool(name, {"text": "a"})
    assert "extra" not in manager.find_tool(name).input_schema["properties"]  # type: ignore[union-attr]

    manager.refresh("srv")

    assert "extra" in manager.find_tool(name).input_schema["properties"]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", NAMES)
def test_a_server_that_is_gone_is_not_asked(manage: MakeManager, peer: MakePeer, name: str):
    server = peer("srv")
    manager = manage(server)
    manager.call_tool(name, {"text": "a"})

    assert isinstance(manager.source, StaticSource)
    manager.source.replace([])

    with pytest.raises((UnknownServerError, LookupError)):
        manager.call_tool(name, {"text": "b"})
    assert server.calls() == ["echo"]
    engine = manager._engine
    assert engine is not None
    assert engine.pool._found == {}, "the spec of a server that is gone, and its secrets, would live on"


def test_no_more_names_are_remembered_than_a_fixed_number(manage: MakeManager, peer: MakePeer, monkeypatch):
    monkeypatch.setattr(pools, "MOST_FOUND", 3)
    manager = manage(peer("srv"))
    for blanks in range(8):
        assert manager.call_tool("srv__echo", {"text": "x"}, server="srv" + " " * blanks).text == "x"
    engine = manager._engine
    assert engine is not None
    assert len(engine.pool._found) <= 3
