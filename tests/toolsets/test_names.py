from __future__ import annotations

import random
import re

import pytest

from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.exceptions import AmbiguousToolError, UnknownToolError
from mcp_client_app.naming import public_tool_name
from mcp_client_app.toolsets import ToolNames

PUBLIC = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def names_of(*tools: tuple[str, str]) -> ToolNames:
    return ToolNames(ToolInfo(server=server, name=name) for server, name in tools)


def test_long_and_odd_names_are_unique_fit_for_providers_and_lead_back():
    chance = random.Random(5)
    letters = "ab./ _-äé検\n😀"
    tools = {
        (server, "".join(chance.choices(letters, k=chance.randint(1, 90))))
        for server in ("a", "A-b", "s" * 40)
        for _ in range(300)
    }
    # T05: their first 64 characters are the same.
    tools |= {("s" * 40, f"get_{'x' * 60}user"), ("s" * 40, f"get_{'x' * 60}users")}
    names = names_of(*sorted(tools))
    assert len(names) == len(tools)
    assert names.problems == []
    for tool in names:
        assert PUBLIC.match(tool.public_name)
        found = names.resolve(tool.public_name)
        assert (found.server, found.name) == (tool.server, tool.name)


def test_two_servers_may_have_tools_of_one_name():
    names = names_of(("a", "search"), ("b", "search"))
    assert names.public_names == ("a__search", "b__search")
    assert names.resolve("b__search").server == "b"


@pytest.mark.parametrize(
    "said", ["Files__Read_File", " files__read_file\n", "FILES__READ_FILE", "read_file", "Read_File "]
)
def test_case_and_white_space_do_not_matter_and_own_names_will_do(said: str):
    assert names_of(("files", "read_file"), ("web", "get")).resolve(said).name == "read_file"


def test_an_exact_name_wins_over_other_spellings():
    names = names_of(("a", "Get"), ("a", "get"), ("b", "other"))
    assert names.resolve("a__get").name == "get"
    assert names.resolve(" a__Get ").name == "Get"
    assert names.resolve("Get").name == "Get"
    with pytest.raises(AmbiguousToolError):
        names.resolve("A__GET")


def test_an_own_name_that_several_tools_have_is_ambiguous():
    with pytest.raises(AmbiguousToolError, match="a__search, b__search") as caught:
        names_of(("b", "search"), ("a", "search")).resolve("search")
    assert caught.value.candidates == ("a__search", "b__search")


@pytest.mark.parametrize(
    "said", ["nope", "multi_tool_use.parallel", "", "   ", None, 7, "x" * 100_000, "\0\n"]
)
def test_an_unknown_name_is_answered_by_the_valid_ones(said: object):
    with pytest.raises(UnknownToolError) as caught:
        names_of(("a", "search"), ("b", "read")).resolve(said)
    assert "Valid names: a__search, b__read." in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_near_miss_is_pointed_out():
    with pytest.raises(UnknownToolError, match="Did you mean a__search"):
        names_of(("a", "search"), ("b", "read")).resolve("a__serch")


def test_the_list_of_valid_names_is_bounded_and_says_so():
    with pytest.raises(UnknownToolError, match=r"and \d+ more\.") as caught:
        names_of(*(("server", f"tool_{number}") for number in range(1000))).resolve("nope")
    assert len(str(caught.value)) < 2500


def test_servers_that_could_not_be_asked_are_named():
    with pytest.raises(UnknownToolError, match="unavailable: down") as caught:
        names_of().resolve("down__search", unavailable=["down"])
    assert caught.value.unavailable == ("down",)
    assert "no tools at all" in str(caught.value)


def test_a_name_that_is_taken_costs_the_second_tool_and_is_told():
    taken = public_tool_name("a", "ä")  # a tool can be called as another one's name is made
    names = names_of(("a", "ä"), ("a", taken.removeprefix("a__")), ("a", "ä"))
    assert [tool.name for tool in names] == ["ä"]
    assert len(names.problems) == 1
    assert taken in names.problems[0]
