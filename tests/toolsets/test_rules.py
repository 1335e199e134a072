from __future__ import annotations

from typing import Any

import pytest

from mcp_client_app.datatypes import ToolFilter, ToolInfo
from mcp_client_app.exceptions import ConfigurationError, ToolBlockedError, UnknownToolError
from mcp_client_app.toolsets import ServerRules, ToolRules, ToolSelection, parse_filter, parse_fixed_arguments

TOOLS = [ToolInfo(server=server, name=name) for server in ("a", "b") for name in ("search", "read", "danger")]


def seen(rules: ToolRules) -> list[str]:
    """What the listing shows; the call path must agree tool by tool."""
    selection = ToolSelection(TOOLS, rules)
    for tool in TOOLS:
        if tool.public_name in selection.names:
            assert selection.prepare(tool.public_name).tool is tool
        else:
            with pytest.raises((ToolBlockedError, UnknownToolError)):
                selection.prepare(tool.public_name)
    return list(selection.names)


def test_null_is_all_and_an_empty_list_none_at_every_level():
    everything = [tool.public_name for tool in TOOLS]
    assert seen(ToolRules(all_servers=True)) == everything
    assert seen(ToolRules(all_servers=True, filter=ToolFilter(allowed=()))) == []
    for level in ("filter", "own_filter"):
        nothing: dict[str, Any] = {level: ToolFilter(allowed=())}
        assert seen(ToolRules(all_servers=True, servers={"a": ServerRules(**nothing)})) == everything[3:]


def test_servers_are_named_or_all():
    assert seen(ToolRules()) == []
    assert seen(ToolRules(servers={"B": ServerRules()})) == ["b__search", "b__read", "b__danger"]


def test_a_tool_has_to_pass_every_level():
    rules = ToolRules(
        filter=ToolFilter(allowed=("a__*", "search")),
        servers={"a": ServerRules(filter=ToolFilter(allowed=("read", "search"))), "b": ServerRules()},
    )
    assert seen(rules) == ["a__search", "a__read", "b__search"]


@pytest.mark.parametrize("level", ["agent", "agent-server", "server"])
@pytest.mark.parametrize("pattern", ["danger", " DANGER ", "a__danger", "A__Dang*", "*anger"])
def test_blocked_beats_allowed_at_every_level(level: str, pattern: str):
    both = ToolFilter(allowed=("danger", "a__danger", "*"), blocked=(pattern,))
    open_ = ToolFilter(allowed=("*",))
    rules = ToolRules(
        filter=both if level == "agent" else open_,
        servers={
            "a": ServerRules(
                filter=both if level == "agent-server" else open_,
                own_filter=both if level == "server" else open_,
            )
        },
    )
    assert seen(rules) == ["a__search", "a__read"]
    selection = ToolSelection(TOOLS, rules)
    for said in ("danger", "a__danger", "Danger", " a__DANGER\t", "A__danger"):  # D13
        with pytest.raises(ToolBlockedError) as caught:
            selection.prepare(said)
        assert caught.value.tool == "danger"


def test_a_tool_that_is_called_as_one_of_another_server_is_granted_nothing_of_it():
    rogue = ToolInfo(server="b", name="a__read")
    servers = {"a": ServerRules(), "b": ServerRules()}
    rules = ToolRules(
        servers=servers, filter=ToolFilter(allowed=("A__*",)), fixed_arguments={"a__read": {"token": "x"}}
    )
    assert ToolSelection([*TOOLS, rogue], rules).names == ("a__search", "a__read", "a__danger")
    assert rules.fixed_for(TOOLS[1]) == {"token": "x"}
    assert rules.fixed_for(rogue) == {}
    # What is blocked stays blocked, and what is said of its own server counts under its own name.
    assert not ToolRules(servers=servers, filter=ToolFilter(blocked=("a__*",))).allows(rogue)
    own = ServerRules(filter=ToolFilter(allowed=("a__read",)), fixed_arguments={"a__read": {"limit": 1}})
    assert ToolRules(servers={"b": own}).fixed_for(rogue) == {"limit": 1}
    assert ToolRules(servers={"b": own}, filter=ToolFilter(allowed=("a__*",))).allows(rogue)


