"""Listing through the manager: what servers get wrong, pages, changes, many servers at once."""

from __future__ import annotations

from functools import partial

import pytest

from mcp_client_app.datatypes import StrictOptions
from mcp_client_app.exceptions import (
    ConfigurationError,
    InvalidArgumentsError,
    ProtocolError,
    UnknownToolError,
)
from tests.client.conftest import MakeManager, MakePeer
from tests.client.linking import LINKS
from tests.client.peers import FAULTY, Recorder, stdio_spec
from tests.servers import payloads


@pytest.fixture(params=LINKS)
def manage(request: pytest.FixtureRequest, manage: MakeManager) -> MakeManager:
    """Make managers with one link and then with the other."""
    return partial(manage, default_link=request.param)


# One server --------------------------------------------------------------------------


def test_tools_come_with_all_that_the_server_says(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv"))
    tool = next(tool for tool in manager.list_tools("srv") if tool.name == "add")
    assert tool.server == "srv"
    assert tool.public_name == "srv__add"
    assert tool.description == "Adds two numbers."
    assert tool.input_schema == payloads.TOOLS[1]["inputSchema"]
    assert tool.output_schema == payloads.TOOLS[1]["outputSchema"]
    assert (tool.annotations.read_only, tool.annotations.destructive) == (True, False)


def test_one_bad_tool_does_not_hide_the_good_ones(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "bad_tools"))
    names = [tool.name for tool in manager.list_tools("srv")]
    kept = ["output_id_only", "output_array", "output_string", "type_typo", "recursive"]
    named = ["a.b/c", "naïve", "検索", "t" * 200, "description_number", "annotations_list"]
    assert names == ["echo", *kept, *named]
    status = manager.status("srv")
    assert status.is_ready
    told = "\n".join(status.warnings)
    for name in ("schema_missing", "schema_null", "schema_empty", "schema_type_null", "schema_list"):
        assert name in told
    assert "outputSchema is unusable" in told
    assert "'echo' twice" in told
    assert manager.find_tool("echo").description == payloads.GOOD_TOOL["description"]  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", sorted(set(payloads.BAD_TOOLS) - {"type_typo", "recursive"}))
def test_each_kind_of_bad_tool_leaves_the_good_one_and_is_told(
    manage: MakeManager, peer: MakePeer, kind: str
):
    manager = manage(peer("srv", f"bad_tools={kind}", mode="legacy"))
    assert manager.list_tools("srv")[0].name == "echo"
    fit = {"name_dots", "name_accent", "name_kanji", "name_long"}
    assert bool(manager.status("srv").warnings) is (kind not in fit)


def test_odd_names_are_called_by_their_public_names(manage: MakeManager, peer: MakePeer):
    server = peer("srv", "bad_tools=name_kanji")
    manager = manage(server)
    tool = manager.list_tools("srv")[1]
    assert tool.name == "検索"
    assert tool.public_name.isascii()
    with pytest.raises(InvalidArgumentsError, match="Unknown tool"):
        manager.call_tool(tool.public_name)
    assert server.calls() == ["検索"]


def test_a_listing_that_is_no_list_is_empty(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "bad_listing=null"))
    assert manager.list_tools("srv") == []
    assert "tools was no list" in manager.status("srv").warnings


def test_broken_contracts_are_refused_if_that_is_asked_for(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "bad_tools", strict=StrictOptions(contract_errors=True)))
    manager.connect("srv")
    assert manager.list_tools("srv") == []
    assert "broke the contract of 'tools/list'" in manager.status("srv").warnings[0]


def test_a_refused_listing_is_told_and_leaves_the_server_usable(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "error_on_list=-32603"))
    assert manager.list_tools("srv") == []
    assert "tools/list failed" in manager.status("srv").warnings[0]
    with pytest.raises(UnknownToolError):
        manager.call_tool("srv__echo", {"text": "hi"})


def test_all_pages_are_read(manage: MakeManager, peer: MakePeer):
    server = peer("srv", "three_pages")
    assert [tool.name for tool in manage(server).list_tools("srv")] == ["echo", "add", "sleep"]
    assert server.methods().count("tools/list") == 3


@pytest.mark.parametrize("scenario", ["endless_cursor", "cycling_cursor"])
def test_a_listing_without_end_is_stopped_early(manage: MakeManager, peer: MakePeer, scenario: str):
    server = peer("srv", scenario)
    manager = manage(server)
    assert [tool.name for tool in manager.list_tools("srv")] == ["echo"]
    assert server.methods().count("tools/list") <= 3
    assert any("never came to an end" in warning for warning in manager.status("srv").warnings)


