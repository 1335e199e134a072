"""Who works on a run: claiming it, staying alive, writing down how far it is, letting it go.

A worker holds the lease of its run and renews it. Every write is conditional on still holding
it, and tells the run's readers in the same transaction: who sees a new status finds its event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentRun
from mcp_client_app.services.run_rows import (
    MAX_OWNER,
    PAUSED,
    Event,
    close_approvals,
    database,
    end,
    forget_started_calls,
    lease,
    locked,
    lost,
    parsed_id,
    rows,
    storable,
    write,
)
from mcp_client_app.services.run_submission import is_waiting_for_people, queue

__all__ = ["MAX_ATTEMPTS", "Renewal", "checkpoint", "claim", "finish", "pause", "renew"]

MAX_ATTEMPTS: Final = 3
"""So often a run is begun before it comes to rest; a run that ends its workers must not end them all."""


@dataclass(frozen=True)
class Renewal:
    """What a worker is told when it gives a sign of life."""

    lost: bool
    """Another worker has the run, or it was ended: stop, and write nothing more."""
    cancel: bool
    """Somebody asked to cancel the run: stop, and finish it as cancelled."""


def claim(run_id: object, owner: str) -> AgentRun | None:
    """Take a run that is queued, or whose worker gives no sign of life; None if it is not to be had.

    Calls of an earlier worker that have no end become ``unknown``. Writes ``run.started``.

    Args:
        run_id: The run.
        owner: A name of this worker that no other one ever has.
    """
    now = timezone.now()
    is_free = Q(status=RunStatus.QUEUED.value) | Q(
        status=RunStatus.RUNNING.value, lease_until__lt=now, attempts__lt=MAX_ATTEMPTS
    )
    with transaction.atomic(using=database()):
        run = locked(run_id, is_free, cancel_requested_at=None)
        if run is None:
            return None
        if run.started_at is not None:
            forget_started_calls(run)
        attempt = run.attempts + 1
        write(
            run,
            [("run.started", {"agent": run.agent_name, "attempt": attempt})],
            status=RunStatus.RUNNING.value,
            attempts=attempt,
            lease_owner=owner[:MAX_OWNER],
            lease_until=lease(),
            started_at=run.started_at or now,
        )
    return rows().get(pk=run.pk)


def renew(run_id: object, owner: str) -> Renewal:
    """Give a sign of life."""
    held = _held(run_id, owner)
    if not held.update(lease_until=lease()):
        return Renewal(lost=True, cancel=False)
    return Renewal(lost=False, cancel=held.filter(cancel_requested_at__isnull=False).exists())


def checkpoint(
    run_id: object,
    owner: str,
    *,
    messages: Sequence[Any],
    usage: Mapping[str, Any] | None = None,
    tool_rounds: int | None = None,
    seconds_used: float | None = None,
    events: Iterable[Event] = (),
) -> None:
    """Write down how far a run is: from there another worker can go on.

    Raises:
        RunStateError: The worker does not hold the run any more.
    """
    with transaction.atomic(using=database()):
        run = _held_and_locked(run_id, owner)
        write(run, events, lease_until=lease(), **_progress(messages, usage, tool_rounds, seconds_used))


def pause(
    run_id: object,
    owner: str,
    status: RunStatus,
    *,
    messages: Sequence[Any],
    usage: Mapping[str, Any] | None = None,
    tool_rounds: int | None = None,
    seconds_used: float | None = None,
    events: Iterable[Event] = (),
) -> RunStatus:
    """Let a run wait for people. Writes ``run.paused``.

    Returns:
        Where it stands then: ``queued`` if people were faster, and everything is decided already;
        ``cancelled`` if somebody has asked for that.

    Raises:
        RunStateError: The worker does not hold the run any more.
    """
    progress = _progress(messages, usage, tool_rounds, seconds_used)
    is_to_be_cancelled = renew(run_id, owner).cancel
    with transaction.atomic(using=database()):
        if is_to_be_cancelled:
            close_approvals(run_id)
        run = _held_and_locked(run_id, owner)
        if run.cancel_requested_at is not None:
            write(run, events)
            end(run, RunStatus.CANCELLED, **progress)
            return run.state
        told = [*events, (PAUSED, {"status": status.value})]
        write(
            run,
            told,
            status=status.value,
            attempts=0,
            lease_owner="",
            lease_until=None,
            **progress,
        )
        if not is_waiting_for_people(run):
            queue(run)
    return run.state


def finish(
    run_id: object,
    owner: str,
    status: RunStatus,
    *,
    code: str = "",
    detail: str = "",
    text: str = "",
    messages: Sequence[Any] | None = None,
    usage: Mapping[str, Any] | None = None,
    tool_rounds: int | None = None,
    seconds_used: float | None = None,
    events: Iterable[Event] = (),
) -> None:
    """End a run. Writes ``run.completed``, ``run.limit``, ``run.failed`` or ``run.cancelled``.

    Raises:
        RunStateError: The worker does not hold the run any more.
    """
    progress = _progress(messages, usage, tool_rounds, seconds_used)
    with transaction.atomic(using=database()):
        close_approvals(run_id)
        run = _held_and_locked(run_id, owner)
        forget_started_calls(run)
        write(run, events)
        end(run, status, code=code, detail=storable(detail), text=storable(text), **progress)


def _held(run_id: object, owner: str) -> Any:
    return rows().filter(pk=parsed_id(run_id), lease_owner=owner[:MAX_OWNER], status=RunStatus.RUNNING.value)


def _held_and_locked(run_id: object, owner: str) -> AgentRun:
    run = locked(run_id, lease_owner=owner[:MAX_OWNER], status=RunStatus.RUNNING.value)
    if run is None:
        raise lost(run_id)
    return run


def _progress(
    messages: Sequence[Any] | None,
    usage: Mapping[str, Any] | None,
    tool_rounds: int | None,
    seconds_used: float | None,
) -> dict[str, Any]:
    """Return the columns that say how far a run is; what is not given stays."""
    given = {
        "messages": None if messages is None else storable(list(messages)),
        "usage": None if usage is None else storable(dict(usage)),
        "tool_rounds": tool_rounds,
        "seconds_used": seconds_used,
    }
    return {name: value for name, value in given.items() if value is not None}
