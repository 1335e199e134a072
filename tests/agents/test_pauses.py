"""Runs that wait for people: what is asked, what is done meanwhile, and how they go on."""

from __future__ import annotations

import json

import pytest

from mcp_client_app import services
from mcp_client_app.agents.api import run_agent
from mcp_client_app.agents.executor import execute_run
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import ApprovalError, RunStateError
from mcp_client_app.models import AgentConfig, AgentEvent, AgentRun, AgentServer
from mcp_client_app.signals import approval_requested
from tests.agents.conftest import at_rest
from tests.stored import peer_entry

ASK = {
    "method": "elicitation/create",
    "params": {
        "message": "Which key?",
        "requestedSchema": {"type": "object", "properties": {"key": {"type": "string"}}},
    },
}


@pytest.fixture
def buyer(agent, settings):
    """An agent whose orders need approval, and whose prices do not."""
    settings.MCP_CLIENT_MODELS = {"scripted:buyer": "tests.agents.scripts.buyer"}
    row = agent("buyer", model="scripted:buyer")
    AgentServer.objects.filter(agent=row).update(tool_approvals={"order": "always"})
    return row


def kinds(run_id):
    return list(AgentEvent.objects.filter(run_id=run_id).order_by("number").values_list("kind", flat=True))


def test_a_call_that_needs_approval_waits_and_the_others_are_made(buyer, calls):
    result = run_agent("buyer", "Buy tea.")

    assert result.status is RunStatus.AWAITING_APPROVAL
    assert calls == [("price", "tea")]
    (approval,) = services.list_approvals()
    assert result.approvals == (str(approval.pk),)
    assert (approval.tool, approval.arguments, approval.call_id) == (
        "order",
        {"article": "tea", "count": 2},
        "o1",
    )
    (event,) = AgentEvent.objects.filter(run__pk=result.run_id, kind="approval.required")
    assert [asked["id"] for asked in event.data["approvals"]] == [str(approval.pk)]
    assert kinds(result.run_id)[-1] == "run.paused"


def test_an_approved_call_is_made_once_and_nothing_else_again(buyer, calls):
    result = run_agent("buyer", "Buy tea.")
    services.approve(result.approvals[0])
    run = at_rest(result.run_id)

    assert run.state is RunStatus.COMPLETED
    assert run.text == "tea costs 3 / 2 tea ordered"
    assert calls == [("price", "tea"), ("order", ("tea", 2))]
    told = kinds(result.run_id)
    assert told.count("tool.call") == 2
    assert told.count("tool.result") == 2
    assert told.count("round") == 1
    assert run.tool_rounds == 1
    numbers = list(AgentEvent.objects.filter(run=run).order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_denied_call_is_not_made_and_the_model_knows_why(buyer, calls):
    result = run_agent("buyer", "Buy tea.")
    services.deny(result.approvals[0], reason="too dear")
    run = at_rest(result.run_id)

    assert run.state is RunStatus.COMPLETED
    assert "denied by a person: too dear" in run.text
    assert calls == [("price", "tea")]


def test_edited_arguments_are_sent_and_the_model_is_told(buyer, calls):
    result = run_agent("buyer", "Buy tea.")
    services.approve(result.approvals[0], arguments={"article": "tea", "count": 1})
    run = at_rest(result.run_id)

    assert calls[-1] == ("order", ("tea", 1))
    assert "1 tea ordered" in run.text
    assert "changed the arguments" in run.text


def test_a_run_that_waits_cannot_be_executed(buyer, calls):
    result = run_agent("buyer", "Buy tea.")

    assert execute_run(result.run_id) is False
    assert AgentRun.objects.get().state is RunStatus.AWAITING_APPROVAL
    assert calls == [("price", "tea")]


def test_a_run_goes_on_once(buyer, calls):
    result = run_agent("buyer", "Buy tea.")
    services.approve(result.approvals[0])
    at_rest(result.run_id)

    with pytest.raises(ApprovalError):
        services.approve(result.approvals[0])
    assert execute_run(result.run_id) is False
    assert calls == [("price", "tea"), ("order", ("tea", 2))]


def test_a_new_prompt_does_not_drop_what_waits(buyer, calls):
    result = run_agent("buyer", "Buy tea.")

    with pytest.raises(RunStateError) as caught:
        run_agent("buyer", "Never mind.", history=result.messages)
    assert "wait for people" in str(caught.value)
    assert AgentRun.objects.count() == 1


def test_people_who_are_faster_than_the_run_are_heard(buyer, calls):
    """The decision is there before the run has begun to wait for it."""

    def decide(approval, **kwargs):
        services.approve(approval.pk)

    approval_requested.connect(decide)
    try:
        result = run_agent("buyer", "Buy tea.")
    finally:
        approval_requested.disconnect(decide)
    run = at_rest(result.run_id)

    assert run.state is RunStatus.COMPLETED
    assert calls == [("price", "tea"), ("order", ("tea", 2))]


@pytest.fixture
def asker(transactional_db, add_mcp_server, settings):
    """An agent with a server that asks for a key in each call."""
    settings.MCP_CLIENT_MODELS = {"scripted:asker": "tests.agents.scripts.asker"}
    script = {"": {"inputRequests": {"key": ASK}, "requestState": "opaque"}}
    server = add_mcp_server("safe", peer_entry(f"--scenario=asks={json.dumps(script)}", "--era=2026-07-28"))
    row = AgentConfig.objects.create(name="asker", model="scripted:asker")
    AgentServer.objects.create(agent=row, server=server)
    return row


def test_a_server_that_asks_has_the_run_wait_and_go_on_with_the_answer(asker):
    result = run_agent("asker", "Go.")

    assert result.status is RunStatus.AWAITING_INPUT
    (event,) = AgentEvent.objects.filter(run__pk=result.run_id, kind="input.required")
    (asked,) = event.data["inputs"]
    assert asked["requests"]["key"]["params"]["message"] == "Which key?"
    services.answer_input(
        result.approvals[0], responses={"key": {"action": "accept", "content": {"key": "k"}}}
    )
    run = at_rest(result.run_id)

    assert run.state is RunStatus.COMPLETED
    answered = json.loads(run.text)
    assert answered["inputResponses"] == {"key": {"action": "accept", "content": {"key": "k"}}}
    assert answered["requestState"] == "opaque"


def test_declining_is_an_answer_too(asker):
    result = run_agent("asker", "Go.")
    services.answer_input(result.approvals[0], responses={"key": {"action": "decline"}})
    run = at_rest(result.run_id)

    assert json.loads(run.text)["inputResponses"] == {"key": {"action": "decline"}}


def test_a_call_that_needs_approval_and_then_asks_waits_twice(asker):
    AgentServer.objects.update(approval="always")
    result = run_agent("asker", "Go.")
    assert result.status is RunStatus.AWAITING_APPROVAL

    services.approve(result.approvals[0])
    run = at_rest(result.run_id, RunStatus.AWAITING_INPUT)
    (question,) = services.list_approvals(run=run, status="pending")
    services.answer_input(question.pk, responses={"key": {"action": "cancel"}})
    run = at_rest(result.run_id)

    assert run.state is RunStatus.COMPLETED
    assert json.loads(run.text)["inputResponses"] == {"key": {"action": "cancel"}}