def test_pages_are_limited(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "three_pages"), max_pages=2)
    assert [tool.name for tool in manager.list_tools("srv")] == ["echo", "add"]
    assert "after 2 entries" in manager.status("srv").warnings[0]


def test_items_are_limited(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv"), max_items=5)
    assert len(manager.list_tools("srv")) == 5


def test_tools_are_asked_for_although_they_are_not_advertised(manage: MakeManager, peer: MakePeer):
    assert len(manage(peer("srv", "no_capabilities")).list_tools("srv")) == len(payloads.TOOLS)


def test_tools_that_are_not_advertised_are_left_alone_if_that_is_asked_for(
    manage: MakeManager, peer: MakePeer
):
    server = peer("srv", "no_capabilities", strict=StrictOptions(tools_capability=True))
    assert manage(server).list_tools("srv") == []
    assert "tools/list" not in server.methods()


def test_lists_that_are_not_advertised_are_not_asked_for(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)
    assert manager.list_resources("srv") == []
    assert manager.list_prompts("srv") == []
    assert "resources/list" not in server.methods()


# Changes -----------------------------------------------------------------------------


@pytest.mark.parametrize("modern", [False, True])
def test_a_changed_list_is_read_again_once_for_many_changes(
    manage: MakeManager, peer: MakePeer, recorder: Recorder, modern: bool
):
    server = peer("srv", "list_changed", modern=modern)
    manager = manage(server, observers=[recorder])
    manager.connect("srv")
    if modern:
        server.wait_for("subscriptions/listen")
    before = server.methods().count("tools/list")
    for _ in range(5):
        manager.call_tool("srv__echo", {"text": "hi", "extra": "x"})
    recorder.wait_for(lambda: recorder.catalogues[-1].tools == len(payloads.TOOLS) + 5)
    assert server.methods().count("tools/list") - before <= 2
    assert "added_5" in [tool.name for tool in manager.list_tools("srv")]
    assert "extra" in manager.find_tool("echo").input_schema["properties"]  # type: ignore[union-attr]


def test_refresh_reads_the_list_now(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)
    manager.list_tools("srv")
    manager.list_tools("srv")
    assert server.methods().count("tools/list") == 1
    manager.list_tools("srv", refresh=True)
    manager.refresh("srv")
    assert server.methods().count("tools/list") == 3


def test_a_tool_that_came_unannounced_is_found_by_one_more_reading(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    manager = manage(server)
    manager.connect("srv")
    with pytest.raises(UnknownToolError, match="'srv' offers no tool 'newcomer'"):
        manager.call_tool("srv__newcomer")
    assert server.methods().count("tools/list") == 2
    assert server.calls() == []


# Many servers ------------------------------------------------------------------------


def test_what_can_be_listed_is_listed_and_the_rest_explained(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("good"), peer("dead", "exit_at_start=3"), peer("also"))
    listing = manager.listing("tools")
    assert {tool.server for tool in listing.items} == {"good", "also"}
    assert list(listing.errors) == ["dead"]
    assert listing.errors["dead"].code == "server_crashed"
    assert {tool.server for tool in manager.list_tools()} == {"good", "also"}


def test_a_server_that_is_still_connecting_is_waited_for_only_so_long(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("good"), peer("slow", "mute"))
    manager.connect("good")
    listing = manager.listing("tools", wait=0.2)
    assert {tool.server for tool in listing.items} == {"good"}
    assert "still connecting" in str(listing.errors["slow"])


def test_with_no_time_to_wait_nothing_is_connected(manage: MakeManager, peer: MakePeer):
    server = peer("srv")
    listing = manage(server).listing("tools", wait=0)
    assert listing.items == ()
    assert listing.errors["srv"].code == "server_unavailable"
    assert server.pids == []


def test_a_server_with_a_broken_configuration_is_listed_as_an_error(manage: MakeManager):
    manager = manage(stdio_spec("broken", FAULTY, link="no.such.Link"))
    assert manager.listing("tools").errors["broken"].code == "configuration"
    with pytest.raises(ConfigurationError, match="could not be loaded"):
        manager.list_tools("broken")


def test_a_refused_handshake_is_listed_as_an_error(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "error_on_initialize"))
    assert isinstance(manager.listing("tools").errors["srv"], ProtocolError)
