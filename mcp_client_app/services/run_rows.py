"""Rows of runs: locked, changed together with their events, and kept in a form that any database takes."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.db import connections, router, transaction
from django.db.models import F, Q
from django.utils import timezone

from mcp_client_app import json_codec
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import RunStateError
from mcp_client_app.models import AgentEvent, AgentRun, Approval, RunCall
from mcp_client_app.models.runs import AgentRunQuerySet
from mcp_client_app.services.run_feed import feed

__all__ = [
    "ENDINGS",
    "ENDS",
    "MAX_OWNER",
    "PAUSED",
    "Event",
    "close_approvals",
    "database",
    "end",
    "forget_started_calls",
    "lease",
    "lock",
    "locked",
    "lost",
    "parsed_id",
    "rows",
    "shallow",
    "storable",
    "store",
    "write",
]

Event = tuple[str, Mapping[str, Any]]
"""Kind and data."""

ENDINGS: Final[Mapping[RunStatus, str]] = {
    RunStatus.COMPLETED: "run.completed",
    RunStatus.LIMIT_REACHED: "run.limit",
    RunStatus.FAILED: "run.failed",
    RunStatus.CANCELLED: "run.cancelled",
}
"""The last event of a run, by how it ended."""
ENDS: Final = frozenset(ENDINGS.values())
"""Events after which nothing comes any more."""
PAUSED: Final = "run.paused"
"""The event after which nothing comes before people have decided."""

MAX_OWNER: Final = 100
"""Characters of the name of a worker."""
MARIADB_DEEPEST: Final = 30
"""Levels of arrays and objects; MariaDB refuses JSON that is nested deeper."""
_LARGE: Final = ("messages", "deps", "prompt", "text")


def database() -> str:
    """Return the database that is written to; everything of a run is read there, too."""
    return router.db_for_write(AgentRun)


def rows() -> AgentRunQuerySet:
    """Return all runs: a replica may not know yet what was saved a moment ago."""
    return AgentRun.objects.using(database())


def parsed_id(run_id: object) -> uuid.UUID:
    """Return a run's id, however it was written; one that no run has if it is none."""
    try:
        return run_id if isinstance(run_id, uuid.UUID) else uuid.UUID(str(run_id))
    except ValueError:
        return uuid.UUID(int=0)


def lease() -> datetime:
    """Return until when a worker that gives a sign of life now is left alone."""
    return timezone.now() + timedelta(seconds=app_settings.RUN_LEASE)


def locked(run_id: object, *conditions: Q, **fields: Any) -> AgentRun | None:
    """Lock a run until the open transaction ends; None if there is none for which the conditions hold.

    It is locked by writing, not by reading: SQLite knows no other lock, and refuses to write in
    a transaction that began by reading once another process has written.
    """
    if not lock(run_id, *conditions, **fields):
        return None
    return rows().defer(*_LARGE).get(pk=parsed_id(run_id))


def lock(run_id: object, *conditions: Q, **fields: Any) -> bool:
    """Lock a run as ``locked`` does, and read nothing of it; returns whether there is one."""
    found = rows().filter(*conditions, pk=parsed_id(run_id), **fields)
    return bool(found.update(event_count=F("event_count")))


def write(run: AgentRun, events: Iterable[Event] = (), **fields: Any) -> int:
    """Change a run that the open transaction has locked, and number its events.

    Returns:
        The number of the last event.
    """
    made = list(events)
    before = run.event_count
    if not (made or fields):
        return before
    fields["event_count"] = before + len(made)
    rows().filter(pk=run.pk).update(**fields)
    for name, value in fields.items():
        setattr(run, name, value)
    store(run.pk, made, before)
    return run.event_count


def store(run_id: uuid.UUID, events: Sequence[Event], before: int) -> None:
    """Store events of a run that the open transaction has locked, which has counted them already."""
    if not events:
        return
    now = timezone.now()
    AgentEvent.objects.using(database()).bulk_create(
        AgentEvent(run_id=run_id, number=number, kind=kind, data=storable(dict(data)), created_at=now)
        for number, (kind, data) in enumerate(events, before + 1)
    )
    told = partial(feed.stored, run_id, before + len(events))
    transaction.on_commit(told, using=database(), robust=True)


def end(run: AgentRun, status: RunStatus, *, code: str = "", detail: str = "", **fields: Any) -> None:
    """End a run that the open transaction has locked; its last event says what its row says."""
    fields |= {"status": status.value, "code": code, "detail": detail}
    told = {name: fields.get(name, getattr(run, name)) for name in ("text", "tool_rounds", "usage")}
    last = (ENDINGS[status], {"status": status.value, "code": code, "detail": detail, **told})
    write(run, [last], lease_owner="", lease_until=None, finished_at=timezone.now(), **fields)


def close_approvals(run_id: object) -> None:
    """Take back what people were still asked, or have decided in vain.

    Before the run itself is locked: whoever decides holds the approval, and then wants the run.
    """
    Approval.objects.using(database()).filter(run_id=parsed_id(run_id)).settle(Approval.Status.CANCELLED)


def forget_started_calls(run: AgentRun) -> list[str]:
    """Mark calls without an end as unknown; returns the tools of all calls of which nothing is known."""
    calls = RunCall.objects.using(database()).filter(run_id=run.pk)
    calls.filter(status=RunCall.Status.STARTED).update(
        status=RunCall.Status.UNKNOWN, code="interrupted", finished_at=timezone.now()
    )
    return list(calls.filter(status=RunCall.Status.UNKNOWN).values_list("tool", flat=True))


def lost(run_id: object) -> RunStateError:
    """Return the error for a worker whose run is not its own any more."""
    row = rows().filter(pk=parsed_id(run_id)).only("status", "cancel_requested_at").first()
    if row is None:
        return RunStateError("The run is gone.", run=str(run_id))
    if row.state is RunStatus.RUNNING and row.cancel_requested_at is not None:
        message = "The run is being cancelled: nothing more is begun."
    else:
        message = (
            "This worker does not hold the run any more: another one has taken it over, or it was ended."
        )
    return RunStateError(message, run=str(run_id), status=row.status)


def storable(value: Any) -> Any:
    """Return any JSON value as databases take it, and give it back: no NUL, no NaN, no tuples.

    Raises:
        TypeError: It has no JSON form.
    """
    plain = json_codec.loads(json_codec.dumps(json_codec.scrub(value)))
    return shallow(plain, MARIADB_DEEPEST) if connections[database()].vendor == "mysql" else plain


def shallow(value: Any, levels: int) -> Any:
    """Return a JSON value of so many levels of arrays and objects at most; deeper ones become JSON text."""
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return json_codec.dumps(value).decode()
    if isinstance(value, dict):
        return {key: shallow(item, levels - 1) for key, item in value.items()}
    return [shallow(item, levels - 1) for item in value]
