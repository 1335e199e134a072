"""Approvals and questions of servers, as calls see them: asked for, and used once.

What people do with them is in ``approval_decisions``. The one who asks has to have found out
before that the call is allowed at all: nothing here makes a blocked call possible.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from mcp_client_app import json_codec
from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.exceptions import InputRequiredError
from mcp_client_app.models import Approval
from mcp_client_app.models.approvals import ApprovalQuerySet
from mcp_client_app.services.approval_refusals import denial_text, not_usable, refused
from mcp_client_app.services.approval_rows import (
    Run,
    approval_rows,
    find,
    is_asked_by,
    new_row,
    place,
    run_key,
    tell,
)
from mcp_client_app.services.fingerprints import call_fingerprint
from mcp_client_app.signals import approval_requested
from mcp_client_app.toolsets import hide_arguments
from mcp_client_app.toolsets.schema_tree import SchemaTooLargeError

logger = logging.getLogger(__name__)

__all__ = ["ApprovalState", "Decision", "approval_state", "request_approval", "request_input", "use_approval"]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What became of one call that waited for a person."""

    approval: str
    """Its id: what ``use_approval`` wants."""
    call_id: str
    kind: str
    status: str
    denial: str = ""
    """What the model reads in place of a result; empty if the call may be made, or waits."""
    is_edited: bool = False
    """A person has changed the arguments; the model should be told."""
    input_responses: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What to send along, once a server's question is answered."""
    request_state: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class ApprovalState:
    """Where the approvals of a run stand."""

    pending: tuple[Approval, ...] = ()
    """For these a person has to do something."""
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    """Call id to what holds for it now: the newest of its approvals and questions."""


def request_approval(
    toolset_name: str,
    tool: ToolInfo,
    given: Mapping[str, Any],
    *,
    user: Any,
    run: Run = None,
    call_id: str = "",
    lifetime: float | None = None,
    fixed_names: Collection[str] = (),
) -> Approval:
    """Ask for a person's approval of a call; asking again for the same one returns the same row.

    The same call is: within a run that of the same id, else one of the same agent, user, tool
    and arguments, as long as its approval waits or has not been used.

    Args:
        toolset_name: The agent, or the name of the toolset.
        tool: What is to be called.
        given: The arguments without the fixed ones: what people may read, and edit.
        user: For whom; None for trusted code.
        run: The run that the call belongs to.
        call_id: The call's id in the run.
        lifetime: Seconds to wait, and then to use it; None = the setting, 0 = ten years.
        fixed_names: The names of the fixed arguments, which nobody is shown.

    Raises:
        ApprovalError: The call of this id has been decided against, is made, or is another one.
        InvalidArgumentsError: The arguments have no JSON form.
    """
    kind = Approval.Kind.APPROVAL
    row = new_row(
        toolset_name, tool, given, kind=kind, user=user, run=run, call_id=call_id, lifetime=lifetime
    )
    row.schema = _shown_schema(tool, fixed_names)
    row.fixed_names = sorted(fixed_names)
    earlier = _of_call(run, call_id).filter(kind=kind).last()
    if earlier is not None:
        _require_same_call(earlier, row)
        if (refusal := not_usable(earlier)) is not None and refusal.reason != "pending":
            raise refusal
        return earlier
    return _asked(row)


def request_input(
    toolset_name: str,
    error: InputRequiredError,
    given: Mapping[str, Any],
    *,
    tool: ToolInfo,
    user: Any,
    run: Run = None,
    call_id: str = "",
    lifetime: float | None = None,
) -> Approval:
    """Keep what a server asks for in the course of a call, until a person answers.

    Asking the same again returns the same row; another question takes the place of an earlier one
    of the same call. The call goes on with the arguments that were sent, edited ones included.

    Args:
        toolset_name: The agent, or the name of the toolset.
        error: What the call ended with.
        given: The arguments without the fixed ones, as the model gave them.
        tool: What was called.
        user: For whom; None for trusted code.
        run: The run that the call belongs to.
        call_id: The call's id in the run.
        lifetime: As for ``request_approval``.

    Raises:
        ApprovalError: An earlier question of this call belongs to other arguments.
        InvalidArgumentsError: The arguments have no JSON form.
    """
    row = new_row(
        toolset_name,
        tool,
        given,
        kind=Approval.Kind.INPUT,
        user=user,
        run=run,
        call_id=call_id,
        lifetime=lifetime,
    )
    asked = error.details().get("input_requests", {})
    row.requests = json_codec.loads(json_codec.dumps(json_codec.scrub(asked)))
    row.request_state = json_codec.scrub(error.request_state or "")
    earlier = _of_call(run, call_id).last()
    if earlier is not None:
        _require_same_call(earlier, row)
        row.edited_arguments = earlier.edited_arguments
    found = _asked(row)
    if found.pk != row.pk and (found.requests, found.request_state) != (row.requests, row.request_state):
        approval_rows().filter(pk=found.pk).settle(Approval.Status.CANCELLED)
        found = _asked(row)
    return found


