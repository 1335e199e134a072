"""Celery tasks: executing runs (``MCP_CLIENT_RUN_BACKEND = "celery"``) and tidying up, for a schedule.

Celery only carries the ids of runs; where a run stands, and who works on it, is in the database. So
a task that is delivered twice, or never, does no harm. Without Celery the module can be imported,
and says what is missing when it is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from django.utils import timezone
from django.utils.module_loading import import_string

from mcp_client_app import services
from mcp_client_app.agents.executor import execute_run
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import (
    BackendUnavailableError,
    ConfigurationError,
    RunStateError,
    UnknownRunError,
)
from mcp_client_app.models import AgentRun

__all__ = ["reap", "run_agent", "submit_run"]

RETRIES: Final = 5
"""So often a task waits for another worker's lease to end; then the run is left to whoever looks at it."""


def _celerys(path: str) -> Any:
    try:
        return import_string(path)
    except ImportError:  # the extra "celery"
        return None


_shared_task = _celerys("celery.shared_task")
_OperationalError = _celerys("kombu.exceptions.OperationalError")


class _Missing:
    """Stands for a task where Celery is not installed."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        raise ConfigurationError(
            "MCP_CLIENT_RUN_BACKEND: Celery is not installed; install 'django-mcp-client-app[celery]'.",
            field="MCP_CLIENT_RUN_BACKEND",
        )

    delay = apply_async = __call__


def _task(**options: Any) -> Any:
    return _shared_task(**options) if _shared_task is not None else lambda function: _Missing()


def _run_agent(task: Any, run_id: str) -> None:
    """Execute a run, or go on with it; does nothing if it is over, waits for people, or is worked on."""
    try:
        if execute_run(run_id):
            return
    except RunStateError:
        return  # another worker has it
    except ConfigurationError as error:
        _refuse(run_id, task.request.id or "celery", error)
        raise
    try:
        run = services.get_run(run_id)
    except UnknownRunError:
        return  # it was deleted
    if run.state is RunStatus.RUNNING and task.request.retries < RETRIES:
        # Perhaps the worker that has it is the one that died.
        raise task.retry(countdown=_seconds_left(run), queue=app_settings.RUN_QUEUE)


def _reap(older_than: float | None = None) -> Mapping[str, Any]:
    """Do what ``mcp_client reap`` does; for Celery's beat."""
    report = services.reap(older_than=older_than)
    return {
        "runs": {run_id: str(what) for run_id, what in report.runs.items()},
        "approvals": report.approvals,
        "deleted": report.deleted_runs + report.deleted_approvals + report.deleted_receipts,
    }


run_agent: Final = _task(
    name="mcp_client_app.run_agent",
    bind=True,
    ignore_result=True,
    # A worker that dies does not take the run along: its message comes again.
    acks_late=True,
    reject_on_worker_lost=True,
    max_retries=RETRIES,
)(_run_agent)
"""Takes the id of a run."""
reap: Final = _task(name="mcp_client_app.reap", ignore_result=True)(_reap)
"""Takes ``older_than``: days, or nothing."""


def submit_run(run_id: str) -> None:
    """Have a run executed by a Celery worker of the queue ``MCP_CLIENT_RUN_QUEUE``.

    Raises:
        BackendUnavailableError: The broker cannot be reached.
        ConfigurationError: Celery is not installed.
    """
    unreachable = _OperationalError or ()
    try:
        run_agent.apply_async((run_id,), queue=app_settings.RUN_QUEUE)
    except unreachable as error:
        raise BackendUnavailableError("Celery's broker cannot be reached; try again later.") from error


def _refuse(run_id: str, owner: str, error: ConfigurationError) -> None:
    """End a run that this worker cannot execute at all; another try would meet the same."""
    if services.claim(run_id, owner) is not None:
        services.finish(run_id, owner, RunStatus.FAILED, code=error.code, detail=str(error))


def _seconds_left(run: AgentRun) -> int:
    """Return after how many seconds the lease of a run is over, if it is not renewed."""
    left = (run.lease_until - timezone.now()).total_seconds() if run.lease_until else 0.0
    return max(1, math.ceil(left) + 1)
