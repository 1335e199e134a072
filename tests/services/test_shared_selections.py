"""What toolsets of the same rules share, and what they do not."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from django.db.models import QuerySet

from mcp_client_app import services
from mcp_client_app.datatypes import AgentServerSpec, ToolFilter, ToolInfo
from mcp_client_app.exceptions import PermissionDeniedError, ToolBlockedError
from mcp_client_app.models import AgentConfig, AgentServer, ServerConfig
from mcp_client_app.services.shared_selections import MOST, SharedSelections
from mcp_client_app.services.toolset import Toolset
from mcp_client_app.toolsets.expression import express
from mcp_client_app.toolsets.rules import ToolRules
from tests.services.toolsets import agent, code_of
from tests.stored import peer_entry, stored

stored_agents = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]


@contextmanager
def conversions() -> Iterator[Counter[str]]:
    """Count how often a schema is converted, while the block runs."""
    seen: Counter[str] = Counter()

    def watch(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code is express.__code__:
            seen["express"] += 1

    sys.setprofile(watch)
    try:
        yield seen
    finally:
        sys.setprofile(None)


class TestAgents:
    pytestmark = stored_agents

    def test_a_toolset_of_each_request_converts_nothing_anew(self, make_user):
        agent("clerk", stored("one"), stored("two"))
        first = services.get_toolset("clerk")
        with conversions() as made:
            listed = first.for_openai()
        assert made["express"] == len(listed.tools) > 1

        with conversions() as made:
            for user in (None, make_user("run_agentconfig"), make_user("run_agentconfig")):
                toolset = services.get_toolset("clerk", user)
                assert toolset.for_openai() == listed
                assert toolset.selection() is first.selection()
        assert made["express"] == 0

    def test_what_one_adds_to_its_list_no_other_one_has(self):
        agent("clerk", stored("peer"))
        listed = services.get_toolset("clerk").for_openai()

        listed.tools[0]["function"]["description"] = "mine"
        del listed.tools[1:]

        assert services.get_toolset("clerk").for_openai() != listed

    def test_who_may_is_asked_all_the_same(self, make_user):
        agent("clerk", stored("peer"))
        user = make_user("run_agentconfig")
        services.get_toolset("clerk", user).for_openai()

        toolset = services.get_toolset("clerk", make_user("run_agentconfig"))
        toolset.user.user_permissions.clear()
        for name in ("_perm_cache", "_user_perm_cache", "_group_perm_cache"):
            vars(toolset.user).pop(name, None)

        with pytest.raises(PermissionDeniedError):
            toolset.for_openai()

    def test_each_change_counts_at_once(self):
        row = agent("clerk", stored("peer"))
        services.get_toolset("clerk").for_openai()

        AgentServer.objects.get(agent=row).delete()
        AgentServer.objects.create(agent=row, server=ServerConfig.objects.get(), blocked_tools=["echo"])
        toolset = services.get_toolset("clerk")
        assert "peer__echo" not in toolset.selection().names
        assert code_of(toolset.answer("peer__echo", {"text": "x"})) == ToolBlockedError.code

        ServerConfig.objects.filter(name="peer").update(blocked_tools=["pid"])
        assert "peer__pid" not in services.get_toolset("clerk").selection().names
        AgentConfig.objects.filter(name="clerk").update(blocked_tools=["*"])
        assert services.get_toolset("clerk").selection().names == ()

    def test_fixed_arguments_that_python_takes_for_equal_are_not(self):
        row = agent("clerk", stored("peer"))
        chosen = AgentServer.objects.get(agent=row)

        for value in (True, 1, "1"):
            chosen.fixed_arguments = {"echo": {"text": value}}
            chosen.save()
            # As after a change that was rolled back: the number comes again.
            QuerySet(AgentConfig).update(revision=row.revision)
            selected = services.get_toolset("clerk").selection().find("peer__echo")
            assert repr(selected.fixed) == repr({"text": value})

    def test_a_server_that_is_away_is_missing_in_one_selection_alone(self):
        row = agent("clerk", stored("peer"))
        there = services.get_toolset("clerk").selection()
        AgentServer.objects.create(agent=row, server=stored("gone", "--scenario", "mute"))

        assert services.get_toolset("clerk").selection(wait=0).unavailable == ("gone",)
        assert there.unavailable == ()


class TestToolsetsOfCode:
    pytestmark = stored_agents

    def test_equal_rules_share(self):
        stored("peer")
        first = Toolset(["peer"], blocked_tools=["pid"]).selection()

        assert Toolset(["peer"], name="other", blocked_tools=["pid"]).selection() is first
        assert Toolset(["peer"]).selection() is not first

    def test_fixed_arguments_stay_their_makers(self):
        stored("peer")
        fixed = {"peer__echo": {"text": ["a"]}}
        first = Toolset(["peer"], fixed_arguments=fixed).selection()

        assert Toolset(["peer"], fixed_arguments=fixed).selection() is not first

    def test_lists_that_may_change_are_not_shared(self):
        stored("peer")
        spec = AgentServerSpec(name="peer", filter=ToolFilter(allowed=["echo"]))  # type: ignore[arg-type]

        first = Toolset([spec]).selection()

        assert first.names == ("peer__echo",)
        assert Toolset([spec]).selection() is not first

    def test_own_servers_are_seen_by_nobody_else(self):
        stored("peer")
        own = Toolset([{"name": "peer", **peer_entry()}])

        assert own.selection().names == Toolset(["peer"]).selection().names
        assert own.selection() is not Toolset(["peer"]).selection()
        own.disconnect()


def _tool(name: str) -> ToolInfo:
    return ToolInfo(server="shop", name=name)


def test_those_that_were_used_last_are_kept():
    shared, tools = SharedSelections(), (_tool("price"),)
    rules = [ToolRules(all_servers=True, filter=ToolFilter(blocked=(str(n),))) for n in range(MOST + 1)]

    first, *others = [shared.of(each, tools, is_stored=True) for each in rules[:MOST]]
    assert shared.of(rules[0], tools, is_stored=True) is first
    shared.of(rules[MOST], tools, is_stored=True)

    assert shared.of(rules[0], tools, is_stored=True) is first
    assert shared.of(rules[1], tools, is_stored=True) is not others[0]


def test_other_tools_under_the_same_rules_are_other_ones():
    shared, rules = SharedSelections(), ToolRules(all_servers=True)

    first = shared.of(rules, (_tool("price"),), is_stored=True)
    second = shared.of(rules, (_tool("order"),), is_stored=True)

    assert (first.names, second.names) == (("shop__price",), ("shop__order",))
