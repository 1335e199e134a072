"""Many at once: one wins, nothing is lost, nothing stands still. On PostgreSQL, too."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import pytest
from django.db import connections

from mcp_client_app import services
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import MCPClientError, RunStateError
from mcp_client_app.models import Approval, RunCall
from tests.runs.conftest import NewRun, asked, fresh, give_up, kinds, prepared

pytestmark = pytest.mark.django_db(transaction=True)
T = TypeVar("T")
MANY = 8
again = pytest.mark.parametrize("turn", range(3))
"""Once may be luck."""


def at_once(*works: Callable[[], T]) -> list[T | MCPClientError]:
    """Do all this in threads of its own, begun together; an error of ours takes the place of a value."""
    barrier = threading.Barrier(len(works), timeout=60)

    def begin(work: Callable[[], T]) -> T | MCPClientError:
        try:
            barrier.wait()
            return work()
        except MCPClientError as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(begin, works))


@again
def test_one_of_many_workers_gets_a_run(turn: int, new_run: NewRun):
    run = new_run()

    claims = at_once(*[partial(services.claim, run.pk, f"w{n}") for n in range(MANY)])

    [won] = [claim for claim in claims if claim is not None]
    assert won == run
    assert fresh(run).attempts == 1
    assert kinds(run) == ["run.started"]


@again
def test_one_of_many_workers_takes_an_abandoned_run_over(turn: int, new_run: NewRun):
    run = new_run(owner="gone")
    give_up(run)

    claims = at_once(*[partial(services.claim, run.pk, f"w{n}") for n in range(MANY)])

    assert len([claim for claim in claims if claim is not None]) == 1
    assert fresh(run).attempts == 2


@again
def test_an_abandoned_run_is_handed_out_once(turn: int, new_run: NewRun, given: list[str]):
    run = new_run()
    services.submit(run)
    services.claim(run.pk, "gone")
    give_up(run)

    at_once(*[partial(services.get_run, run.pk)] * MANY)

    assert given == [str(run.pk)] * 2
    assert fresh(run).state is RunStatus.QUEUED


@again
def test_a_worker_that_comes_back_and_one_that_takes_over_do_not_both_have_the_run(
    turn: int, new_run: NewRun
):
    run = new_run(owner="slow")
    give_up(run)

    at_once(
        partial(services.renew, run.pk, "slow"),
        partial(services.claim, run.pk, "other"),
        partial(services.get_run, run.pk),
    )

    row = fresh(run)
    holder = {"slow", "other"} if row.state is RunStatus.RUNNING else {""}
    assert row.lease_owner in holder
    alive = [name for name in ("slow", "other") if not services.renew(run.pk, name).lost]
    assert alive == ([row.lease_owner] if row.lease_owner else [])


def test_events_of_many_writers_have_no_gaps(new_run: NewRun):
    run = new_run(owner="a")

    def write(name: int) -> int:
        for number in range(10):
            services.append_events(run.pk, [("tool.call", {"writer": name, "number": number})] * 2)
        return 0

    assert at_once(*[partial(write, n) for n in range(MANY)]) == [0] * MANY

    assert len(kinds(run)) == fresh(run).event_count == MANY * 20 + 1
    for name in range(MANY):
        told = [
            event.data["number"]
            for event in run.events.order_by("number")
            if event.data.get("writer") == name
        ]
        assert told == sorted(told)


@again
def test_a_call_is_begun_once(turn: int, new_run: NewRun):
    run = new_run(owner="a")

    begun = at_once(*[lambda: services.RunJournal(run.pk, "a", "c1").begin(prepared(), is_safe=False)] * MANY)

    assert begun.count(None) == 1
    assert all(each is None or isinstance(each, RunStateError) for each in begun)
    assert RunCall.objects.filter(run=run).count() == 1


@again
def test_no_call_is_begun_after_the_run_is_cancelled_or_over(turn: int, new_run: NewRun):
    run = new_run(owner="a")

    begun, _ = at_once(
        lambda: services.RunJournal(run.pk, "a", "c1").begin(prepared(), is_safe=False),
        lambda: services.finish(run.pk, "a", RunStatus.COMPLETED),
    )

    statuses = list(RunCall.objects.filter(run=run).values_list("status", flat=True))
    assert statuses == (["unknown"] if begun is None else [])
    assert fresh(run).state is RunStatus.COMPLETED


@again
@pytest.mark.parametrize("outcome", ["approved", "denied"])
def test_a_run_whose_last_question_is_decided_while_it_pauses_goes_on(
    turn: int, new_run: NewRun, given: list[str], outcome: str
):
    """Neither may think that the other one will see to it."""
    run = new_run(owner="a")
    approval = asked(run)
    decide = services.approve if outcome == "approved" else services.deny

    at_once(
        lambda: services.pause(run.pk, "a", RunStatus.AWAITING_APPROVAL, messages=[]),
        lambda: decide(approval.pk),
    )

    assert fresh(run).state is RunStatus.QUEUED
    assert given == [str(run.pk)]
    assert Approval.objects.get(pk=approval.pk).status == outcome


@again
def test_two_last_decisions_queue_a_run_once(turn: int, new_run: NewRun, given: list[str]):
    run = new_run(owner="a")
    approvals = [asked(run, call_id=f"c{number}") for number in range(4)]
    services.pause(run.pk, "a", RunStatus.AWAITING_APPROVAL, messages=[])

    at_once(*[partial(services.deny, approval.pk) for approval in approvals])

    assert fresh(run).state is RunStatus.QUEUED
    assert given == [str(run.pk)]


@again
def test_deciding_and_cancelling_do_not_wait_for_each_other(turn: int, new_run: NewRun, given: list[str]):
    run = new_run(owner="a")
    approvals = [asked(run, call_id=f"c{number}") for number in range(3)]
    services.pause(run.pk, "a", RunStatus.AWAITING_APPROVAL, messages=[])
    works: list[Callable[[], Any]] = [partial(services.approve, each.pk) for each in approvals]

    at_once(*works, lambda: services.cancel_run(run.pk))

    assert fresh(run).state is RunStatus.CANCELLED
    assert not Approval.objects.filter(run=run).unsettled().exists()
    assert kinds(run)[-1] == "run.cancelled"


@again
def test_of_cancelling_and_finishing_one_holds(turn: int, new_run: NewRun):
    run = new_run(owner="a")

    cancelled, finished = at_once(
        lambda: services.cancel_run(run.pk),
        lambda: services.finish(run.pk, "a", RunStatus.COMPLETED),
    )

    assert finished is None
    assert fresh(run).state is RunStatus.COMPLETED
    # Either it was too late, or the worker was told too late.
    assert isinstance(cancelled, RunStateError) or fresh(run).cancel_requested_at is not None
    assert kinds(run) == ["run.started", "run.completed"]


@again
def test_a_run_that_is_cancelled_while_it_pauses_ends(turn: int, new_run: NewRun, given: list[str]):
    run = new_run(owner="a")
    asked(run)

    at_once(
        partial(services.pause, run.pk, "a", RunStatus.AWAITING_APPROVAL, messages=[]),
        partial(services.cancel_run, run.pk),
    )

    assert fresh(run).state is RunStatus.CANCELLED
    assert not Approval.objects.filter(run=run).unsettled().exists()
    assert given == []
