"""Approvals and questions of servers, as people see them: listed, approved, denied, answered.

Who may: whoever the call is made for, and users with ``decide_approval``. To see other users'
runs is not enough. Of several who decide at once one wins; the others are told who did.
Deciding the last open one of a run has the run go on, in any process.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from mcp_client_app import json_codec
from mcp_client_app.datatypes import ApprovalPolicy, ToolInfo
from mcp_client_app.exceptions import (
    InvalidArgumentsError,
    PermissionDeniedError,
    ToolBlockedError,
    UnknownRunError,
)
from mcp_client_app.json_schema import SchemaChecker
from mcp_client_app.models import AgentConfig, Approval
from mcp_client_app.models.approvals import ApprovalQuerySet
from mcp_client_app.services.answers import checked_answers, questions
from mcp_client_app.services.approval_refusals import not_decidable, refused
from mcp_client_app.services.approval_rows import Run, approval_rows, find, is_asked_by, run_key, tell
from mcp_client_app.services.fingerprints import plain_arguments
from mcp_client_app.services.permissions import DECIDE, VIEW_APPROVAL, VIEW_RUN, may
from mcp_client_app.services.run_submission import requeue
from mcp_client_app.signals import approval_decided
from mcp_client_app.toolsets.policies import policy_for

logger = logging.getLogger(__name__)

__all__ = [
    "MAX_REASON",
    "answer_input",
    "approvals_for",
    "approve",
    "deny",
    "expire_approvals",
    "get_approval",
    "list_approvals",
    "may_decide",
]

MAX_REASON: Final = 2000
"""Characters of a reason: a model reads it."""
LOOKUPS: Final = {
    "status": "status",
    "kind": "kind",
    "agent": "agent_name__iexact",
    "server": "server_name__iexact",
    "run": "run_id",
}


def approvals_for(user: Any, **filters: Any) -> ApprovalQuerySet:
    """Return what ``list_approvals`` lists, as a queryset."""
    expire_approvals()
    if filters.get("run") is not None:
        filters["run"] = run_key(filters["run"])
    lookups = {LOOKUPS[name]: value for name, value in filters.items() if value is not None}
    return approval_rows().for_user(user).filter(**lookups)


def list_approvals(
    user: Any = None,
    *,
    status: str | None = None,
    kind: str | None = None,
    agent: str | None = None,
    server: str | None = None,
    run: Run = None,
    limit: int | None = 1000,
) -> list[Approval]:
    """Return a user's own approvals and questions, newest first; all for those who may decide for others.

    Args:
        user: Who asks; None for trusted code.
        status: Only these, such as ``pending``.
        kind: ``approval`` or ``input``.
        agent: Only this agent's.
        server: Only those about tools of this server.
        run: Only those of this run.
        limit: At most so many; None = all.
    """
    rows = approvals_for(user, status=status, kind=kind, agent=agent, server=server, run=run)
    return list(rows[:limit])


def get_approval(approval_id: UUID | str, user: Any = None) -> Approval:
    """Return one approval or question.

    Raises:
        UnknownRunError: There is none, or it is somebody else's.
    """
    row = find(approval_id, approval_rows().for_user(user))
    if row.status != row.standing:
        expire_approvals(row.run_id)
        row = find(row.pk)
    return row


def may_decide(row: Approval, user: Any) -> bool:
    """Say whether a user may decide about a row, and so may read what the call is about."""
    if user is None or may(user, DECIDE):
        return True
    return bool(user.is_active) and is_asked_by(row, user)


def approve(
    approval_id: UUID | str,
    *,
    user: Any = None,
    arguments: Mapping[str, Any] | None = None,
    reason: str = "",
) -> Approval:
    """Allow a call: once, as it was asked for, until the approval's time is over.

    Args:
        approval_id: Which one.
        user: Who decides; None for trusted code.
        arguments: Others than the given ones, all of them; never fixed ones.
        reason: For the record.

    Raises:
        UnknownRunError: There is no such approval, or it is somebody else's.
        PermissionDeniedError: The user may see it, and not decide.
        ApprovalError: It is decided, expired or withdrawn, or it is a question; ``reason`` says which.
        ToolBlockedError: The agent refuses such calls by now, whoever approves them.
        InvalidArgumentsError: The arguments do not fit the tool's schema.
    """
    row = _to_decide(approval_id, user, Approval.Kind.APPROVAL)
    _require_possible(row)
    edited = None if arguments is None else _edited(row, arguments)
    return _decide(row, Approval.Status.APPROVED, user, reason, edited_arguments=edited)


def deny(approval_id: UUID | str, *, user: Any = None, reason: str = "") -> Approval:
    """Forbid a call; the model is told, with the reason.

    Raises:
        UnknownRunError, PermissionDeniedError, ApprovalError: As for ``approve``.
    """
    row = _to_decide(approval_id, user, Approval.Kind.APPROVAL)
    return _decide(row, Approval.Status.DENIED, user, reason, open_key=None)


def answer_input(approval_id: UUID | str, *, user: Any = None, responses: Mapping[str, Any]) -> Approval:
    """Answer all that a server has asked in one call; the answers are kept until they are sent.

    Args:
        approval_id: Which one.
        user: Who answers; None for trusted code.
        responses: Key of a question to ``{"action": "accept", "content": {...}}``, to
            ``{"action": "decline"}`` or to ``{"action": "cancel"}``.

    Raises:
        UnknownRunError, PermissionDeniedError, ApprovalError: As for ``approve``.
        InvalidInputError: An answer is missing, or does not fit.
    """
    row = _to_decide(approval_id, user, Approval.Kind.INPUT)
    asked = questions(row.requests, server=row.server_name, tool=row.tool)
    answers = json_codec.scrub(checked_answers(asked, responses))
    return _decide(row, Approval.Status.ANSWERED, user, "", answers=answers)


def expire_approvals(run: Run = None) -> int:
    """Settle approvals and questions whose time is over; runs that waited for them go on, and tell the model.

    Args:
        run: Only those of this run; None = all.

    Returns:
        How many there were.
    """
    overdue = approval_rows().overdue()
    if run is not None:
        overdue = overdue.filter(run_id=run_key(run))
    count = 0
    for key in list(overdue.order_by().values_list("run_id", flat=True).distinct()):
        with transaction.atomic(using=overdue.db):
            settled = approval_rows().overdue().filter(run_id=key).settle(Approval.Status.EXPIRED)
            if settled and key is not None:
                requeue(key)
        count += settled
    return count


def _to_decide(approval_id: UUID | str, user: Any, kind: str) -> Approval:
    row = find(approval_id)
    if not may_decide(row, user):
        if not any(may(user, permission) for permission in (VIEW_RUN, VIEW_APPROVAL)):
            raise UnknownRunError("There is no such approval, or it is somebody else's.")
        raise PermissionDeniedError(
            f"This call is another user's; to decide about it needs the permission {DECIDE!r}.",
            permission=DECIDE,
        )
    if row.kind != kind:
        what = "a question of a server: answer it" if row.is_input else "a call: approve or deny it"
        raise refused(row, "other_kind", f"This is {what}.")
    if (refusal := not_decidable(row)) is not None:
        if row.status != row.standing:
            expire_approvals(row.run_id)
        raise refusal
    return row


def _require_possible(row: Approval) -> None:
    """Refuse what the agent's policy does not leave to people; a call is held to it, too."""
    agents = AgentConfig.objects.using(approval_rows().db)
    agent = agents.filter(pk=row.agent_id).first() if row.agent_id is not None else None
    if agent is not None and policy_for(_tool(row), agent.to_spec()) is ApprovalPolicy.DENY:
        raise ToolBlockedError(
            f"The agent {row.agent_name!r} refuses calls of {row.tool!r}; nobody can approve them.",
            server=row.server_name,
            tool=row.tool,
        )


