"""Tidying up, to be done now and then: runs without a worker, approvals without an answer, what is old."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.db import router
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from mcp_client_app.models import AgentRun, Approval, CallReceipt
from mcp_client_app.models.runs import FINAL
from mcp_client_app.services.approval_decisions import expire_approvals
from mcp_client_app.services.run_rows import database, rows
from mcp_client_app.services.run_settling import Settled, settle_abandoned
from mcp_client_app.services.run_submission import requeue

__all__ = ["ReapReport", "reap"]

CHUNK = 200
"""Rows that are deleted at once: their events and calls go with them, in one transaction."""


@dataclass(frozen=True, kw_only=True)
class ReapReport:
    """What was tidied up."""

    runs: Mapping[str, Settled] = field(default_factory=dict)
    """Ids of abandoned runs, and what was done with each."""
    approvals: int = 0
    """Approvals and questions that nobody has answered in time."""
    deleted_runs: int = 0
    deleted_approvals: int = 0
    """Those of single calls; those of runs go with their runs."""
    deleted_receipts: int = 0
    """Answers that were kept for repeated requests, and whose time is over."""

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to do."""
        return self == ReapReport()


def reap(*, older_than: float | None = None) -> ReapReport:
    """Settle what nobody works on any more, and delete what is old.

    Args:
        older_than: Days; runs that ended longer ago are deleted with all that belongs to them, and so
            are decided approvals of single calls. None deletes neither.
    """
    approvals = expire_approvals()
    settled = settle_abandoned(rows(), at_most=None)
    settled |= {str(run_id): Settled.RESUMED for run_id in _decided() if requeue(run_id)}
    deleted_runs, deleted_approvals = (0, 0) if older_than is None else _delete_older(older_than)
    using = router.db_for_write(CallReceipt)
    deleted_receipts, _ = CallReceipt.objects.using(using).expired().delete()
    return ReapReport(
        runs=settled,
        approvals=approvals,
        deleted_runs=deleted_runs,
        deleted_approvals=deleted_approvals,
        deleted_receipts=deleted_receipts,
    )


def _decided() -> list[UUID]:
    """Return the runs whose last question was decided by somebody who died before the run was queued."""
    questions = Approval.objects.using(database()).filter(run=OuterRef("pk")).pending()
    return list(rows().paused().exclude(Exists(questions)).order_by("pk").values_list("pk", flat=True))


def _delete_older(days: float) -> tuple[int, int]:
    before = timezone.now() - timedelta(days=days)
    runs = rows().filter(status__in=FINAL, finished_at__lt=before)
    deleted = 0
    while keys := list(runs.order_by("pk").values_list("pk", flat=True)[:CHUNK]):
        _, counts = rows().filter(pk__in=keys, status__in=FINAL).delete()
        deleted += counts.get(AgentRun._meta.label, 0)  # noqa: SLF001 (documented by Django)
    over = Approval.objects.using(database()).filter(
        Q(run=None), ~Q(status=Approval.Status.PENDING), expires_at__lt=before
    )
    return deleted, over.delete()[0]