def use_approval(
    approval_id: Any,
    *,
    toolset_name: str,
    tool: ToolInfo,
    given: Mapping[str, Any],
    user: Any,
    run: Run = None,
    call_id: str = "",
) -> dict[str, Any]:
    """Use an approval, or an answered question, for a call that is made now; of many at once, one may.

    Call it in the transaction in which the call is written down: if that is rolled back, it was
    not used.

    Returns:
        The arguments to send, without the fixed ones: as given, or as a person has edited them.

    Raises:
        UnknownRunError: There is no such approval.
        ApprovalError: It is not for this call, or not good (any more); ``reason`` says why.
        InvalidArgumentsError: The arguments have no JSON form.
    """
    row = find(approval_id)
    _require_place(row, toolset_name, user, run, call_id)
    if row.fingerprint != call_fingerprint(tool, given):
        raise refused(row, "changed", "The approval is for another tool, or for other arguments.")
    if (refusal := not_usable(row)) is not None:
        raise refusal
    now = timezone.now()
    one = approval_rows().filter(pk=row.pk, status=row.status, expires_at__gt=now)
    if not one.settle(Approval.Status.USED, used_at=now):
        # A transaction that reads an old snapshot does not see who was faster.
        raise not_usable(find(row.pk)) or refused(row, "used", "This approval has been used meanwhile.")
    logger.info("The %s %s of %r of %r is used.", row.kind, row.pk, row.tool, row.server_name)
    return dict(given) if row.edited_arguments is None else dict(row.edited_arguments)


def approval_state(run: Run) -> ApprovalState:
    """Return where the approvals of a run stand; those whose time is over count as expired."""
    pending, decisions = [], {}
    for row in approval_rows().filter(run_id=run_key(run)).order_by("created_at", "pk"):
        if row.is_pending:
            pending.append(row)
        decisions[row.call_id] = Decision(
            approval=str(row.pk),
            call_id=row.call_id,
            kind=row.kind,
            status=row.standing.value,
            denial=denial_text(row),
            is_edited=row.edited_arguments is not None,
            input_responses=row.answers or {},
            request_state=(row.request_state or None) if row.standing == Approval.Status.ANSWERED else None,
        )
    return ApprovalState(pending=tuple(pending), decisions=decisions)


def _of_call(run: Run, call_id: str) -> ApprovalQuerySet:
    """Return the rows of a call of a run, in order; none for a call without a run, or without an id."""
    rows = approval_rows()
    if (key := run_key(run)) is None or not call_id:
        return rows.none()
    return rows.filter(run_id=key, call_id=call_id).order_by("created_at", "pk")


def _asked(row: Approval) -> Approval:
    found = place(row)
    if found.pk == row.pk:
        tell(approval_requested, row)
        logger.info(
            "The %s %s is asked for: %r of %r, by %r.",
            row.kind,
            row.pk,
            row.tool,
            row.server_name,
            row.agent_name,
        )
    return found


def _require_same_call(earlier: Approval, row: Approval) -> None:
    if earlier.fingerprint != row.fingerprint:
        raise refused(
            earlier, "changed", "The call of this id was another one: another tool, or other arguments."
        )


def _require_place(row: Approval, toolset_name: str, user: Any, run: Run, call_id: str) -> None:
    """Refuse an approval that was asked for elsewhere."""
    if not is_asked_by(row, user):
        raise refused(row, "other_user", "The approval is for a call of another user.")
    if row.agent_name.casefold() != toolset_name[:100].casefold():
        raise refused(row, "other_agent", "The approval is for a call of another agent.")
    if row.run_id != run_key(run) or (row.run_id is not None and row.call_id != call_id):
        raise refused(row, "other_run", "The approval is for another run, or for another call of this one.")


def _shown_schema(tool: ToolInfo, fixed_names: Collection[str]) -> Mapping[str, Any] | None:
    try:
        shown = hide_arguments(tool.input_schema, fixed_names)
        kept: dict[str, Any] = json_codec.loads(json_codec.dumps(json_codec.scrub(dict(shown))))
    except (SchemaTooLargeError, TypeError, ValueError, RecursionError):
        return None
    return kept
