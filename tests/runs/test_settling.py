"""Runs whose process is gone: they go on, or end, and say truthfully what is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from mcp_client_app import services
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentRun
from mcp_client_app.services.run_leases import MAX_ATTEMPTS
from mcp_client_app.services.run_settling import end_abandoned
from tests.runs.conftest import NewRun, asked, fresh, give_up, kinds, prepared

pytestmark = pytest.mark.django_db(transaction=True)

Look = Callable[[AgentRun], Any]
LOOKS: dict[str, Look] = {
    "get": lambda run: services.get_run(run.pk),
    "list": lambda run: list(services.list_runs()),
    "events": lambda run: services.events_after(run.pk, 99),
}
looking = pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)


@looking
def test_a_run_that_somebody_waited_for_ends_with_its_process(new_run: NewRun, given: list[str], look: Look):
    run = new_run(owner="web-1")
    journal = services.RunJournal(run.pk, "web-1", "c1")
    journal.begin(prepared(), is_safe=False)
    approval = asked(run)
    give_up(run)

    look(run)

    row = fresh(run)
    assert (row.state, row.code, row.lease_owner) == (RunStatus.FAILED, "abandoned", "")
    assert "has given no sign of life; its lease ended at" in row.detail
    assert "Whether these calls have taken effect is unknown: refund." in row.detail
    assert kinds(run) == ["run.started", "run.failed"]
    assert run.calls.get().status == "unknown"
    approval.refresh_from_db()
    assert approval.status == "cancelled"
    assert given == []


@looking
def test_a_run_in_the_background_goes_on_where_it_was(new_run: NewRun, given: list[str], look: Look):
    run = new_run()
    services.submit(run)
    services.claim(run.pk, "a")
    services.checkpoint(run.pk, "a", messages=["m"])
    services.RunJournal(run.pk, "a", "c1").begin(prepared(), is_safe=False)
    give_up(run)

    look(run)

    row = fresh(run)
    assert (row.state, row.lease_owner, row.messages) == (RunStatus.QUEUED, "", ["m"])
    assert given == [str(run.pk)] * 2
    assert run.calls.get().status == "unknown"
    assert kinds(run) == ["run.started"]
    again = services.claim(run.pk, "b")
    assert again is not None
    assert again.attempts == 2
    assert services.renew(run.pk, "a").lost


def test_a_run_that_ends_its_processes_is_given_up(new_run: NewRun, given: list[str]):
    run = new_run()
    services.submit(run)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        assert services.claim(run.pk, str(attempt)) is not None
        give_up(run)
        seen = services.get_run(run.pk)

    assert (seen.state, seen.code) == (RunStatus.FAILED, "abandoned")
    assert f"That was attempt {MAX_ATTEMPTS} of {MAX_ATTEMPTS}." in seen.detail
    assert "unknown" not in seen.detail, "nothing was called"
    assert len(given) == MAX_ATTEMPTS


@pytest.mark.parametrize("in_background", [True, False])
@looking
def test_a_run_that_was_to_be_cancelled_is_cancelled(new_run: NewRun, look: Look, in_background: bool):
    run = new_run()
    if in_background:
        services.submit(run)
    services.claim(run.pk, "a")
    services.cancel_run(run.pk)
    give_up(run)

    look(run)

    assert (fresh(run).state, fresh(run).code) == (RunStatus.CANCELLED, "")
    assert kinds(run) == ["run.started", "run.cancelled"]


def test_an_abandoned_run_is_cancelled_by_who_asks_for_it(new_run: NewRun):
    run = new_run(owner="a")
    give_up(run)

    assert services.cancel_run(run.pk).state is RunStatus.CANCELLED


@looking
def test_a_queued_run_that_was_lost_is_handed_out_again(new_run: NewRun, given: list[str], look: Look):
    run = new_run()
    services.submit(run)
    give_up(run)

    look(run)

    row = fresh(run)
    assert row.state is RunStatus.QUEUED
    assert row.lease_until is not None
    assert row.lease_until > timezone.now(), "it is not handed out at every look"
    assert given == [str(run.pk)] * 2
    look(run)
    assert given == [str(run.pk)] * 2


def test_a_run_that_its_caller_never_began_fails(new_run: NewRun, given: list[str]):
    run = new_run()
    give_up(run)

    row = services.get_run(run.pk)

    assert (row.state, row.code) == (RunStatus.FAILED, "abandoned")
    assert row.detail == "The process that was to execute the run never began it."
    assert given == []


@pytest.mark.parametrize("status", [status for status in RunStatus if status.is_final or status.is_paused])
def test_what_is_over_or_waits_for_people_is_not_abandoned(new_run: NewRun, status: RunStatus):
    run = new_run()
    asked(run)
    AgentRun.objects.filter(pk=run.pk).update(status=status.value)
    give_up(run)

    for look in LOOKS.values():
        look(run)

    assert fresh(run).state is status
    assert kinds(run) == []


@looking
def test_a_run_that_is_worked_on_is_left_alone(new_run: NewRun, look: Look):
    run = new_run(owner="a")
    before = AgentRun.objects.values().get()

    look(run)

    assert AgentRun.objects.values().get() == before
    assert not services.renew(run.pk, "a").lost


def test_who_may_not_see_a_run_does_not_settle_it(new_run: NewRun, make_user: Any):
    run = new_run(owner="a")
    give_up(run)

    assert list(services.list_runs(make_user())) == []

    assert fresh(run).state is RunStatus.RUNNING


def test_a_worker_that_comes_back_just_in_time_keeps_its_run(new_run: NewRun):
    run = new_run(owner="a")
    approval = asked(run)
    give_up(run)
    seen = fresh(run)
    assert not services.renew(run.pk, "a").lost

    assert end_abandoned(seen) is None

    assert fresh(run).state is RunStatus.RUNNING
    approval.refresh_from_db()
    assert approval.status == "pending"
