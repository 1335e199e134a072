"""Runs that are cancelled or refused at awkward moments: none is left behind, none begins after all."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from pydantic_ai.models.function import FunctionModel

from mcp_client_app.agents import runner
from mcp_client_app.agents.api import arun_agent, cancel_agent_run, new_run, start_agent
from mcp_client_app.agents.executor import submit_run
from mcp_client_app.agents.loop import get_agents_loop
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import BusyError
from mcp_client_app.models import AgentConfig, AgentRun
from mcp_client_app.services import run_leases
from tests.agents.conftest import at_rest
from tests.agents.scripts import says, scripted
from tests.stored import close_connections


@pytest.fixture
def clerk(agent: Any, settings: Any) -> AgentConfig:
    settings.MCP_CLIENT_RUN_LEASE = 3000  # nothing is settled for want of a worker meanwhile
    settings.MCP_CLIENT_MODELS = {"scripted:test": f"{__name__}.speaker"}
    row: AgentConfig = agent("clerk")
    return row


def speaker() -> Any:
    return scripted(says("Done."))


class Held:
    """Something that has been reached, and goes on when it may."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.may_go_on = threading.Event()

    def hold(self) -> None:
        self.reached.set()
        assert self.may_go_on.wait(60)


@pytest.fixture
def held() -> Any:
    held = Held()
    yield held
    held.may_go_on.set()


@pytest.fixture
def claiming(held: Held, monkeypatch: pytest.MonkeyPatch) -> Held:
    """Runs are claimed, and their worker hears of it when it may."""
    claim = run_leases.claim

    def claim_slowly(*args: Any) -> Any:
        run = claim(*args)
        held.hold()
        return run

    monkeypatch.setattr(runner, "claim", claim_slowly)
    return held


async def _cancelled_while(held: Held, run: Any) -> AgentRun:
    """Cancel who waits for a run, while its worker is held; return what becomes of the run."""
    task = asyncio.ensure_future(run)
    assert await sync_to_async(held.reached.wait, thread_sensitive=False)(60)
    task.cancel()
    while not task.cancelled():
        await asyncio.sleep(0)
        # Behind the order to cancel.
        get_agents_loop().call_soon(held.may_go_on.set)
        await asyncio.wait([task], timeout=0)
    return await sync_to_async(lambda: at_rest(AgentRun.objects.get().pk))()


async def test_a_caller_that_is_cancelled_while_the_run_is_claimed_cancels_it(clerk, claiming):
    run = await _cancelled_while(claiming, arun_agent("clerk", "Go."))

    assert run.state is RunStatus.CANCELLED
    assert "Nobody waited" in run.detail
    await close_connections()


async def test_a_caller_that_is_cancelled_while_the_end_is_written_down_loses_nothing(
    clerk, held, monkeypatch
):
    async def answer(messages: Any, info: Any) -> Any:
        # The thread that is to write the end down has something else to do first.
        before.append(asyncio.ensure_future(sync_to_async(held.may_go_on.wait)(60)))
        return says("Done.")

    async def finish(self: Any, *args: Any, **options: Any) -> None:
        held.reached.set()
        await write(self, *args, **options)

    before: list[Any] = []
    write = runner._Drive._finish
    monkeypatch.setattr(runner._Drive, "_finish", finish)

    run = await _cancelled_while(held, arun_agent("clerk", "Go.", model=FunctionModel(answer)))

    assert (run.state, run.text) == (RunStatus.COMPLETED, "Done.")
    await close_connections()


def test_a_run_that_is_cancelled_when_it_was_just_claimed_ends_at_once(clerk, claiming):
    run = start_agent("clerk", "Go.")
    assert claiming.reached.wait(60)

    cancel_agent_run(run.pk)
    claiming.may_go_on.set()

    assert at_rest(run.pk).state is RunStatus.CANCELLED


def test_an_order_that_was_refused_is_not_begun_later(clerk, claiming, settings):
    settings.MCP_CLIENT_RUN_WORKERS = 1
    first = start_agent("clerk", "Go.")
    assert claiming.reached.wait(60)
    refused = new_run("clerk", "Go.")

    with pytest.raises(BusyError):
        submit_run(str(refused.pk))
    claiming.may_go_on.set()
    at_rest(first.pk)
    settings.MCP_CLIENT_RUN_WORKERS = 3
    at_rest(start_agent("clerk", "Go.").pk)

    refused.refresh_from_db()
    assert refused.state is RunStatus.QUEUED
