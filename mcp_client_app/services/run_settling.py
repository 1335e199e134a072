"""Runs that nobody works on any more: gone on with, or ended, and either way said so.

Whoever looks at such a run settles it, so that no reader waits for what cannot come; ``reap``
does it for those that nobody looks at.
"""

from __future__ import annotations

import enum
from typing import Final

from django.db import transaction
from django.utils import timezone

from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentRun
from mcp_client_app.models.runs import AgentRunQuerySet
from mcp_client_app.services.run_leases import MAX_ATTEMPTS
from mcp_client_app.services.run_rows import close_approvals, database, end, forget_started_calls, locked
from mcp_client_app.services.run_submission import is_waiting_for_people, queue, requeue

__all__ = ["ABANDONED", "Settled", "end_abandoned", "look_after", "settle", "settle_abandoned"]

ABANDONED: Final = "abandoned"
"""The ``code`` of runs that were ended for want of a worker."""
AT_ONCE: Final = 20
"""Abandoned runs that one reader settles."""


class Settled(enum.StrEnum):
    """What was done with an abandoned run."""

    RESUMED = "resumed"
    """It goes on where it was."""
    HANDED_OUT = "handed_out"
    """Nobody has begun it: it was given to the backend once more."""
    FAILED = "failed"
    CANCELLED = "cancelled"


def settle_abandoned(runs: AgentRunQuerySet, *, at_most: int | None = AT_ONCE) -> dict[str, Settled]:
    """Settle the abandoned ones among these runs; return what was done, by id."""
    found = list(runs.abandoned().order_by("lease_until").values_list("pk", flat=True)[:at_most])
    done = {str(run_id): settle(run_id) for run_id in found}
    return {run_id: what for run_id, what in done.items() if what is not None}


def look_after(run: AgentRun) -> bool:
    """Settle a run that somebody looks at; returns whether it stands elsewhere then."""
    if run.state.is_paused:
        return not is_waiting_for_people(run) and requeue(run.pk)
    is_overdue = run.lease_until is not None and run.lease_until < timezone.now()
    return is_overdue and settle(run.pk) is not None


def settle(run_id: object) -> Settled | None:
    """Settle a run if it is abandoned; None if it is not, or somebody else has just done it."""
    with transaction.atomic(using=database()):
        waiting = (RunStatus.QUEUED.value, RunStatus.RUNNING.value)
        run = locked(run_id, status__in=waiting, lease_until__lt=timezone.now())
        if run is None:
            return None
        if run.cancel_requested_at is None and run.in_background and run.attempts < MAX_ATTEMPTS:
            was_running = run.state is RunStatus.RUNNING
            forget_started_calls(run)
            queue(run)
            return Settled.RESUMED if was_running else Settled.HANDED_OUT
    return end_abandoned(run)


def end_abandoned(seen: AgentRun) -> Settled | None:
    """End an abandoned run, if it still stands as it was seen."""
    with transaction.atomic(using=database()):
        close_approvals(seen.pk)
        # Its worker may have come back meanwhile.
        run = locked(seen.pk, status=seen.status, lease_owner=seen.lease_owner, lease_until=seen.lease_until)
        if run is None:
            transaction.set_rollback(True, using=database())
            return None
        unknown = forget_started_calls(run)
        if run.cancel_requested_at is not None:
            end(run, RunStatus.CANCELLED, detail=_sentence(run, unknown))
            return Settled.CANCELLED
        end(run, RunStatus.FAILED, code=ABANDONED, detail=_sentence(run, unknown))
        return Settled.FAILED


def _sentence(run: AgentRun, unknown: list[str]) -> str:
    """Say what is known of an abandoned run, and no more."""
    if run.state is RunStatus.QUEUED:
        said = "The process that was to execute the run never began it."
    else:
        when = run.lease_until.isoformat(timespec="seconds") if run.lease_until else "long"
        said = f"The process that executed the run has given no sign of life; its lease ended at {when}."
        if run.in_background and run.attempts >= MAX_ATTEMPTS:
            said += f" That was attempt {run.attempts} of {MAX_ATTEMPTS}."
    if unknown:
        names = ", ".join(sorted(set(unknown)))
        said += f" Whether these calls have taken effect is unknown: {names}."
    return said
