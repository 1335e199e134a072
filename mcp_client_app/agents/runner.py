"""Drives one run to where it comes to rest: its end, or a question to people.

The rows are the whole state. Each response of the model is written down before any of its calls
is made; whoever goes on acts on the last one again, and the ledger keeps calls from being made twice.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
import uuid
from collections.abc import AsyncIterable, Coroutine
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from pydantic import TypeAdapter
from pydantic_ai import Agent, CancellationToken, RunContext, capture_run_messages
from pydantic_ai.capabilities import Hooks
from pydantic_ai.messages import (
    AgentStreamEvent,
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage, UsageLimits

from mcp_client_app.agents import history
from mcp_client_app.agents.calls import RunCalls
from mcp_client_app.agents.endings import CANCELLED, Ending, RoundsUsedUpError, ending_of, require_whole
from mcp_client_app.agents.handles import RunHandle, handles
from mcp_client_app.agents.instructions import fill_in
from mcp_client_app.agents.loop import AgentsLoop
from mcp_client_app.agents.models import model_for
from mcp_client_app.agents.responses import ordered
from mcp_client_app.agents.telling import Telling
from mcp_client_app.agents.toolset import RunToolset
from mcp_client_app.agents.waiting import waiting_for
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import AgentSpec, RunStatus
from mcp_client_app.exceptions import PermissionDeniedError, RunStateError
from mcp_client_app.models import AgentRun
from mcp_client_app.services.run_feed import feed
from mcp_client_app.services.run_leases import checkpoint, claim, finish, pause, renew
from mcp_client_app.services.run_rows import parsed_id
from mcp_client_app.services.toolset import aget_toolset

logger = logging.getLogger(__name__)

__all__ = ["drive"]

MOST_WARNINGS = 1000
"""So many are remembered as told."""

T = TypeVar("T")
_USAGE = TypeAdapter(RunUsage)


async def drive(run_id: object, loop: AgentsLoop, *, model: Model | None = None, live: bool = False) -> bool:
    """Execute a run, or go on with it; on the agents' loop. Returns False if it is not to be had.

    Args:
        run_id: The run: queued, or given up by its worker.
        loop: The loop that this runs on.
        model: Another model than the agent's.
        live: Tell pieces of text as they come to whoever listens in this process; so it is if somebody does.

    Raises:
        RunStateError: Another worker has taken the run over meanwhile.
    """
    owner = f"{socket.gethostname()[:40]}:{os.getpid()}:{uuid.uuid4().hex}"
    token = CancellationToken()
    handle, key = RunHandle(token.cancel), str(parsed_id(run_id))
    handles.add(key, handle)  # before the run is claimed: whoever cancels it then finds it
    try:
        run = await _whole(sync_to_async(_claimed)(run_id, owner))
        if run is None:
            return False
        live = live or feed.has_listeners(run.pk)
        beating = asyncio.ensure_future(_beat(run.pk, owner, handle))
        try:
            await _Drive(run, owner, loop, handle, token, model=model, live=live).go()
        finally:
            beating.cancel()
    finally:
        handles.drop(key, handle)
    return True


async def _whole(work: Coroutine[Any, Any, T]) -> T:
    """Await what must not be done by half: being cancelled meanwhile counts afterwards."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        result = await task  # at the end of the loop that is cancelled as well
        this = asyncio.current_task()
        assert this is not None
        this.cancel()
        return result


def _claimed(run_id: object, owner: str) -> AgentRun | None:
    run = claim(run_id, owner)
    if run is not None and run.user_id is not None:
        _ = run.user  # read here: the loop reads no rows
    return run


async def _beat(run_id: object, owner: str, handle: RunHandle) -> None:
    """Give signs of life until the run comes to rest."""
    while not handle.reason:
        await asyncio.sleep(app_settings.RUN_LEASE / 3)
        try:
            await _renew(run_id, owner, handle)
        except Exception:
            logger.warning("The lease of the run %s could not be renewed.", run_id, exc_info=True)


