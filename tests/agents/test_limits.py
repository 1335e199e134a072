"""Limits, cancelling, and callers that go away: each run ends truthfully, with a history that can be used."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.db.models.signals import post_save
from django.utils import timezone
from pydantic_ai.messages import ModelResponse
from pydantic_ai.messages import TextPart as SaidPart
from pydantic_ai.usage import RequestUsage

from mcp_client_app import services
from mcp_client_app.agents.api import (
    acancel_agent_run,
    arun_agent,
    astart_agent,
    cancel_agent_run,
    run_agent,
    start_agent,
    stream_agent,
)
from mcp_client_app.agents.asked import Asked
from mcp_client_app.agents.executor import aexecute_run, submit_run_again
from mcp_client_app.agents.loop import close_agents_loop, get_agents_loop
from mcp_client_app.agents.toolset import RunToolset
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import AsyncContextError, BusyError, RunStateError
from mcp_client_app.models import AgentConfig, AgentRun, AgentServer
from mcp_client_app.testing import fake_server
from mcp_client_app.toolsets import RenderedResult, TextPart
from tests.agents.conftest import at_rest
from tests.agents.scripts import asks, call, in_thread, says, scripted
from tests.stored import close_connections


@pytest.fixture
def arrived() -> threading.Event:
    return threading.Event()


@pytest.fixture
def release() -> Any:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def waiter(agent, add_mcp_server, arrived, release, settings):
    """An agent with a tool that comes back when it may, and one that does at once."""

    def wait() -> str:
        arrived.set()
        release.wait(60)
        return "waited"

    row = agent("waiter", model="scripted:waiter")
    server = add_mcp_server("slow", fake_server("slow", tools={"wait": wait}))
    AgentServer.objects.create(agent=row, server=server)
    settings.MCP_CLIENT_MODELS = {"scripted:waiter": f"{__name__}.waiting"}
    return row


def waiting():
    return scripted(
        asks(call("shop__price", article="tea"), call("slow__wait"), text="I wait."), says("Done.")
    )


def is_usable(messages) -> bool:
    """Say whether the history may be continued: all calls have results."""
    result = run_agent("waiter", "And now?", history=messages, model=scripted(says("Fine.")))
    return result.text == "Fine."


def test_the_time_limit_ends_a_run(waiter):
    AgentConfig.objects.update(time_limit=0.3)
    result = run_agent("waiter", "Go.")

    assert (result.status, result.code) == (RunStatus.LIMIT_REACHED, "time_limit")
    assert "0.3 seconds" in result.detail
    AgentConfig.objects.update(time_limit=None)
    assert is_usable(result.messages)


def test_the_token_limit_ends_a_run(agent, calls):
    agent(token_limit=100)
    response = ModelResponse(
        parts=[SaidPart("Much."), call("shop__price", article="tea")],
        usage=RequestUsage(input_tokens=90, output_tokens=20),
    )

    def answer(messages, info):
        return response

    result = run_agent("clerk", "Go.", model=scripted(answer))

    # Scripted models count for themselves; what they count is what is held to the limit.
    assert (result.status, result.code) == (RunStatus.LIMIT_REACHED, "token_limit")
    assert result.text == "Much."
    assert calls == []


def test_a_run_is_cancelled_from_another_thread_at_once(waiter, arrived, settings):
    settings.MCP_CLIENT_RUN_LEASE = 3000  # only the process itself can be that fast
    run = start_agent("waiter", "Go.")
    assert arrived.wait(60)

    cancel_agent_run(run.pk)
    run = at_rest(run.pk)

    assert run.state is RunStatus.CANCELLED
    assert run.text == "I wait."
    assert is_usable(run.messages)


def test_another_process_cancels_by_the_row(waiter, arrived, settings):
    settings.MCP_CLIENT_RUN_LEASE = 1
    run = start_agent("waiter", "Go.")
    assert arrived.wait(60)

    services.cancel_run(run.pk)

    assert at_rest(run.pk).state is RunStatus.CANCELLED


async def test_a_caller_that_is_cancelled_cancels_the_run(waiter, arrived):
    task = asyncio.ensure_future(arun_agent("waiter", "Go."))
    assert await sync_to_async(arrived.wait, thread_sensitive=False)(60)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    run = await sync_to_async(lambda: at_rest(AgentRun.objects.get().pk))()

    assert run.state is RunStatus.CANCELLED
    assert "Nobody waited" in run.detail
    await close_connections()


async def test_a_caller_that_is_cancelled_before_the_run_begins_withdraws_it(waiter):
    loop = get_agents_loop()
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        go_on.wait(60)

    loop.call_soon(hold)  # nothing begins meanwhile
    assert await sync_to_async(held.wait, thread_sensitive=False)(60)
    stored = threading.Event()

    def tell(**kwargs):
        stored.set()

    post_save.connect(tell, sender=AgentRun)
    try:
        task = asyncio.ensure_future(arun_agent("waiter", "Go."))
        assert await sync_to_async(stored.wait, thread_sensitive=False)(60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    finally:
        post_save.disconnect(tell, sender=AgentRun)
        go_on.set()

    assert (await sync_to_async(AgentRun.objects.get)()).state is RunStatus.CANCELLED
    await close_connections()


async def test_a_caller_that_is_cancelled_while_a_run_is_started_leaves_no_half_of_it(waiter, arrived):
    stored, go_on = threading.Event(), threading.Event()

    def hold(**kwargs):
        stored.set()
        go_on.wait(60)

    post_save.connect(hold, sender=AgentRun)
    try:
        task = asyncio.ensure_future(astart_agent("waiter", "Go."))
        assert await sync_to_async(stored.wait, thread_sensitive=False)(60)
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    finally:
        post_save.disconnect(hold, sender=AgentRun)

    assert await sync_to_async(arrived.wait, thread_sensitive=False)(60)
    run = await sync_to_async(AgentRun.objects.get)()
    await acancel_agent_run(run.pk)
    assert (await sync_to_async(at_rest)(run.pk)).state is RunStatus.CANCELLED
    await close_connections()


def test_a_stream_that_is_not_read_to_its_end_is_cancelled(waiter, arrived):
    events = stream_agent("waiter", "Go.")
    assert next(events).kind == "run.started"
    assert arrived.wait(60)

    events.close()

    assert at_rest(AgentRun.objects.get().pk).state is RunStatus.CANCELLED


async def test_sync_verbs_name_their_twins_on_a_loop(transactional_db):
    with pytest.raises(AsyncContextError) as caught:
        run_agent("clerk", "Go.")
    assert "arun_agent" in str(caught.value)


def test_more_background_runs_than_allowed_are_busy(waiter, arrived, release, settings):
    settings.MCP_CLIENT_RUN_WORKERS = 1
    first = start_agent("waiter", "Go.")
    assert arrived.wait(60)

    with pytest.raises(BusyError):
        start_agent("waiter", "Go.")
    assert AgentRun.objects.count() == 1

    release.set()
    assert at_rest(first.pk).state is RunStatus.COMPLETED
    second = start_agent("waiter", "Go.")
    assert at_rest(second.pk).state is RunStatus.COMPLETED


def test_a_run_that_goes_on_while_all_places_are_taken_has_the_next_one(
    agent, waiter, arrived, release, settings
):
    agent("buyer", model="scripted:buyer", approval="always")
    settings.MCP_CLIENT_MODELS |= {"scripted:buyer": "tests.agents.scripts.buyer"}
    settings.MCP_CLIENT_RUN_WORKERS = 1
    waits = run_agent("buyer", "Buy tea.")
    busy = start_agent("waiter", "Go.")
    assert arrived.wait(60)
    for approval in waits.approvals:
        services.approve(approval)
    assert AgentRun.objects.get(pk=waits.run_id).state is RunStatus.QUEUED

    release.set()

    assert at_rest(busy.pk).state is RunStatus.COMPLETED
    assert at_rest(waits.run_id).state is RunStatus.COMPLETED


def test_a_process_that_ends_begins_no_run_that_waits_for_a_place(waiter, arrived, settings):
    settings.MCP_CLIENT_RUN_WORKERS = 1
    first = start_agent("waiter", "Go.")
    assert arrived.wait(60)
    waits = services.create_run("waiter", "Go.")
    with pytest.raises(BusyError):
        submit_run_again(str(waits.pk))

    close_agents_loop()

    assert not [each for each in threading.enumerate() if each.name.startswith("mcp-client-agents")]
    assert AgentRun.objects.get(pk=first.pk).state is RunStatus.RUNNING
    assert AgentRun.objects.get(pk=waits.pk).state is RunStatus.QUEUED


async def test_coroutines_start_and_cancel_runs_too(waiter, arrived):
    run = await astart_agent("waiter", "Go.")
    assert await sync_to_async(arrived.wait, thread_sensitive=False)(60)
    assert await aexecute_run(run.pk) is False

    await acancel_agent_run(run.pk)

    assert (await sync_to_async(at_rest)(run.pk)).state is RunStatus.CANCELLED
    await close_connections()


def test_no_call_is_begun_in_a_run_that_is_being_cancelled(agent, calls, settings):
    settings.MCP_CLIENT_RUN_LEASE = 3000  # nobody but the refused call finds out
    agent()

    def cancel(messages, info):
        AgentRun.objects.update(cancel_requested_at=timezone.now())
        return asks(call("shop__order", article="tea"))

    result = run_agent("clerk", "Go.", model=scripted(in_thread(cancel), says("never")))

    assert result.status is RunStatus.CANCELLED
    assert calls == []


@pytest.mark.parametrize(("limit", "most"), [(2, 2), (0, 8)])
async def test_no_more_calls_at_once_than_allowed(limit, most):
    inside = 0
    go_on = asyncio.Event()

    class Calls:
        async def make(self, asked: Asked) -> RenderedResult:
            nonlocal inside
            inside += 1
            await go_on.wait()
            return RenderedResult((TextPart("done"),))

    toolset = RunToolset(cast("Any", Calls()), parallel=limit, warn=lambda warnings: None)
    context = cast("Any", SimpleNamespace(tool_call_id="one", messages=[]))
    tasks = [
        asyncio.ensure_future(toolset.call_tool("shop__price", {}, context, cast("Any", None)))
        for _ in range(8)
    ]
    for _ in range(20):  # whatever can go on without the event has gone on then
        await asyncio.sleep(0)
    assert inside == most

    go_on.set()
    assert await asyncio.gather(*tasks) == ["done"] * 8


def test_the_limit_of_an_agent_counts(agent, monkeypatch):
    agent(max_parallel_calls=3)
    seen: list[int] = []
    make = RunToolset.__init__

    def note(self, calls, *, parallel, warn):
        seen.append(parallel)
        make(self, calls, parallel=parallel, warn=warn)

    monkeypatch.setattr(RunToolset, "__init__", note)
    run_agent("clerk", "Go.", model=scripted(says("Done.")))

    assert seen == [3]


def test_everything_ends_with_the_loop(waiter, arrived):
    start_agent("waiter", "Go.")
    assert arrived.wait(60)
    loop = get_agents_loop()

    loop.close()

    assert not loop.is_alive
    assert not [t.name for t in threading.enumerate() if t.name.startswith("mcp-client-agents")]


def test_an_open_transaction_is_told_and_not_waited_for(agent, settings):
    agent()
    settings.MCP_CLIENT_MODELS = {"scripted:test": f"{__name__}.waiting"}
    with transaction.atomic():
        with pytest.raises(RunStateError) as caught:
            run_agent("clerk", "Go.")
        with pytest.raises(RunStateError):
            stream_agent("clerk", "Go.")
    assert "transaction" in str(caught.value)
    assert not AgentRun.objects.exists()


def test_a_background_run_waits_for_the_commit(agent, settings, calls):
    agent("buyer", model="scripted:buyer")
    settings.MCP_CLIENT_MODELS = {"scripted:buyer": "tests.agents.scripts.buyer"}
    with transaction.atomic():
        run = start_agent("buyer", "Buy tea.")
        assert calls == []

    assert at_rest(run.pk).state is RunStatus.COMPLETED
