"""The verb run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcp_client_app.agents.loop import close_agents_loop
from mcp_client_app.models import AgentConfig, AgentRun, AgentServer, Approval, ServerConfig, ToolCall
from tests.management.conftest import Run


@pytest.fixture
def clerk(workshop: Run, settings) -> Iterator[Run]:
    """Run the command where an agent without a network asks for one tool, then answers."""
    settings.MCP_CLIENT_MODELS = {"offline:test": "pydantic_ai.models.test.TestModel"}
    row = AgentConfig.objects.create(name="clerk", model="offline:test")
    server = ServerConfig.objects.get(name="workshop")
    AgentServer.objects.create(agent=row, server=server, allowed_tools=["echo"])
    yield workshop
    close_agents_loop()


def test_the_answer_goes_to_standard_output_and_what_happens_to_standard_error(clerk):
    outcome = clerk("run", "clerk", "Say something.")
    assert outcome.code == 0, outcome.err
    assert outcome.out == '{"workshop__echo":"a"}\n'
    assert 'calls workshop__echo {"text": "a"}' in outcome.err
    assert "ok: workshop__echo: a" in outcome.err
    assert [(call.agent, call.tool) for call in ToolCall.objects.all()] == [("clerk", "echo")]


def test_the_prompt_may_come_from_standard_input_and_machines_get_one_document(clerk):
    outcome = clerk("run", "clerk", "-", "--json", stdin="Say something.\n")
    run = AgentRun.objects.get()
    assert run.prompt == "Say something.\n"
    document = outcome.document
    assert document["usage"].pop("requests") == 2
    del document["usage"]
    assert document == {
        "run": str(run.pk),
        "agent": "clerk",
        "status": "completed",
        "code": "",
        "detail": "",
        "text": '{"workshop__echo":"a"}',
        "tool_rounds": 1,
        "approvals": [],
    }
    assert outcome.err == ""


def test_a_conversation_goes_on(clerk):
    first = clerk("run", "clerk", "Say something.", "--json").document
    assert clerk("run", "clerk", "And more.", "--continue", first["run"]).code == 0
    latest = AgentRun.objects.latest()
    said = str(latest.messages)
    assert "Say something." in said
    assert "And more." in said


def test_a_run_without_an_answer_says_why(clerk):
    AgentConfig.objects.update(max_rounds=1)
    AgentServer.objects.update(allowed_tools=["echo"], tool_approvals={"echo": "always"})
    outcome = clerk("run", "clerk", "Say something.")
    assert outcome.code == 3
    [approval] = Approval.objects.all()
    assert f"workshop__echo, {approval.pk}" in outcome.err or f"echo, {approval.pk}" in outcome.err
    assert "awaiting_approval" in outcome.err
    assert "in the admin or over REST" in outcome.err
    assert clerk("run", "clerk", "Again.", "--json").document["approvals"] != []


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("run", "nobody", "Hello."), "nobody"),
        (("run", "clerk", "  "), "The prompt is empty"),
        (("run", "clerk", "Hello.", "--deps", "{"), "--deps: this is no JSON"),
        (("run", "clerk", "Hello.", "--deps", "[]"), "--deps: give a JSON object"),
        (("run", "clerk", "Hello.", "--continue", "0b5b6e3a-0000-4000-8000-000000000000"), "There is no run"),
    ],
)
def test_what_has_to_be_changed_first_is_named(clerk, words, named):
    outcome = clerk(*words)
    assert outcome.code == 2
    assert named in outcome.err
    assert not AgentRun.objects.exists()