async def _renew(run_id: object, owner: str, handle: RunHandle) -> None:
    """Give a sign of life; stop the run if it is not to go on here."""
    renewal = await sync_to_async(renew)(run_id, owner)
    if renewal.lost:
        handle.lose()
    elif renewal.cancel:
        handle.cancel()


class _Drive:
    """One worker at one run."""

    def __init__(
        self,
        run: AgentRun,
        owner: str,
        loop: AgentsLoop,
        handle: RunHandle,
        token: CancellationToken,
        *,
        model: Model | None,
        live: bool,
    ) -> None:
        self._run = run
        self._owner = owner
        self._loop = loop
        self._handle = handle
        self._token = token
        self._given_model = model
        self._live = live
        self._telling = Telling(run, owner)
        self._spec = AgentSpec(name=run.agent_name)
        self._calls: RunCalls | None = None
        self._is_streaming = False
        self._rounds = run.tool_rounds
        self._usage = _USAGE.validate_python(run.usage) if run.usage else RunUsage()
        self._messages: list[ModelMessage] = []
        self._saved: list[Any] = list(run.messages)
        self._began = time.monotonic()

    async def go(self) -> None:
        """Execute the run and write down how it came to rest."""
        try:
            output = await self._execute()
        except asyncio.CancelledError:
            # At the end of the process the run is left to whoever finds it: nobody wanted it to end.
            if not self._loop.is_closing:
                ending = Ending(RunStatus.CANCELLED, "", "Nobody waited for the answer any more.")
                await _whole(self._finish(ending))
            raise
        except Exception as error:
            if self._is_lost(error):
                raise RunStateError(
                    "Another worker has taken the run over, or it was ended.", run=str(self._run.pk)
                ) from error
            await _whole(self._finish(ending_of(error, self._spec, self._limit())))
        else:
            if isinstance(output, DeferredToolRequests):
                await _whole(self._pause())
            else:
                await _whole(self._finish(Ending(RunStatus.COMPLETED), text=str(output)))

    def _is_lost(self, error: Exception) -> bool:
        return isinstance(error, RunStateError) or self._handle.reason == "lost"

    async def _execute(self) -> Any:
        """Have the agent run; whatever happens, the conversation is kept."""
        run = self._run
        self._messages = history.with_fitting_ids(history.read(run.messages))
        if run.username and run.user_id is None:
            # Without a user the run would be one of trusted code.
            raise PermissionDeniedError(
                f"The user {run.username!r}, whose run it is, does not exist any more."
            )
        toolset = await aget_toolset(run.agent_name, run.user)
        self._spec = toolset.spec
        model = self._given_model or await model_for(self._spec, self._loop)
        self._calls = RunCalls(run, self._owner, toolset, self._telling, self._look)
        await self._calls.prepare()
        await self._telling.prepare()
        goes_on = bool(run.usage) and history.is_open(self._messages)
        if not goes_on:
            self._messages = history.closed(self._messages)
        self._is_streaming = _streams(model, self._live)
        with capture_run_messages() as captured:
            try:
                result = await self._agent(model).run(
                    None if goes_on else run.prompt,
                    message_history=self._messages or None,
                    conversation_id=str(run.pk),
                    deps=run.deps,
                    usage=self._usage,
                    usage_limits=UsageLimits(request_limit=None, total_tokens_limit=self._spec.token_limit),
                    cancellation_token=self._token,
                    timeout=self._time_left(),
                    event_stream_handler=self._listen if self._is_streaming else None,
                )
            finally:
                self._messages = list(captured) or self._messages
        if isinstance(result.output, str):
            require_whole(result.response)
        return result.output

    def _agent(self, model: Model) -> Agent[Any, Any]:
        assert self._calls is not None
        spec = self._spec
        return Agent(
            model,
            name=spec.name,
            # Without the second, a call that waits for a person would be an error.
            output_type=[str, DeferredToolRequests],
            instructions=fill_in(spec.instructions, self._run.deps) or None,
            model_settings=dict(spec.model_settings) or None,  # type: ignore[arg-type]  # a TypedDict, unchecked
            toolsets=[RunToolset(self._calls, parallel=spec.max_parallel_calls, warn=self._warn)],
            capabilities=[Hooks(after_model_request=self._answered, after_node_run=self._passed)],
        )

    async def _look(self) -> None:
        """See whether the run is still this worker's: something was refused because it is not, or ends."""
        await _renew(self._run.pk, self._owner, self._handle)

    # Along the way ---------------------------------------------------------------------

    async def _answered(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Put a response in order before it is kept."""
        assert self._calls is not None
        found = ordered(response, ctx.messages, self._calls.selection)
        if self._live and not self._is_streaming:
            for index, part in enumerate(found.parts):
                if isinstance(part, TextPart):
                    self._telling.pass_on("text.start", {"index": index, "text": part.content})
        offered = ctx.tool_manager.tools if ctx.tool_manager is not None else None
        if offered is not None and any(call.tool_name not in offered for call in found.tool_calls):
            # Makes pydantic-ai ask for the tools once more: then there is one for each name.
            ctx.tool_manager.resolved_capability_ids = None  # type: ignore[union-attr]
        return found

    async def _passed(self, ctx: RunContext[Any], *, node: Any, result: Any) -> Any:
        """Write a response with calls down, before any of them is made."""
        if not (Agent.is_model_request_node(node) and history.is_open(ctx.messages)):
            return result
        if self._rounds >= self._spec.max_rounds:
            raise RoundsUsedUpError
        self._rounds += 1
        self._usage = ctx.usage
        self._saved = history.as_json(ctx.messages)
        text = history.said(ctx.messages[-1:])
        events = [("round", {"number": self._rounds, "text": text})]
        await sync_to_async(checkpoint)(
            self._run.pk, self._owner, messages=self._saved, events=events, **self._progress()
        )
        return result

    async def _listen(self, ctx: RunContext[Any], stream: AsyncIterable[AgentStreamEvent]) -> None:
        """Tell pieces of text as they come."""
        async for event in stream:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                self._telling.pass_on("text.start", {"index": event.index, "text": event.part.content})
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                self._telling.pass_on("text.delta", {"index": event.index, "text": event.delta.content_delta})

    def _warn(self, warnings: tuple[str, ...]) -> None:
        """Log what is wrong with tools: once, not in each run."""
        told = self._loop.kept.setdefault(_Drive, set())
        if len(told) > MOST_WARNINGS:
            told.clear()
        for warning in warnings:
            if (self._spec.name, warning) not in told:
                told.add((self._spec.name, warning))
                logger.warning("The agent %r: %s", self._spec.name, warning)

    # Coming to rest --------------------------------------------------------------------

    async def _finish(self, ending: Ending, *, text: str | None = None) -> None:
        own = [each for each in self._messages if each.conversation_id == str(self._run.pk)]
        await sync_to_async(finish)(
            self._run.pk,
            self._owner,
            ending.status,
            code=ending.code,
            detail=ending.detail,
            text=history.said(own) if text is None else text,
            messages=history.as_json(history.closed(self._messages)),
            **self._progress(),
        )

    async def _pause(self) -> None:
        await self._look()
        if self._handle.reason == "cancelled":
            await self._finish(Ending(RunStatus.CANCELLED, "", CANCELLED))
            return
        status, events = await sync_to_async(waiting_for)(self._run.pk)
        await sync_to_async(pause)(
            self._run.pk, self._owner, status, messages=self._saved, events=events, **self._progress()
        )

    def _progress(self) -> dict[str, Any]:
        usage = _USAGE.dump_python(self._usage, mode="json")
        return {
            "usage": {name: value for name, value in usage.items() if value},
            "tool_rounds": self._rounds,
            "seconds_used": self._run.seconds_used + time.monotonic() - self._began,
        }

    def _limit(self) -> float:
        limit = self._spec.time_limit
        return app_settings.AGENT_TIME_LIMIT if limit is None else limit

    def _time_left(self) -> float | None:
        limit = self._limit()
        return max(limit - self._run.seconds_used, 0.001) if limit else None


def _streams(model: Model, live: bool) -> bool:
    """Say whether to ask a model for its answer in pieces; scripted ones may know one way only."""
    if isinstance(model, FunctionModel):
        if model.stream_function is None:
            return False
        if model.function is None:
            return True
    return live
