"""Async twins of the services for runs: the same, on the thread that Django keeps for that."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async

from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentRun
from mcp_client_app.services import run_events, run_leases, run_ledger, run_reaping, run_submission, runs

__all__ = [
    "aappend_events",
    "acancel_run",
    "acheckpoint",
    "aclaim",
    "acreate_run",
    "aevents_after",
    "afinish",
    "aget_run",
    "alist_runs",
    "apause",
    "areap",
    "arecorded_call",
    "arenew",
    "arequeue",
    "asubmit",
]

acreate_run = sync_to_async(runs.create_run)
aget_run = sync_to_async(runs.get_run)
acancel_run = sync_to_async(runs.cancel_run)

aclaim = sync_to_async(run_leases.claim)
arenew = sync_to_async(run_leases.renew)
acheckpoint = sync_to_async(run_leases.checkpoint)
apause = sync_to_async(run_leases.pause)
afinish = sync_to_async(run_leases.finish)

asubmit = sync_to_async(run_submission.submit)
arequeue = sync_to_async(run_submission.requeue)

aappend_events = sync_to_async(run_events.append_events)
aevents_after = sync_to_async(run_events.events_after)
arecorded_call = sync_to_async(run_ledger.recorded_call)

areap = sync_to_async(run_reaping.reap)


@sync_to_async
def alist_runs(
    user: Any = None,
    *,
    agent: str | None = None,
    status: RunStatus | str | None = None,
    limit: int | None = None,
) -> list[AgentRun]:
    """Async twin of ``list_runs``; the runs have been read."""
    return list(runs.list_runs(user, agent=agent, status=status, limit=limit))
