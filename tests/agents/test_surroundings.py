"""What changes around a run: servers that die, tools that come and go, rights that are taken away."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from django.utils import timezone
from mcp.types import BlobResourceContents, CallToolResult, EmbeddedResource, ImageContent, TextContent
from pydantic_ai.messages import BinaryContent

from mcp_client_app import services
from mcp_client_app.agents.api import run_agent, start_agent
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import PermissionDeniedError, RunStateError, UnknownAgentError
from mcp_client_app.models import AgentConfig, AgentRun, AgentServer
from mcp_client_app.testing import fake_server
from tests.agents.conftest import at_rest
from tests.agents.scripts import asks, call, in_thread, says, scripted, tool_results
from tests.servers.model_apis import Call, ModelApi, Turn
from tests.servers.sdk_server import PNG
from tests.stored import peer_entry


def test_a_server_that_dies_is_told_the_model_and_the_run_goes_on(agent, add_mcp_server, calls):
    row = agent()
    server = add_mcp_server("frail", peer_entry("--scenario=die-on-call=7"))
    AgentServer.objects.create(agent=row, server=server)
    seen: list[Any] = []
    model = scripted(
        asks(call("frail__echo", text="x"), call("shop__price", article="tea")),
        asks(call("shop__price", article="salt")),
        says("Done."),
        seen=seen,
    )
    result = run_agent("clerk", "Go.", model=model)

    assert result.status is RunStatus.COMPLETED
    (_, failed, text), first, second = tool_results(seen[-1])
    assert failed == "failed"
    assert text.startswith("Error calling mcp tool frail__echo:")
    assert (first[2], second[2]) == ("tea costs 3", "salt costs 3")


def test_tools_that_come_and_go_show_in_the_next_round(agent, calls):
    row = agent()
    offered: list[set[str]] = []

    def change(messages, info):
        offered.append({tool.name for tool in info.function_tools})
        row.blocked_tools = ["order"]
        row.save()
        return asks(call("shop__price", article="tea"))

    def use(messages, info):
        offered.append({tool.name for tool in info.function_tools})
        return asks(call("shop__order", article="tea"))

    seen: list[Any] = []
    threaded = [in_thread(change), use, says("Done.")]
    run_agent("clerk", "Go.", model=scripted(*threaded, seen=seen))

    assert "shop__order" in offered[0]
    assert "shop__order" not in offered[1]
    assert calls == [("price", "tea")]
    assert tool_results(seen[-1])[-1][1] == "failed"


def test_without_any_tools_the_model_is_asked_all_the_same(transactional_db, mcp_manager):
    AgentConfig.objects.create(name="talker", model="scripted:test")
    with ModelApi([Turn("Hello.")], key="no-key") as api:
        AgentConfig.objects.update(model="openai:gpt-5", base_url=api.openai_url)
        assert run_agent("talker", "Hi.").text == "Hello."
        assert "tools" not in api.requests[0]


@pytest.fixture
def gallery(agent, add_mcp_server):
    """A tool that returns a text, an image, and something that no provider takes."""

    def show() -> CallToolResult:
        blob = base64.b64encode(b"\\0binary").decode()
        resource = BlobResourceContents(uri="file:///x.bin", mime_type="application/octet-stream", blob=blob)
        return CallToolResult(
            content=[
                TextContent(type="text", text="A pixel:"),
                ImageContent(type="image", data=base64.b64encode(PNG).decode(), mime_type="image/png"),
                EmbeddedResource(type="resource", resource=resource),
            ]
        )

    row = agent()
    server = add_mcp_server("gallery", fake_server("gallery", tools={"show": show}))
    AgentServer.objects.create(agent=row, server=server)


def test_images_are_parts_and_other_files_are_notes(gallery):
    seen: list[Any] = []
    run_agent("clerk", "Show.", model=scripted(asks(call("gallery__show")), says("Nice."), seen=seen))

    (part,) = [part for message in seen[-1] for part in message.parts if part.part_kind == "tool-return"]
    text, image, note = part.content
    assert text == "A pixel:"
    assert isinstance(image, BinaryContent)
    assert (image.data, image.media_type) == (PNG, "image/png")
    assert isinstance(note, str)
    assert base64.b64encode(b"\\0binary").decode() not in note


@pytest.mark.parametrize("model", ["anthropic:claude-new", "openai-chat:gpt-5", "openai-responses:gpt-5"])
def test_a_provider_takes_what_a_tool_returned(gallery, model):
    with ModelApi([Turn("", (Call("gallery__show"),)), Turn("Nice.")], key="no-key") as api:
        url = api.url if model.startswith("anthropic") else api.openai_url
        AgentConfig.objects.update(model=model, base_url=url)
        result = run_agent("clerk", "Show.")

    assert api.refusals == []
    assert result.text == "Nice."


def test_instructions_and_settings_reach_the_model(agent):
    agent(
        instructions="You serve {{ customer }} of {{ unknown }}, {{who}}.",
        model_settings={"temperature": 0.5},
    )
    seen: list[Any] = []

    def answer(messages, info):
        seen.append((info.instructions, dict(info.model_settings or {})))
        return says("Hello.")

    deps = {"customer": "Ada", "who": {"age": 7}}
    run_agent("clerk", "Hi.", deps=deps, model=scripted(answer))

    ((instructions, settings),) = seen
    assert instructions == 'You serve Ada of {{ unknown }}, {"age":7}.'
    assert settings["temperature"] == 0.5
    assert AgentRun.objects.get().deps == deps


def test_who_may_not_use_agents_starts_no_run(agent, make_user):
    agent()
    with pytest.raises(PermissionDeniedError):
        run_agent("clerk", "Go.", user=make_user(), model=scripted(says("never")))
    with pytest.raises(UnknownAgentError):
        run_agent("nobody", "Go.", model=scripted(says("never")))
    assert not AgentRun.objects.exists()


def test_a_run_is_its_users(agent, make_user, calls):
    agent()
    user = make_user("run_agentconfig", "call_tool")
    result = run_agent(
        "clerk", "Go.", user=user, model=scripted(asks(call("shop__price", article="tea")), says("3."))
    )

    assert result.text == "3."
    assert AgentRun.objects.get().user == user
    assert calls == [("price", "tea")]


def test_a_right_that_is_taken_away_meanwhile_counts(agent, make_user, settings, calls):
    agent(approval="always")
    settings.MCP_CLIENT_MODELS = {"scripted:test": "tests.agents.scripts.buyer"}
    user = make_user("run_agentconfig", "call_tool")
    result = run_agent("clerk", "Go.", user=user)
    user.user_permissions.clear()
    for approval in result.approvals:
        services.approve(approval)
    run = at_rest(result.run_id)

    assert (run.state, run.code) == (RunStatus.FAILED, "permission_denied")
    assert calls == []


def test_an_agent_that_is_disabled_meanwhile_ends_truthfully(agent, settings):
    agent(approval="always")
    settings.MCP_CLIENT_MODELS = {"scripted:test": "tests.agents.scripts.buyer"}
    result = run_agent("clerk", "Go.")
    AgentConfig.objects.update(enabled=False)
    for approval in result.approvals:
        services.approve(approval)
    run = at_rest(result.run_id)

    assert (run.state, run.code) == (RunStatus.FAILED, "unknown_agent")


def test_a_run_that_another_worker_has_taken_over_is_left_to_it(agent, calls):
    agent()

    def lose(messages, info):
        AgentRun.objects.update(lease_owner="another")
        return asks(call("shop__order", article="tea"))

    with pytest.raises(RunStateError):
        run_agent("clerk", "Go.", model=scripted(in_thread(lose), says("never")))
    run = AgentRun.objects.get()

    assert (run.state, run.lease_owner, run.text) == (RunStatus.RUNNING, "another", "")
    assert calls == []


def test_a_model_that_is_gone_fails_the_run(agent, settings):
    agent(model="nowhere:x")
    run = start_agent("clerk", "Go.")
    run = at_rest(run.pk)

    assert (run.state, run.code) == (RunStatus.FAILED, "configuration")
    assert "nowhere" in run.detail


def test_a_run_whose_user_is_gone_becomes_nobodys(agent, make_user, settings, calls):
    """Without a user it would have the rights of trusted code."""
    agent(approval="always")
    settings.MCP_CLIENT_MODELS = {"scripted:test": "tests.agents.scripts.buyer"}
    user = make_user("run_agentconfig", "call_tool")
    result = run_agent("clerk", "Go.", user=user)
    user.delete()
    for approval in result.approvals:
        services.approve(approval)
    run = at_rest(result.run_id)

    assert (run.state, run.code) == (RunStatus.FAILED, "permission_denied")
    assert "does not exist any more" in run.detail
    assert calls == []


def test_a_run_that_is_to_be_cancelled_does_not_begin_to_wait(agent, settings):
    agent(approval="always")
    settings.MCP_CLIENT_RUN_LEASE = 3000

    def cancel(messages, info):
        AgentRun.objects.update(cancel_requested_at=timezone.now())
        return asks(call("shop__order", article="tea"))

    result = run_agent("clerk", "Go.", model=scripted(in_thread(cancel)))

    assert result.status is RunStatus.CANCELLED