def _decide(row: Approval, status: str, user: Any, reason: str, **columns: Any) -> Approval:
    now = timezone.now()
    who = user if getattr(user, "pk", None) is not None else None
    one = approval_rows().filter(pk=row.pk, status=Approval.Status.PENDING, expires_at__gt=now)
    with transaction.atomic(using=one.db):
        won = one.update(
            status=status,
            reason=json_codec.scrub(reason.strip())[:MAX_REASON],
            decided_by=who,
            decided_by_name=str(who.get_username())[:255] if who is not None else "",
            decided_at=now,
            # Now it has as long to be used as it had to be decided.
            expires_at=now + (row.expires_at - row.created_at),
            **columns,
        )
        if won and row.run_id is not None:
            requeue(row.run_id)
    decided = find(row.pk)
    if not won:
        # A transaction that reads an old snapshot does not see who was faster.
        raise not_decidable(decided) or refused(decided, "decided", "Somebody else has decided meanwhile.")
    tell(approval_decided, decided)
    logger.info("The %s %s of %r of %r: %s.", row.kind, row.pk, row.tool, row.server_name, status)
    return decided


def _tool(row: Approval) -> ToolInfo:
    return ToolInfo(server=row.server_name, name=row.tool)


def _edited(row: Approval, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return edited arguments that may be sent; None if nobody has changed anything.

    Raises:
        ApprovalError: They cannot be checked.
        InvalidArgumentsError: They do not fit.
    """
    edited = plain_arguments(arguments, tool=_tool(row))
    # To Python True is 1, to a tool it is not.
    if json_codec.canonical(edited) == json_codec.canonical(row.arguments):
        return None
    checker = SchemaChecker(row.schema) if row.schema is not None else None
    if checker is None or checker.problem is not None:
        raise refused(
            row,
            "no_schema",
            "The tool's schema cannot be had or not be used, so changed arguments cannot be checked. "
            "Approve the call as it is, or deny it.",
        )
    fixed = [name for name in row.fixed_names if name in edited]
    problems = [f"the argument {name!r} is fixed for this tool: leave it out" for name in fixed]
    if problems := problems or checker.errors(edited):
        raise InvalidArgumentsError(
            f"The edited arguments do not fit: {'; '.join(problems)}.",
            server=row.server_name,
            tool=row.tool,
            schema=row.schema,
            arguments=edited,
        )
    return edited
