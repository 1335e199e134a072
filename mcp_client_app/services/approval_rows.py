"""Approvals as rows: made once for a call, found again, and bound to it."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError, router, transaction
from django.db.models import Q
from django.dispatch import Signal
from django.utils import timezone

from mcp_client_app import json_codec
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.exceptions import UnknownRunError
from mcp_client_app.models import AgentConfig, AgentRun, Approval
from mcp_client_app.models.approvals import ApprovalQuerySet
from mcp_client_app.models.runs import FINAL
from mcp_client_app.services.fingerprints import call_fingerprint, plain_arguments
from mcp_client_app.services.run_rows import lock, lost

__all__ = ["Run", "approval_rows", "find", "is_asked_by", "new_row", "place", "run_key", "tell"]

Run = AgentRun | UUID | str | None
"""A run or its id; None for a single call."""

LONGEST: Final = 3650 * 86_400.0
"""Seconds; what a lifetime of 0, "no limit", comes to: what never ended would be no approval any more."""
ATTEMPTS: Final = 5


def approval_rows() -> ApprovalQuerySet:
    """Rows of the write database: a replica may not know yet what was decided a moment ago."""
    return Approval.objects.using(router.db_for_write(Approval))


def run_key(run: Run) -> UUID | None:
    """Return the id of a run.

    Raises:
        UnknownRunError: It is no id.
    """
    key = run.pk if isinstance(run, AgentRun) else run
    try:
        return UUID(key) if isinstance(key, str) else key
    except ValueError:
        raise UnknownRunError from None


def find(approval_id: UUID | str, rows: ApprovalQuerySet | None = None) -> Approval:
    """Return an approval.

    Raises:
        UnknownRunError: There is none among ``rows``.
    """
    row = None
    with contextlib.suppress(ValueError):  # no id at all
        row = (approval_rows() if rows is None else rows).filter(pk=UUID(str(approval_id))).first()
    if row is None:
        raise UnknownRunError("There is no such approval, or it is somebody else's.")
    return row


def new_row(
    toolset_name: str,
    tool: ToolInfo,
    given: Mapping[str, Any],
    *,
    kind: str,
    user: Any,
    run: Run,
    call_id: str,
    lifetime: float | None,
) -> Approval:
    """Return a row for a call, not saved.

    Raises:
        InvalidArgumentsError: The arguments have no JSON form.
    """
    fingerprint = call_fingerprint(tool, given)
    key = run_key(run)
    who = user.pk if user is not None else None
    # A run names its calls. Without a run the call itself tells whether it is the same one.
    of_call = (
        [kind, str(key), call_id] if key and call_id else [kind, str(key), toolset_name, who, fingerprint]
    )
    now = timezone.now()
    return Approval(
        kind=kind,
        run_id=key,
        agent_id=_agent_id(toolset_name),
        agent_name=toolset_name[:100],
        user_id=who,
        username=str(user.get_username())[:255] if who is not None else "",
        call_id=_text(call_id, 200),
        server_name=tool.server[:40],
        tool=_text(tool.name, 255),
        arguments=plain_arguments(given, tool=tool),
        fingerprint=fingerprint,
        open_key=hashlib.sha256(json_codec.canonical(of_call)).hexdigest(),
        created_at=now,
        expires_at=now + _lifetime(lifetime),
    )


def place(row: Approval) -> Approval:
    """Save a new row, unless there is one of the same call that still counts: return that one.

    Raises:
        RunStateError: Its run is over; a worker that was given up has not heard of it.
    """
    rows, attempts_left = approval_rows(), ATTEMPTS
    while True:
        same = rows.filter(open_key=row.open_key)
        same.overdue().settle(Approval.Status.EXPIRED)
        if (found := same.first()) is not None:
            return found
        try:
            with transaction.atomic(using=rows.db):
                if row.run_id is not None and not lock(row.run_id, ~Q(status__in=FINAL)):
                    raise lost(row.run_id)
                row.save(using=rows.db, force_insert=True)
            return row
        except IntegrityError:
            # Somebody else was faster, and may be settled by now.
            attempts_left -= 1
            if not attempts_left:
                raise


def tell(signal: Signal, row: Approval) -> None:
    """Send a signal about a row, once the open transaction is committed."""
    send = partial(signal.send_robust, sender=Approval, approval=row)
    transaction.on_commit(send, using=approval_rows().db, robust=True)


def is_asked_by(row: Approval, user: Any) -> bool:
    """Say whether this user's call it is; that of a user who was deleted is nobody's."""
    if user is None:
        return row.user_id is None and not row.username
    return user.pk is not None and row.user_id == user.pk


def _agent_id(name: str) -> int | None:
    agents = AgentConfig.objects.using(approval_rows().db).named(name)
    return agents.values_list("pk", flat=True).first() if name else None


def _lifetime(seconds: float | None) -> timedelta:
    chosen = app_settings.APPROVAL_LIFETIME if seconds is None else seconds
    return timedelta(seconds=min(chosen or LONGEST, LONGEST))


def _text(value: str, limit: int) -> str:
    return str(json_codec.scrub(value))[:limit]
