"""The calls of one run: each made once, whatever happens to the run meanwhile.

Before a call the ledger is asked what is known of it, and the approvals whether people have decided
about it. So the same response can be acted on again, after a crash or after a pause: what is done
is not done again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from asgiref.sync import sync_to_async

from mcp_client_app.agents.asked import Asked
from mcp_client_app.agents.telling import Telling
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import InputHandler, InputKind, Progress, defer_input
from mcp_client_app.exceptions import (
    ApprovalRequiredError,
    InputRequiredError,
    InvalidArgumentsError,
    MCPClientError,
    RunStateError,
)
from mcp_client_app.models import Approval, RunCall
from mcp_client_app.services.approvals import Decision, approval_state, request_input
from mcp_client_app.services.run_ledger import RunJournal, recorded_call, recorded_ids, recorded_result
from mcp_client_app.toolsets import RenderedResult, TextPart, ToolSelection, error_line

logger = logging.getLogger(__name__)

__all__ = ["RunCalls", "WaitsForPeople", "with_note"]

UNKNOWN = (
    "the outcome of this call is unknown: whatever made it has died meanwhile. It may have taken effect, "
    "and was not repeated. Find out before you do it again."
)


class WaitsForPeople(Exception):  # noqa: N818 - no error: the run goes on later
    """A call waits for a person."""

    def __init__(self, kind: str, approval: str) -> None:
        super().__init__(kind)
        self.kind = kind
        """``approval`` or ``input``."""
        self.approval = approval
        """The id of the stored approval."""


class RunCalls:
    """Makes the calls of one run for the worker that holds it."""

    def __init__(
        self, run: Any, owner: str, toolset: Any, telling: Telling, stop: Callable[[], Awaitable[None]]
    ) -> None:
        """Make nothing yet.

        Args:
            run: The run.
            owner: The worker that holds it.
            toolset: What the agent may call.
            telling: The run's events.
            stop: Called when the run is not this worker's any more, or is being cancelled.
        """
        self.run = run
        self.toolset = toolset
        self._owner = owner
        self._telling = telling
        self._stop = stop
        self._decisions: Mapping[str, Decision] = {}
        self._begun: set[str] = set()
        """Calls of which the ledger may know."""
        self._on_input: dict[str, InputHandler] = {}
        self.selection: ToolSelection | None = None
        """What the model was offered last."""

    async def prepare(self) -> None:
        """Read what people have decided, and which calls were begun before."""
        state = await sync_to_async(approval_state)(self.run.pk)
        if self.run.event_count > 1:  # the first one is that it was started
            self._begun = await sync_to_async(recorded_ids)(self.run.pk)
        self._decisions = state.decisions
        # A handler of the project answers by itself; without one, whoever may has to.
        if InputKind.ELICITATION not in app_settings.INPUT_HANDLERS:
            self._on_input = {InputKind.ELICITATION: defer_input}

    async def make(self, asked: Asked) -> RenderedResult:
        """Return what the model reads of a call, made now or before.

        Raises:
            WaitsForPeople: It cannot be made yet.
        """
        try:
            await self._telling.call(asked, is_valid=self._is_valid(asked))
            rendered = await self._outcome(asked)
            await self._telling.result(asked, rendered)
        except RunStateError as error:
            await self._stop()
            return _line(asked.name, error)
        return rendered

    def _is_valid(self, asked: Asked) -> bool:
        if self.selection is None:
            return True
        try:
            self.selection.prepare(asked.name, asked.arguments, validation=self.toolset.spec.validation)
        except InvalidArgumentsError:
            return False
        except MCPClientError:
            pass  # there is no such tool: of its arguments nothing can be said
        return True

    async def _outcome(self, asked: Asked) -> RenderedResult:
        try:
            return await self._result(asked)
        except (WaitsForPeople, RunStateError):
            raise
        except Exception as error:
            if not isinstance(error, MCPClientError):
                logger.exception("The call of %r in the run %s failed.", asked.name, self.run.pk)
            return _line(asked.name, error)

    async def _result(self, asked: Asked) -> RenderedResult:
        decision = self._decisions.get(asked.call_id)
        if asked.call_id in self._begun:
            known = await sync_to_async(recorded_call)(self.run.pk, asked.call_id)
            if known is not None and (rendered := _known(asked, known, decision)) is not None:
                return rendered
        self._begun.add(asked.call_id)
        if decision is None:
            return await self._call(asked)
        if decision.denial:
            return _line(asked.name, decision.denial)
        if decision.status == Approval.Status.PENDING:
            raise WaitsForPeople(decision.kind, decision.approval)
        return await self._call(asked, decision)

    async def _call(self, asked: Asked, decision: Decision | None = None) -> RenderedResult:
        given: dict[str, Any] = {}
        if decision is not None:
            given = {
                "approval": decision.approval,
                "input_responses": decision.input_responses or None,
                "request_state": decision.request_state,
            }
        try:
            result = await self.toolset.aanswer(
                asked.name,
                asked.arguments,
                call_id=asked.call_id,
                run=self.run,
                journal=RunJournal(self.run.pk, self._owner, asked.call_id),
                on_progress=self._progress(asked),
                on_input=self._on_input or None,
                correlation_id=self.run.correlation_id,
                **given,
            )
        except ApprovalRequiredError as error:
            raise WaitsForPeople("approval", error.approval or "") from error
        except InputRequiredError as error:
            raise WaitsForPeople("input", await self._ask(asked, error)) from error
        rendered: RenderedResult = result.rendered
        if decision is not None and decision.is_edited:
            rendered = with_note(rendered, "A person changed the arguments before this call was made.")
        return rendered

    async def _ask(self, asked: Asked, error: InputRequiredError) -> str:
        """Keep what the server asks for; return the id of the row."""
        selection = self.selection or await self.toolset.aselection()
        prepared = selection.prepare(asked.name, asked.arguments, validation="off")
        row = await sync_to_async(request_input)(
            self.toolset.name,
            error,
            prepared.given,
            tool=prepared.tool,
            user=self.run.user,
            run=self.run,
            call_id=asked.call_id,
            lifetime=self.toolset.spec.approval_lifetime,
        )
        return str(row.pk)

    def _progress(self, asked: Asked) -> Any:
        def tell(progress: Progress) -> None:
            self._telling.progress(asked, progress)

        return tell


def _known(asked: Asked, call: RunCall, decision: Decision | None) -> RenderedResult | None:
    """Return what the model reads of a call that was begun before; None if it is to be made (again)."""
    if call.status == RunCall.Status.FAILED and call.code == InputRequiredError.code:
        return None
    is_open = call.status in (RunCall.Status.STARTED, RunCall.Status.UNKNOWN)
    # People have allowed it once.
    is_used = decision is not None and decision.status == Approval.Status.USED
    if is_open and call.is_safe and not is_used:
        return None
    return recorded_result(call) or _line(asked.name, UNKNOWN)


def _line(name: str, reason: str | BaseException) -> RenderedResult:
    return RenderedResult((TextPart(error_line(name, reason, limit=1000)),), is_error=True)


def with_note(rendered: RenderedResult, note: str) -> RenderedResult:
    """Return a result with a remark of ours behind it."""
    return RenderedResult((*rendered.parts, TextPart(f"[{note}]")), rendered.is_error, rendered.truncated)
