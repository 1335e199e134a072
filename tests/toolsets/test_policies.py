"""What an agent says about single tools: the most particular word counts."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from mcp_client_app.datatypes import (
    AgentServerSpec,
    AgentSpec,
    ApprovalPolicy,
    ToolAnnotations,
    ToolFilter,
    ToolInfo,
)
from mcp_client_app.toolsets import ToolSelection
from mcp_client_app.toolsets.policies import (
    is_harmless,
    needs_approval,
    policy_for,
    result_limit_for,
    rules_of,
)

NEVER, WRITES, ALWAYS, DENY = ApprovalPolicy
TOOL = ToolInfo(server="Files", name="read_file")


def spec(server: dict[str, Any] | None = None, **fields: Any) -> AgentSpec:
    return AgentSpec(name="clerk", servers=(AgentServerSpec(name="files", **(server or {})),), **fields)


@pytest.mark.parametrize(
    ("server", "agent", "policy"),
    [
        ({}, {}, NEVER),
        ({}, {"approval": WRITES}, WRITES),
        ({"approval": NEVER}, {"approval": ALWAYS}, NEVER),
        ({"approval": ALWAYS}, {"tool_approvals": {"read_file": NEVER}}, NEVER),
        ({"tool_approvals": {"read*": DENY}}, {"tool_approvals": {"read_file": NEVER}}, DENY),
        ({"tool_approvals": {" READ_FILE ": ALWAYS}}, {}, ALWAYS),
        ({"tool_approvals": {"files__read_file": ALWAYS}}, {}, ALWAYS),
        ({"tool_approvals": {"write*": DENY}}, {"approval": WRITES}, WRITES),
        # Of several patterns the strictest, unless one is the tool's name.
        ({"tool_approvals": {"*": NEVER, "read*": WRITES, "*file": ALWAYS}}, {}, ALWAYS),
        ({"tool_approvals": {"*": DENY, "read_file": NEVER}}, {}, NEVER),
        ({"tool_approvals": {"Read_File": NEVER, "FILES__read_file": DENY}}, {}, DENY),
    ],
)
def test_the_policy_of_a_tool(server: dict[str, Any], agent: dict[str, Any], policy: ApprovalPolicy):
    assert policy_for(TOOL, spec(server, **agent)) is policy


@pytest.mark.parametrize("every", [True, False])
def test_a_server_gives_its_tools_no_policy_of_another_one_by_their_names(every: bool):
    rogue = ToolInfo(server="b", name="files__read_all")
    said = {"files__read_*": NEVER}
    found = policy_for(rogue, spec(all_servers=every, approval=ALWAYS, tool_approvals=said))
    assert found is ALWAYS
    assert policy_for(TOOL, spec(all_servers=every, approval=ALWAYS, tool_approvals=said)) is NEVER


def test_the_policy_of_a_tool_of_another_server_is_the_agents():
    other = ToolInfo(server="other", name="read_file")
    assert policy_for(other, spec({"approval": DENY}, all_servers=True, approval=WRITES)) is WRITES


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("read_only", [True, False, None])
def test_only_trusted_annotations_spare_an_approval(read_only: bool | None, trusted: bool):
    tool = ToolInfo(server="a", name="b", annotations=ToolAnnotations(read_only=read_only))

    assert needs_approval(tool, WRITES, trusted=trusted) is not (read_only is True and trusted)
    assert not needs_approval(tool, NEVER, trusted=trusted)
    assert needs_approval(tool, ALWAYS, trusted=trusted)


@pytest.mark.parametrize(
    ("annotations", "harmless"),
    [({}, False), ({"read_only": True}, True), ({"idempotent": True}, True), ({"destructive": False}, False)],
)
def test_only_trusted_annotations_make_a_repetition_harmless(annotations: dict[str, Any], harmless: bool):
    tool = ToolInfo(server="a", name="b", annotations=ToolAnnotations(**annotations))

    assert is_harmless(tool, trusted=True) is harmless
    assert not is_harmless(tool, trusted=False)


@pytest.mark.parametrize(
    ("server", "limit"),
    [
        ({}, 500),
        ({"result_limit": 300}, 300),
        ({"result_limit": 300, "result_limits": {"read*": 200}}, 200),
        ({"result_limits": {"read*": 200, "read_file": 400}}, 400),
        ({"result_limits": {"*": 100, "read*": 200}}, 200),
        ({"result_limits": {"write": 100}}, 500),
    ],
)
def test_the_limit_of_a_result(server: dict[str, Any], limit: int):
    assert result_limit_for(TOOL, spec(server, result_limit=500)) == limit


def test_the_servers_own_filters_are_part_of_the_rules():
    tools = [ToolInfo(server=server, name=name) for server in ("Files", "web") for name in ("get", "put")]
    own = {"Files": ToolFilter(blocked=("put",)), "web": ToolFilter(allowed=("put",))}

    named = ToolSelection(tools, rules_of(spec(), own))
    every = ToolSelection(tools, rules_of(spec(all_servers=True), own))

    assert named.names == ("Files__get",)
    assert every.names == ("Files__get", "web__put")


def test_a_selection_keeps_its_tools_when_others_are_missing():
    tools = [ToolInfo(server="files", name="get")]
    first = ToolSelection(tools, rules_of(spec(), {}), {"web": "next try in 3 s"})
    second = first.with_unavailable({"web": "next try in 2 s", "more": "down"})

    assert (first.unavailable, first.reasons) == (("web",), {"web": "next try in 3 s"})
    assert (second.unavailable, second.reasons["more"]) == (("web", "more"), "down")
    assert next(iter(second)) is next(iter(first))
    assert ToolSelection(tools, rules_of(spec(), {}), ["web"]).reasons == {}


def test_lists_for_providers_are_made_once_and_may_be_added_to():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    selection = ToolSelection(
        [ToolInfo(server="files", name="get", input_schema=schema)], rules_of(spec(), {})
    )

    for make in (
        selection.for_openai,
        lambda: selection.for_openai(api="responses"),
        selection.for_anthropic,
        selection.for_mcp,
    ):
        first = make()
        pristine = copy.deepcopy(first.tools)
        first.tools[0]["cache_control"] = {"type": "ephemeral"}
        first.tools[0].get("function", {})["strict"] = True
        first.tools.append({})
        assert make().tools == pristine
        assert make().warnings is first.warnings
