"""The verbs: an agent is run, watched while it runs, or begun in the background.

Each has an async twin; both hand over to the process's one agents' loop. Every run has its row.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.db import transaction

from mcp_client_app.agents.executor import drive_here
from mcp_client_app.agents.handles import cancel_here
from mcp_client_app.agents.loop import get_agents_loop
from mcp_client_app.agents.requirements import load, require_model
from mcp_client_app.agents.result import AgentResult
from mcp_client_app.agents.streams import RunEvent, aread, read
from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import MCPClientError, RunStateError
from mcp_client_app.models import AgentRun
from mcp_client_app.services import run_submission, runs
from mcp_client_app.services.agents import agent_spec
from mcp_client_app.services.approvals import approval_state
from mcp_client_app.services.run_feed import feed
from mcp_client_app.services.run_rows import database

if TYPE_CHECKING:
    from pydantic_ai.models import Model

__all__ = [
    "acancel_agent_run",
    "arun_agent",
    "astart_agent",
    "astream_agent",
    "cancel_agent_run",
    "new_run",
    "run_agent",
    "start_agent",
    "stream_agent",
]


def run_agent(
    name: str,
    prompt: str,
    *,
    history: Sequence[Any] | None = None,
    user: Any = None,
    deps: Any = None,
    model: Model | None = None,
    correlation_id: str | None = None,
) -> AgentResult:
    """Run an agent and wait until it comes to rest.

    It may end without an answer: look at ``status``. If it waits for people, it goes on in the
    background once they have decided.

    Args:
        name: The agent.
        prompt: What the user says.
        history: ``messages`` of an earlier result, which this run continues.
        user: On whose behalf; None for trusted code.
        deps: JSON values of yours; instructions refer to them as ``{{ name }}``.
        model: A model of pydantic-ai in place of the agent's own, such as one for tests. It is not stored:
            a run that has waited for people goes on with the agent's own.
        correlation_id: Ties the run and its calls to a request of yours.

    Raises:
        UnknownAgentError: There is no such agent, it is disabled, or it is not for this user.
        PermissionDeniedError: The user may not use agents.
        ConfigurationError: The agent has no model, or pydantic-ai is not installed.
        InvalidHistoryError: The history is none.
        RunStateError: The history ends where people have to decide something, or a transaction is open.
    """
    forbid_running_loop("run_agent")
    run = _committed_run(
        name, prompt, history=history, user=user, deps=deps, model=model, correlation_id=correlation_id
    )
    loop = get_agents_loop()
    loop.run(lambda: drive_here(run.pk, loop, model=model))
    return _result(run.pk)


async def arun_agent(
    name: str,
    prompt: str,
    *,
    history: Sequence[Any] | None = None,
    user: Any = None,
    deps: Any = None,
    model: Model | None = None,
    correlation_id: str | None = None,
) -> AgentResult:
    """Async twin of ``run_agent``; cancelling it cancels the run."""
    run = await _acommitted_run(
        name, prompt, history=history, user=user, deps=deps, model=model, correlation_id=correlation_id
    )
    loop = get_agents_loop()
    try:
        await loop.arun(lambda: drive_here(run.pk, loop, model=model))
    except asyncio.CancelledError:
        await asyncio.shield(sync_to_async(_withdraw)(run))
        raise
    return await sync_to_async(_result)(run.pk)


def stream_agent(
    name: str,
    prompt: str,
    *,
    history: Sequence[Any] | None = None,
    user: Any = None,
    deps: Any = None,
    model: Model | None = None,
    correlation_id: str | None = None,
) -> Generator[RunEvent, None, None]:
    """Run an agent and yield what happens, until it comes to rest. Who stops reading cancels the run.

    Args and errors are those of ``run_agent``. The last event is ``run.completed``, ``run.limit``,
    ``run.failed``, ``run.cancelled`` or ``run.paused``.
    """
    forbid_running_loop("stream_agent")
    run = _committed_run(
        name, prompt, history=history, user=user, deps=deps, model=model, correlation_id=correlation_id
    )
    return _told(run, model)


def _told(run: AgentRun, model: Model | None) -> Generator[RunEvent, None, None]:
    with feed.watch(run.pk) as watch:
        is_over = False
        try:
            _drive_live(run, model)
            for event in read(run.pk, watch):
                is_over = event.is_last
                yield event
        finally:
            if not is_over:
                _leave(run)


async def astream_agent(
    name: str,
    prompt: str,
    *,
    history: Sequence[Any] | None = None,
    user: Any = None,
    deps: Any = None,
    model: Model | None = None,
    correlation_id: str | None = None,
) -> AsyncGenerator[RunEvent, None]:
    """Async twin of ``stream_agent``."""
    run = await _acommitted_run(
        name, prompt, history=history, user=user, deps=deps, model=model, correlation_id=correlation_id
    )
    with feed.watch(run.pk) as watch:
        is_over = False
        try:
            _drive_live(run, model)
            async for event in aread(run.pk, watch):
                is_over = event.is_last
                yield event
        finally:
            if not is_over:
                await asyncio.shield(sync_to_async(_leave)(run))


def start_agent(
    name: str,
    prompt: str,
    *,
    history: Sequence[Any] | None = None,
    user: Any = None,
    deps: Any = None,
    correlation_id: str | None = None,
) -> AgentRun:
    """Have an agent run in the background, where ``MCP_CLIENT_RUN_BACKEND`` says; returns its row at once.

    Raises:
        BusyError: This process executes as many runs as it may.
        MCPClientError: As for ``run_agent``.
    """
    forbid_running_loop("start_agent")
    run = new_run(name, prompt, history=history, user=user, deps=deps, correlation_id=correlation_id)
    run_submission.submit(run)
    return run


async def astart_agent(
    name: str,
    prompt: str,
    *,
    history: Sequence[Any] | None = None,
    user: Any = None,
    deps: Any = None,
    correlation_id: str | None = None,
) -> AgentRun:
    """Async twin of ``start_agent``; if this is cancelled meanwhile, the run is begun all the same."""
    # In one piece: a run that was stored and not submitted would be found dead.
    return await sync_to_async(start_agent)(
        name, prompt, history=history, user=user, deps=deps, correlation_id=correlation_id
    )


def cancel_agent_run(run_id: object, *, user: Any = None) -> AgentRun:
    """End a run, wherever it is executed; see ``services.cancel_run``. In this process that takes no time."""
    forbid_running_loop("cancel_agent_run")
    run = runs.cancel_run(run_id, user=user)
    cancel_here(str(run.pk))
    return run


acancel_agent_run = sync_to_async(cancel_agent_run)


def new_run(
    name: str,
    prompt: str,
    *,
    history: Sequence[Any] | None = None,
    user: Any = None,
    deps: Any = None,
    model: Model | None = None,
    correlation_id: str | None = None,
) -> AgentRun:
    """Store a run that is still to be executed or submitted, unless it is clear already that it cannot be.

    Args and errors are those of ``run_agent``.
    """
    known = load("history").given_history(history)
    spec = agent_spec(name, user=user)
    if model is None:
        require_model(spec)
    return runs.create_run(
        spec.name, prompt, user=user, history=known, deps=deps, correlation_id=correlation_id
    )


def _committed_run(name: str, prompt: str, **options: Any) -> AgentRun:
    """Store a run that is executed now, on connections of other threads.

    Raises:
        RunStateError: They could not see it.
    """
    if transaction.get_connection(using=database()).in_atomic_block:
        raise RunStateError(
            "An agent sees what is committed, and a transaction is open here: run it outside of "
            "transaction.atomic() (tests: TransactionTestCase), or start it in the background."
        )
    return new_run(name, prompt, **options)


async def _acommitted_run(name: str, prompt: str, **options: Any) -> AgentRun:
    """Do the same; if this is cancelled meanwhile, no run is left."""
    stored = asyncio.ensure_future(sync_to_async(_committed_run)(name, prompt, **options))
    try:
        return await asyncio.shield(stored)
    except asyncio.CancelledError:
        await sync_to_async(_withdraw)(await stored)
        raise


def _drive_live(run: AgentRun, model: Model | None) -> None:
    loop = get_agents_loop()
    loop.spawn(lambda: drive_here(run.pk, loop, model=model, live=True))


def _leave(run: AgentRun) -> None:
    """Cancel a run that was watched, and is watched no more."""
    with contextlib.suppress(MCPClientError):  # it is over already
        cancel_agent_run(run.pk)


def _withdraw(run: AgentRun) -> None:
    """Cancel a run that was not begun yet; one that was ends by itself."""
    if runs.get_run(run.pk).state is RunStatus.QUEUED:
        _leave(run)


def _result(run_id: Any) -> AgentResult:
    run = runs.get_run(run_id)
    pending = approval_state(run_id).pending if run.state.is_paused else ()
    return AgentResult.of(run, tuple(str(each.pk) for each in pending))
