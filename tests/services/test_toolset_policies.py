"""What a toolset refuses, it refuses before anything is sent: told by the server's own log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_client_app import services
from mcp_client_app.datatypes import AgentServerSpec, ApprovalPolicy, defer_input
from mcp_client_app.exceptions import (
    AmbiguousToolError,
    ApprovalError,
    ApprovalRequiredError,
    InputRequiredError,
    InvalidArgumentsError,
    MCPClientError,
    RunStateError,
    ToolBlockedError,
    UnknownToolError,
)
from mcp_client_app.models import AgentServer, Approval, ServerConfig, ToolCall
from mcp_client_app.services.toolset import Toolset
from tests.services.toolsets import agent, calls_seen, logging_peer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]

SPELLINGS = ["write", "peer__write", " write ", "WRITE", "Peer__Write", "peer__WRITE\t", "\npeer__write"]
ARGUMENTS = {"path": "/nowhere/at/all", "text": "x"}


# Filters ---------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "rule",
    [
        {"blocked_tools": ["write"]},
        {"blocked_tools": ["PEER__w*"]},
        {"allowed_tools": ["echo"]},
        {"allowed_tools": []},
    ],
    ids=["blocked", "glob", "not-allowed", "none-allowed"],
)
@pytest.mark.parametrize("level", ["server", "agent", "agent-server"])
def test_a_filter_holds_at_each_level_under_each_spelling(tmp_path, level, rule, spelling):
    server = logging_peer(tmp_path, **(rule if level == "server" else {}))
    row = agent("clerk", server, **(rule if level == "agent" else {}))
    if level == "agent-server":
        AgentServer.objects.filter(agent=row).update(**rule)
    toolset = services.get_toolset("clerk")

    assert "peer__write" not in toolset.selection().names
    with pytest.raises(ToolBlockedError):
        toolset.call_tool(spelling, ARGUMENTS)

    assert calls_seen(tmp_path) == []
    told = ToolCall.objects.get()
    assert (told.code, told.agent, told.is_error) == ("tool_blocked", "clerk", True)


def test_blocked_beats_allowed_between_levels(tmp_path):
    server = logging_peer(tmp_path, allowed_tools=["write", "echo"])
    row = agent("clerk", server, allowed_tools=["peer__write", "peer__echo"])
    AgentServer.objects.filter(agent=row).update(allowed_tools=["*"], blocked_tools=["write"])
    toolset = services.get_toolset("clerk")

    assert toolset.selection().names == ("peer__echo",)
    with pytest.raises(ToolBlockedError, match="filter for this server"):
        toolset.call_tool("write", ARGUMENTS)
    assert calls_seen(tmp_path) == []


def test_a_server_that_the_agent_does_not_use_is_unknown_to_it(tmp_path):
    logging_peer(tmp_path, name="other")
    toolset = Toolset([logging_peer(tmp_path).name])

    with pytest.raises(UnknownToolError) as caught:
        toolset.call_tool("other__echo", {"text": "x"})

    assert "other__echo" not in str(caught.value).partition("Valid names")[2]
    assert calls_seen(tmp_path, "other") == []


def test_two_servers_with_the_same_tool_are_told_apart(tmp_path):
    for name in ("one", "two"):
        logging_peer(tmp_path, name=name)
    toolset = Toolset(["one", "two"], allowed_tools=["echo"])

    assert toolset.selection().names == ("one__echo", "two__echo")  # L13
    assert toolset.call_tool("two__echo", {"text": "hello"}).text == "hello"
    with pytest.raises(AmbiguousToolError, match="one__echo, two__echo"):
        toolset.call_tool("echo", {"text": "hello"})
    assert (calls_seen(tmp_path, "one"), len(calls_seen(tmp_path, "two"))) == ([], 1)


@pytest.mark.parametrize("name", ["nope", "multi_tool_use.parallel", "peer__nope", "", "x" * 5000, None, 7])
def test_an_unknown_name_is_answered_with_the_valid_ones(tmp_path, name):
    logging_peer(tmp_path)
    outcome = Toolset(["peer"], allowed_tools=["echo", "pid"]).answer(name, {"text": "x"})

    assert outcome.is_error
    assert "peer__echo, peer__pid" in outcome.text  # L05
    assert len(outcome.text) < 1000
    assert calls_seen(tmp_path) == []


def test_what_an_operator_blocks_meanwhile_is_refused_by_the_next_call(tmp_path):
    server = logging_peer(tmp_path)
    row = agent("clerk", server)
    toolset = services.get_toolset("clerk")
    assert toolset.call_tool("echo", {"text": "x"}).text == "x"

    AgentServer.objects.get().delete()
    with pytest.raises(UnknownToolError):
        toolset.call_tool("echo", {"text": "x"})
    choice = AgentServer.objects.create(agent=row, server=server, blocked_tools=["echo"])
    with pytest.raises(ToolBlockedError):
        toolset.call_tool("echo", {"text": "x"})
    choice.blocked_tools = []
    choice.save()
    ServerConfig.objects.update(blocked_tools=["echo"])
    with pytest.raises(ToolBlockedError):
        toolset.call_tool("echo", {"text": "x"})

    assert len(calls_seen(tmp_path)) == 1


# Arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("{a:", "no valid JSON"),  # L01, L02
        ("[1]", "one JSON object"),
        ({}, '"text" is a required property'),
        ({"text": 7}, "text"),
        ('{"text": 7}', "text"),
    ],
)
def test_arguments_that_do_not_fit_are_not_sent(tmp_path, arguments, problem):
    logging_peer(tmp_path)
    toolset = Toolset(["peer"])

    with pytest.raises(InvalidArgumentsError, match="Nothing was called") as caught:
        toolset.call_tool("echo", arguments)

    assert problem in str(caught.value)
    assert '"text":{"type":"string"}' in str(caught.value)  # the schema, for the next try
    assert toolset.answer("echo", arguments).text.endswith(str(caught.value))
    assert calls_seen(tmp_path) == []
    assert {row.code for row in ToolCall.objects.all()} == {"invalid_arguments"}


def test_a_tool_without_required_arguments_is_not_called_for_bad_json(tmp_path):
    logging_peer(tmp_path)

    assert Toolset(["peer"]).answer("pid", "{not json").is_error
    assert calls_seen(tmp_path) == []


def test_arguments_may_be_sent_with_a_warning_instead(tmp_path):
    logging_peer(tmp_path)

    outcome = Toolset(["peer"], validation="warn").call_tool("echo", {"text": "x", "more": 1, "path": 7})
    assert outcome.warnings == ()
    outcome = Toolset(["peer"], validation="warn").call_tool("pid", {}, timeout=10)
    assert not outcome.is_error
    outcome = Toolset(["peer"], validation="warn").call_tool("echo", {"text": 7})

    assert "text" in outcome.warnings[0]
    assert calls_seen(tmp_path)[-1]["arguments"] == {"text": 7}


# Approval policies -----------------------------------------------------------------------


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(
    ("policy", "reads", "writes"),
    [
        ("never", None, None),
        ("writes", None, ApprovalRequiredError),
        ("always", ApprovalRequiredError, ApprovalRequiredError),
        ("deny", ToolBlockedError, ToolBlockedError),
    ],
)
def test_policies(tmp_path, policy, reads, writes, trusted):
    logging_peer(tmp_path, trust_annotations=trusted)
    toolset = Toolset(["peer"], approval=policy)
    if policy == "writes" and not trusted:
        reads = ApprovalRequiredError  # what the server says of itself counts for nothing

    for name, arguments, refusal in (("pid", {}, reads), ("write", ARGUMENTS, writes)):
        before = len(calls_seen(tmp_path))
        if refusal is None:
            toolset.call_tool(name, arguments)
        else:
            with pytest.raises(refusal):
                toolset.call_tool(name, arguments)
        assert len(calls_seen(tmp_path)) - before == (refusal is None)


def test_policies_of_single_tools_win(tmp_path):
    logging_peer(tmp_path)
    toolset = Toolset(
        [
            AgentServerSpec(
                name="peer",
                approval=ApprovalPolicy.ALWAYS,
                tool_approvals={"pi*": ApprovalPolicy.NEVER, "big": ApprovalPolicy.DENY},
            )
        ],
        tool_approvals={"echo": "never", "pid": "deny"},
    )

    assert not toolset.call_tool("pid").is_error
    assert toolset.call_tool("echo", {"text": "x"}).text == "x"
    with pytest.raises(ToolBlockedError, match="approval policy"):
        toolset.call_tool("big", {"bytes": 3})
    with pytest.raises(ApprovalRequiredError):
        toolset.call_tool("cwd")
    assert [call["name"] for call in calls_seen(tmp_path)] == ["pid", "echo"]


def test_what_waits_for_a_person_is_made_once_with_the_approval(tmp_path, make_user):
    logging_peer(tmp_path)
    user = make_user("call_tool")
    toolset = Toolset(["peer"], name="clerk", approval="always", user=user)

    with pytest.raises(ApprovalRequiredError) as caught:
        toolset.call_tool("echo", {"text": "hello"})
    asked = caught.value
    assert (asked.server, asked.tool) == ("peer", "echo")
    with pytest.raises(ApprovalError) as pending:
        toolset.call_tool("echo", {"text": "hello"}, approval=asked.approval)
    assert pending.value.reason == "pending"
    assert calls_seen(tmp_path) == []

    services.approve(str(asked.approval), user=None)
    with pytest.raises(ApprovalError):
        toolset.call_tool("echo", {"text": "other"}, approval=asked.approval)
    assert toolset.call_tool("echo", {"text": "hello"}, approval=asked.approval).text == "hello"
    with pytest.raises(ApprovalError):
        toolset.call_tool("echo", {"text": "hello"}, approval=asked.approval)

    assert len(calls_seen(tmp_path)) == 1
    codes = list(ToolCall.objects.order_by("pk").values_list("code", flat=True))
    assert codes == ["approval_required", "approval_invalid", "approval_invalid", "ok", "approval_invalid"]


def test_what_a_person_has_edited_is_sent_with_the_fixed_arguments(tmp_path):
    logging_peer(tmp_path)
    path = str(tmp_path / "notes")
    toolset = Toolset(["peer"], approval="always", fixed_arguments={"write": {"path": path}})
    with pytest.raises(ApprovalRequiredError) as caught:
        toolset.call_tool("write", {"text": "hello"})
    assert path not in str(Approval.objects.values())

    services.approve(str(caught.value.approval), user=None, arguments={"text": "good day"})
    toolset.call_tool("write", {"text": "hello"}, approval=caught.value.approval)

    assert calls_seen(tmp_path)[0]["arguments"] == {"path": path, "text": "good day"}


def test_an_approval_does_not_open_what_is_blocked_or_denied_meanwhile(tmp_path):
    server = logging_peer(tmp_path)
    row = agent("clerk", server, approval="always")
    toolset = services.get_toolset("clerk")
    with pytest.raises(ApprovalRequiredError) as caught:
        toolset.call_tool("echo", {"text": "x"})
    services.approve(str(caught.value.approval), user=None)

    for change in ({"approval": "deny"}, {"approval": "always", "blocked_tools": ["echo"]}):
        for field, value in change.items():
            setattr(row, field, value)
        row.save()
        with pytest.raises(ToolBlockedError):
            toolset.call_tool("echo", {"text": "x"}, approval=caught.value.approval)

    assert calls_seen(tmp_path) == []
    assert Approval.objects.get().status == Approval.Status.APPROVED


def test_a_call_that_goes_on_with_answers_needs_an_approval_as_well(tmp_path):
    ask = {
        "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    asked = {"who": {"method": "elicitation/create", "params": ask}}
    script = json.dumps({"": {"inputRequests": asked, "requestState": "s1"}})
    logging_peer(tmp_path, "--era", "2026-07-28", "--scenario", f"asks={script}")
    toolset, given = Toolset(["peer"], name="clerk", approval="always"), {"text": "x"}
    with pytest.raises(ApprovalRequiredError) as caught:
        toolset.call_tool("echo", given)
    services.approve(str(caught.value.approval), user=None)
    with pytest.raises(InputRequiredError) as question:
        toolset.call_tool(
            "echo", given, approval=caught.value.approval, on_input={"elicitation": defer_input}
        )
    (request,) = question.value.requests
    answers: dict[str, Any] = {
        "input_responses": {"who": request.accept({"name": "Ada"})},
        "request_state": question.value.request_state,
    }

    with pytest.raises(ApprovalRequiredError):
        toolset.call_tool("echo", given, **answers)
    with pytest.raises(ApprovalError):
        toolset.call_tool("echo", given, approval=caught.value.approval, **answers)
    assert len(calls_seen(tmp_path)) == 1

    tool = toolset.selection().find("echo").tool
    kept = services.request_input("clerk", question.value, given, tool=tool, user=None)
    services.answer_input(kept.pk, responses={"who": {"action": "accept", "content": {"name": "Ada"}}})
    assert '"name": "Ada"' in toolset.call_tool("echo", given, approval=kept.pk, **answers).text


# The journal -----------------------------------------------------------------------------


class Journal:
    """Writes down what it is told, and refuses if it is to."""

    def __init__(self, refusal: MCPClientError | None = None) -> None:
        self.refusal = refusal
        self.entries: list[tuple[Any, ...]] = []

    def begin(self, call, *, is_safe):
        self.entries.append(("begin", call.tool.name, call.given, is_safe))
        if self.refusal is not None:
            raise self.refusal

    def end(self, call, result, error):
        self.entries.append(("end", call.tool.name, result and result.text, error and error.code))


def test_a_journal_is_told_before_and_after(tmp_path):
    logging_peer(tmp_path, trust_annotations=True)
    toolset, journal = Toolset(["peer"], fixed_arguments={"echo": {"text": "fixed"}}), Journal()

    toolset.call_tool("echo", {}, journal=journal)
    toolset.call_tool("write", ARGUMENTS, journal=journal)
    with pytest.raises(MCPClientError):
        toolset.call_tool("hang", journal=journal, timeout=0.01)
    with pytest.raises(UnknownToolError):
        toolset.call_tool("nope", journal=journal)

    assert journal.entries[:2] == [("begin", "echo", {}, True), ("end", "echo", "fixed", None)]
    assert journal.entries[2] == ("begin", "write", ARGUMENTS, False)
    assert journal.entries[3][2].startswith("Error calling mcp tool peer__write")
    assert journal.entries[4:] == [("begin", "hang", {}, True), ("end", "hang", None, "timeout")]


def test_a_journal_that_refuses_stops_the_call_and_leaves_the_approval(tmp_path):
    logging_peer(tmp_path)
    toolset, journal = Toolset(["peer"], approval="always"), Journal(RunStateError("lost"))
    with pytest.raises(ApprovalRequiredError) as caught:
        toolset.call_tool("echo", {"text": "x"})
    services.approve(str(caught.value.approval), user=None)

    with pytest.raises(RunStateError, match="lost"):
        toolset.answer("echo", {"text": "x"}, approval=caught.value.approval, journal=journal)

    assert calls_seen(tmp_path) == []
    assert [entry[0] for entry in journal.entries] == ["begin"]
    assert Approval.objects.get().status == Approval.Status.APPROVED
