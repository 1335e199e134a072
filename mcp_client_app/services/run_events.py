"""What happens in a run, in order: numbered without gaps, whoever writes, to be read from any point."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models import F

from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import UnknownRunError
from mcp_client_app.models import AgentEvent
from mcp_client_app.services.run_rows import Event, database, lost, parsed_id, rows, store
from mcp_client_app.services.run_settling import look_after

__all__ = ["append_events", "events_after"]

AT_ONCE = 500
"""Events that are read with one query."""


def append_events(run_id: object, events: Iterable[Event], *, owner: str | None = None) -> int:
    """Store events of a run; returns the number of the last one.

    The first event of an attempt and those of a run that comes to rest are written by
    ``claim``, ``pause`` and ``finish``, together with what they tell.

    Args:
        run_id: The run.
        events: Kind and data of each.
        owner: Who holds the run; None writes in any case.

    Raises:
        RunStateError: ``owner`` does not hold the run any more.
        UnknownRunError: There is no such run.
    """
    held = {} if owner is None else {"lease_owner": owner, "status": RunStatus.RUNNING.value}
    known, told = parsed_id(run_id), list(events)
    with transaction.atomic(using=database()):
        # Counted before they are written: that locks the run.
        if rows().filter(pk=known, **held).update(event_count=F("event_count") + len(told)):
            last: int = rows().values_list("event_count", flat=True).get(pk=known)
            store(known, told, last - len(told))
            return last
    if owner is not None:
        raise lost(run_id)
    raise UnknownRunError


def events_after(run_id: object, number: int = 0, *, limit: int = AT_ONCE) -> list[AgentEvent]:
    """Return the events after a number, oldest first; settles the run if it turns out to be abandoned.

    A run's last event is ``run.completed``, ``run.limit``, ``run.failed`` or ``run.cancelled``.

    Raises:
        UnknownRunError: There is no such run.
    """
    found = _read(run_id, number, limit)
    if found:
        return found
    run = rows().filter(pk=parsed_id(run_id)).only("status", "lease_until").first()
    if run is None:
        raise UnknownRunError
    return _read(run_id, number, limit) if look_after(run) else found


def _read(run_id: object, number: int, limit: int) -> list[AgentEvent]:
    events = AgentEvent.objects.using(database()).filter(run_id=parsed_id(run_id), number__gt=number)
    return list(events.order_by("number")[:limit])