def test_what_a_model_says_never_means_a_tool_that_is_called_as_one_of_another_server():
    rogue = ToolInfo(server="b", name="a__read")
    rules = ToolRules(servers={"a": ServerRules(), "b": ServerRules()})
    for tools in ([rogue], [*TOOLS[3:], rogue]):  # server a is away, or has lost the tool
        selection = ToolSelection(tools, rules)
        with pytest.raises(UnknownToolError):
            selection.find("A__read ")
        assert selection.find("b__a__read").tool is rogue
    assert ToolSelection([rogue], ToolRules(servers={"b": ServerRules()})).find("a__read").tool is rogue
    for unavailable in ((), ["a"]):
        selection = ToolSelection(
            [rogue], ToolRules(all_servers=True, servers={"b": ServerRules()}), unavailable
        )
        if unavailable:
            with pytest.raises(UnknownToolError):
                selection.find("a__read")
        else:
            assert selection.find("a__read").tool is rogue


def test_a_refusal_names_the_level():
    rules = ToolRules(filter=ToolFilter(blocked=("danger",)), servers={"a": ServerRules()})
    with pytest.raises(ToolBlockedError, match="by the agent's filter"):
        rules.check(TOOLS[2])
    rules = ToolRules(servers={"a": ServerRules(filter=ToolFilter(allowed=("read",)))})
    with pytest.raises(ToolBlockedError, match="filter for this server"):
        rules.check(TOOLS[2])


def test_the_name_that_was_asked_for_is_held_to_the_blocked_list():
    rules = ToolRules(filter=ToolFilter(blocked=("alias",)), all_servers=True)
    rules.check(TOOLS[0], "search")
    with pytest.raises(ToolBlockedError):
        rules.check(TOOLS[0], " Alias ")


def test_servers_that_the_agent_does_not_use_are_not_betrayed():
    selection = ToolSelection(TOOLS, ToolRules(servers={"a": ServerRules()}))
    with pytest.raises(UnknownToolError) as caught:
        selection.prepare("b__read")
    assert "b__read" not in str(caught.value).partition("Valid names")[2]
    # "read" alone means the only one that it can see.
    assert selection.prepare("read").tool.server == "a"


def test_filters_come_from_json():
    assert parse_filter(None, None) == ToolFilter()
    assert parse_filter([], []) == ToolFilter(allowed=())
    assert parse_filter(["a*"], ["b"]) == ToolFilter(allowed=("a*",), blocked=("b",))


@pytest.mark.parametrize("bad", ["search", {"search": True}, 7, True, [1], [None], [""], ["  "]])
def test_what_is_no_list_of_names_is_refused_by_its_field(bad: object):
    with pytest.raises(ConfigurationError) as caught:
        parse_filter(bad, None)
    assert caught.value.field == "allowed_tools"
    with pytest.raises(ConfigurationError) as caught:
        parse_filter(None, bad, where="servers.a.")
    assert caught.value.field == "servers.a.blocked_tools"


@pytest.mark.parametrize(
    "bad", [[], "x", {"t": 1}, {"t": None}, {1: {}}, {"t": {1: "secret"}}, {"t": ["secret"]}]
)
def test_fixed_arguments_of_another_shape_are_refused_without_their_values(bad: object):
    with pytest.raises(ConfigurationError, match="fixed_arguments") as caught:
        parse_fixed_arguments(bad)
    assert "secret" not in str(caught.value)


def test_fixed_arguments_come_from_json():
    assert parse_fixed_arguments(None) == {}
    assert parse_fixed_arguments({"t": {"a": 1}}) == {"t": {"a": 1}}
