"""Giving runs to what executes them: threads of this process, Celery, or a callable of the project's own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models import AgentRun, Approval
from mcp_client_app.services.run_rows import database, locked, rows, write

logger = logging.getLogger(__name__)

__all__ = ["begun_by", "is_waiting_for_people", "queue", "requeue", "submit", "submit_again"]

# Named, not imported: both stand above the services.
_BACKENDS: Final = {
    "thread": "mcp_client_app.agents.executor.submit_run",
    "celery": "mcp_client_app.tasks.submit_run",
}
_BACKENDS_AGAIN: Final = {**_BACKENDS, "thread": "mcp_client_app.agents.executor.submit_run_again"}
QUEUE_PATIENCE: Final = 300.0
"""Seconds after which a queued run that nobody has begun is handed out again, by a backend with a queue."""


def submit(run: AgentRun, *, backend: str | None = None) -> None:
    """Have a queued run executed in the background, once the open transaction is committed.

    If the backend does not take it, there is no run: it is deleted, and the error raised.

    Args:
        run: The run.
        backend: Another one than ``MCP_CLIENT_RUN_BACKEND`` says; whoever goes on with the run later, does
            so where that says.

    Raises:
        BusyError: This process executes as many runs as it may.
        ConfigurationError: The backend cannot be loaded.
    """
    named = backend or app_settings.RUN_BACKEND
    run.in_background, run.lease_until = True, begun_by(named)
    rows().filter(pk=run.pk).update(in_background=True, lease_until=run.lease_until)
    transaction.on_commit(partial(_hand_over_new, str(run.pk), named), using=database())


def requeue(run_id: object) -> bool:
    """Have a run go on that has waited for people; False if it still waits, or does not wait at all."""
    with transaction.atomic(using=database()):
        # Locked whatever its status: a worker may be about to pause it.
        run = locked(run_id)
        if run is None or not run.state.is_paused or is_waiting_for_people(run):
            return False
        queue(run)
    return True


def queue(run: AgentRun, **fields: Any) -> None:
    """Queue a run that the open transaction has locked; afterwards it is handed to the backend."""
    write(
        run,
        status=RunStatus.QUEUED.value,
        in_background=True,
        lease_owner="",
        lease_until=begun_by(),
        **fields,
    )
    transaction.on_commit(partial(submit_again, str(run.pk)), using=database(), robust=True)


def is_waiting_for_people(run: AgentRun) -> bool:
    """Say whether a question to a person is still open."""
    return Approval.objects.using(database()).filter(run_id=run.pk).pending().exists()


def begun_by(backend: str | None = None) -> datetime:
    """Return until when a run that is queued now should have been begun."""
    patience = float(app_settings.RUN_LEASE)
    if (backend or app_settings.RUN_BACKEND) != "thread":
        patience = max(QUEUE_PATIENCE, 10 * patience)
    return timezone.now() + timedelta(seconds=patience)


def submit_again(run_id: str) -> bool:
    """Hand over a run that has begun already. If that fails it stays queued, and is handed over later."""
    try:
        _backend(app_settings.RUN_BACKEND, _BACKENDS_AGAIN)(run_id)
    except Exception as error:  # noqa: BLE001 - whatever it is, the run must not be lost by it
        logger.warning("The run %s stays queued: %s: %s", run_id, type(error).__name__, error)
        return False
    return True


def _hand_over_new(run_id: str, named: str) -> None:
    try:
        _backend(named)(run_id)
    except BaseException as error:
        deleted, _ = rows().filter(pk=run_id, status=RunStatus.QUEUED.value, attempts=0).delete()
        if deleted or not isinstance(error, Exception):
            raise
        # A broker may have passed on what it did not confirm: then there is a run after all.
        logger.warning("The run %s was begun all the same: %s", run_id, type(error).__name__)


def _backend(named: str, backends: Mapping[str, str] = _BACKENDS) -> Callable[[str], Any]:
    try:
        backend: Callable[[str], Any] = import_string(backends.get(named, named.replace(":", ".")))
    except ImportError as error:
        raise ConfigurationError(
            f"MCP_CLIENT_RUN_BACKEND: {named!r} cannot be loaded: {error}. Write 'thread', 'celery', "
            "or the dotted path of a callable that takes the id of a run.",
            field="MCP_CLIENT_RUN_BACKEND",
        ) from error
    return backend
