"""Which tool a name means, and the filters: what is blocked is never sent, by whatever name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcp_client_app.client.sources import StaticSource
from mcp_client_app.datatypes import ToolFilter
from mcp_client_app.exceptions import (
    AmbiguousToolError,
    BadToolNameError,
    MCPClientError,
    ToolBlockedError,
    UnknownServerError,
    UnknownToolError,
)
from tests.client.conftest import MakeManager, MakePeer

VARIANTS = [
    "write",
    "WRITE",
    "Write",
    " write ",
    "write\u00a0",
    "srv__write",
    "SRV__write",
    "srv__WRITE",
    " srv__write ",
]


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize(
    "tool_filter",
    [
        ToolFilter(blocked=("write",)),
        ToolFilter(blocked=("W*",)),
        ToolFilter(blocked=("srv__write",)),
        ToolFilter(allowed=("write", "echo"), blocked=(" WRITE ",)),
        ToolFilter(allowed=("echo",)),
        ToolFilter(allowed=()),
    ],
    ids=["name", "glob", "public-name", "beats-allowed", "not-allowed", "none-allowed"],
)
def test_a_blocked_tool_is_not_called_by_any_variant_of_its_name(
    manage: MakeManager, peer: MakePeer, name: str, tool_filter: ToolFilter
):
    """D13: nothing reaches the server."""
    server = peer("srv", filter=tool_filter, mode="legacy")
    manager = manage(server)
    arguments = {"path": str(server.directory / "written"), "text": "x"}
    manager.connect("srv")
    for owner in (None, "srv"):
        with pytest.raises(MCPClientError) as caught:
            manager.call_tool(name, arguments, server=owner)
        assert caught.value.code in ("tool_blocked", "unknown_tool")
    assert server.calls() == []
    assert not (server.directory / "written").exists()


def test_a_blocked_tool_says_so_and_nothing_is_even_connected(manage: MakeManager, peer: MakePeer):
    """D13."""
    server = peer("srv", filter=ToolFilter(blocked=("write",)))
    manager = manage(server)
    with pytest.raises(ToolBlockedError, match="'write' of 'srv' is blocked") as caught:
        manager.call_tool("write", server="srv")
    assert caught.value.tool == "write"
    assert server.pids == []


def test_the_filter_also_hides(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", filter=ToolFilter(allowed=("e*", "add"), blocked=("env",))))
    assert [tool.name for tool in manager.list_tools("srv")] == ["echo", "add"]
    assert manager.status("srv").tools == 2
    assert manager.find_tool("srv__env") is None


@pytest.mark.parametrize("name", ["echo", "srv__echo"])
@pytest.mark.parametrize("pattern", ["echo", "e*", "srv__echo", "SRV__E*"])
def test_an_allowed_tool_can_be_called_by_either_name(
    manage: MakeManager, peer: MakePeer, pattern: str, name: str
):
    manager = manage(peer("srv", filter=ToolFilter(allowed=(pattern,))))
    assert manager.call_tool(name, {"text": "hi"}, server="srv").text == "hi"
    with pytest.raises(ToolBlockedError):
        manager.call_tool("srv__add", {"a": 1, "b": 2})


def test_a_tool_with_an_odd_name_is_allowed_by_its_own_name(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "bad_tools=name_dots", filter=ToolFilter(allowed=("a.b/c",))))
    (tool,) = manager.list_tools("srv")
    assert manager.find_tool(tool.public_name) == tool


def test_a_tool_with_an_odd_name_is_blocked_by_either_name(manage: MakeManager, peer: MakePeer):
    server = peer("srv", "bad_tools=name_dots")
    manager = manage(server)
    public_name = manager.list_tools("srv")[1].public_name
    source = manager.source
    assert isinstance(source, StaticSource)
    for pattern in ("a.b/c", public_name, "a.b*"):
        source.replace([replace(server.spec, filter=ToolFilter(blocked=(pattern,)))])
        for name in ("a.b/c", public_name):
            with pytest.raises(ToolBlockedError):
                manager.call_tool(name, server="srv")
    assert server.calls() == []


def test_a_changed_filter_keeps_the_process_and_holds_at_once(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)
    manager.connect("srv")
    source = manager.source
    assert isinstance(source, StaticSource)
    source.replace([replace(server.spec, revision=2, filter=ToolFilter(blocked=("echo",)))])
    with pytest.raises(ToolBlockedError):
        manager.call_tool("srv__echo", {"text": "hi"})
    assert "echo" not in [tool.name for tool in manager.list_tools("srv")]
    source.replace([server.spec])
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"
    assert len(server.pids) == 1


# Which tool a name means -------------------------------------------------------------


def test_a_bare_name_works_while_it_is_unique(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("one", "bad_tools=name_kanji"), peer("two"))
    assert manager.call_tool("pid").text == str(manager.status("two").pid)
    with pytest.raises(AmbiguousToolError, match="one__echo, two__echo") as caught:
        manager.call_tool("echo", {"text": "hi"})
    assert caught.value.candidates == ("one__echo", "two__echo")
    assert manager.call_tool("echo", {"text": "hi"}, server="two").server == "two"
    assert manager.call_tool("one__echo", {"text": "hi"}).server == "one"
    assert manager.find_tool("echo") is None


def test_a_filter_can_make_a_bare_name_unique(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("one", filter=ToolFilter(blocked=("echo",))), peer("two"))
    assert manager.call_tool("echo", {"text": "hi"}).server == "two"


def test_a_bare_name_that_only_filters_forbid_is_blocked(manage: MakeManager, peer: MakePeer):
    server = peer("srv", filter=ToolFilter(blocked=("write",)))
    manager = manage(server)
    manager.connect("srv")
    with pytest.raises(ToolBlockedError):
        manager.call_tool("write", {"path": "x", "text": "y"})
    assert server.calls() == []


def test_an_unknown_name_tells_which_servers_could_not_be_asked(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("good"), peer("dead", "exit_at_start=1"))
    with pytest.raises(UnknownToolError, match="could not be asked: dead") as caught:
        manager.call_tool("nonsense")
    assert caught.value.unavailable == ("dead",)


def test_a_name_with_an_unknown_server_is_an_unknown_tool(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv"))
    with pytest.raises(UnknownToolError):
        manager.call_tool("other__echo", {"text": "hi"})
    with pytest.raises(UnknownServerError, match="no server 'other'"):
        manager.call_tool("echo", {"text": "hi"}, server="other")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\0b", "x" * 600, 7, None])
def test_what_cannot_be_a_name_is_refused_before_anything_is_sent(
    manage: MakeManager, peer: MakePeer, name: object
):
    server = peer("srv")
    manager = manage(server)
    with pytest.raises(BadToolNameError):
        manager.call_tool(name)  # type: ignore[call-overload]
    with pytest.raises(BadToolNameError):
        manager.call_tool(name, server="srv")  # type: ignore[call-overload]
    assert server.pids == []


def test_the_public_name_of_every_tool_leads_back_to_it(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "bad_tools"))
    for tool in manager.list_tools("srv"):
        found = manager.find_tool(tool.public_name)
        assert found is not None
        assert found.name == tool.name
