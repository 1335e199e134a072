"""Events: in order, without gaps, readable from any point, fit for any database."""

from __future__ import annotations

import uuid

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from mcp_client_app import services
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import UnknownRunError
from mcp_client_app.models import AgentEvent
from mcp_client_app.services.run_feed import Look, feed
from tests.runs.conftest import NewRun, fresh, give_up, kinds, undone


def test_events_are_numbered_from_one(new_run: NewRun):
    run = new_run()

    assert services.append_events(run.pk, [("round", {"number": 1}), ("round", {"number": 2})]) == 2
    assert services.append_events(run.pk, []) == 2
    assert services.append_events(str(run.pk), [("tool.call", {"arguments": {"a": "b\0\ud800"}})]) == 3

    found = services.events_after(run.pk)
    assert [(event.number, event.kind) for event in found] == [
        (1, "round"),
        (2, "round"),
        (3, "tool.call"),
    ]
    assert found[-1].data == {"arguments": {"a": "b��"}}


def test_events_are_read_from_any_point(new_run: NewRun):
    run, other = new_run(), new_run()
    services.append_events(run.pk, [("round", {"number": number}) for number in range(5)])
    services.append_events(other.pk, [("round", {})])

    assert [event.number for event in services.events_after(run.pk, 3)] == [4, 5]
    assert [event.number for event in services.events_after(run.pk, 1, limit=2)] == [2, 3]
    assert services.events_after(run.pk, 5) == []
    assert services.events_after(run.pk, 99) == []


def test_what_is_rolled_back_leaves_no_gap(new_run: NewRun):
    run = new_run()
    with undone():
        services.append_events(run.pk, [("round", {"number": 1})])

    assert services.append_events(run.pk, [("round", {"number": 2})]) == 1
    assert fresh(run).event_count == AgentEvent.objects.count() == 1


@pytest.mark.parametrize("run_id", [uuid.uuid4(), "no id"], ids=["gone", "no id"])
@pytest.mark.django_db
def test_there_are_no_events_of_an_unknown_run(run_id: object):
    with pytest.raises(UnknownRunError):
        services.events_after(run_id)
    with pytest.raises(UnknownRunError):
        services.append_events(run_id, [("round", {})])


def test_who_reads_the_events_of_an_abandoned_run_learns_its_end(new_run: NewRun):
    run = new_run(owner="a")
    give_up(run)

    [last] = services.events_after(run.pk, 1)

    assert (last.kind, last.data["code"]) == ("run.failed", "abandoned")
    assert kinds(run) == ["run.started", "run.failed"]


def test_reading_events_that_are_there_takes_one_query(new_run: NewRun):
    run = new_run(owner="a")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert len(services.events_after(run.pk)) == 1

    assert len(queries) == 1


@pytest.mark.django_db(transaction=True)
def test_readers_of_this_process_are_told_after_the_commit(new_run: NewRun):
    run = new_run(owner="a")
    with feed.watch(run.pk) as watch:
        with transaction.atomic():
            services.append_events(run.pk, [("round", {})])
            services.finish(run.pk, "a", RunStatus.COMPLETED)
            # The thread that looks for other processes' events may have told of those before.
            assert watch.get(0) in (None, Look()), "nothing is told that may be rolled back"
        while (news := watch.get(30)) != Look(3):
            assert news is not None
