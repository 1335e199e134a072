"""Many at once, in threads with connections of their own: one decides, one uses, no run waits for ever."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from mcp_client_app import services
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import ApprovalError, MCPClientError
from mcp_client_app.models import Approval
from mcp_client_app.models.approvals import ApprovalQuerySet
from mcp_client_app.services import approval_decisions, approvals
from tests.approvals import cases
from tests.approvals.cases import GIVEN, ask, ask_input, overdue, run_of, use, user

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 8


def at_once(*work: Callable[[], Any]) -> list[Any]:
    """Do all of it at the same moment; return results and errors, in order."""
    barrier = threading.Barrier(len(work))

    def one(function: Callable[[], Any]) -> Any:
        barrier.wait(30)
        try:
            return function()
        except MCPClientError as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(work)) as pool:
        return [future.result(60) for future in [pool.submit(one, function) for function in work]]


Meet = Callable[[Any, str], None]


@pytest.fixture
def meet(monkeypatch: pytest.MonkeyPatch) -> Meet:
    """Have all threads wait for each other where each has found, by this function, that it may go on."""

    def at(place: Any, name: str) -> None:
        barrier = threading.Barrier(THREADS)
        found_out, threads = getattr(place, name), threading.local()

        def check(*args: Any) -> Any:
            found = found_out(*args)
            if not hasattr(threads, "has_met"):
                threads.has_met = True
                barrier.wait(30)
            return found

        monkeypatch.setattr(place, name, check)

    return at


def reasons(outcomes: list[Any]) -> Counter[str | None]:
    return Counter(each.reason if isinstance(each, ApprovalError) else "won" for each in outcomes)


def test_of_many_who_decide_one_wins_and_the_others_are_told_who(meet):
    meet(approval_decisions, "not_decidable")
    people = [user(f"boss{number}", "decide_approval") for number in range(THREADS)]
    row = ask(user("ann"))

    def decide(number: int) -> Callable[[], Approval]:
        verb = services.deny if number % 2 else services.approve
        return lambda: verb(row.pk, user=people[number], reason=str(number))

    outcomes = at_once(*(decide(number) for number in range(THREADS)))

    assert reasons(outcomes) == {"won": 1, "decided": THREADS - 1}
    (won,) = (each for each in outcomes if isinstance(each, Approval))
    row.refresh_from_db()
    assert (row.decided_by_name, row.reason) == (won.decided_by_name, won.reason)
    assert {str(each) for each in outcomes if isinstance(each, ApprovalError)} == {
        f"This was {row.status} by {row.decided_by_name} already."
    }


def test_of_many_calls_one_uses_the_approval(meet):
    ann = user("ann")
    row = services.approve(ask(ann).pk)
    meet(approvals, "not_usable")
    outcomes = at_once(*[lambda: use(row, ann)] * THREADS)
    assert reasons(outcomes) == {"won": 1, "used": THREADS - 1}
    assert [each for each in outcomes if not isinstance(each, ApprovalError)] == [GIVEN]


@pytest.mark.parametrize("is_in_a_run", [True, False])
def test_many_who_ask_for_the_same_call_ask_once(meet, is_in_a_run):
    ann = user("ann")
    place: dict[str, Any] = {"run": run_of(ann), "call_id": "c1"} if is_in_a_run else {}
    meet(ApprovalQuerySet, "first")
    rows = at_once(*[lambda: ask(ann, **place)] * THREADS)
    assert {row.pk for row in rows} == {Approval.objects.get().pk}


def test_a_run_whose_approvals_are_decided_at_once_goes_on_once():
    ann = user("ann")
    for attempt in range(5):
        run = run_of(ann, "awaiting_approval")
        rows = [ask(ann, run=run, call_id=f"c{number}") for number in range(THREADS)]
        cases.handed_over.clear()
        at_once(*(partial(services.approve, row.pk) for row in rows))
        run.refresh_from_db()
        assert (attempt, run.status, cases.handed_over) == (attempt, "queued", [str(run.pk)])


def pauses(run: Any) -> Callable[[], RunStatus]:
    return lambda: services.pause(run.pk, "worker", RunStatus.AWAITING_APPROVAL, messages=[])


def test_a_run_that_pauses_while_its_last_approval_is_decided_goes_on():
    ann = user("ann")
    for verb in (services.approve, services.deny, overdue_and_expire) * 4:
        run = run_of(ann, "running", lease_owner="worker")
        row = ask(ann, run=run, call_id="c1")
        cases.handed_over.clear()
        at_once(pauses(run), partial(verb, row.pk))
        run.refresh_from_db()
        assert (run.status, cases.handed_over) == ("queued", [str(run.pk)])


def overdue_and_expire(key: Any) -> int:
    overdue(Approval.objects.get(pk=key))
    return services.expire_approvals()


def test_a_run_is_cancelled_or_goes_on_but_never_both():
    ann = user("ann")
    for _ in range(6):
        run = run_of(ann, "awaiting_approval")
        row = ask(ann, run=run, call_id="c1")
        _, decided = at_once(partial(services.cancel_run, run.pk), partial(services.approve, row.pk))
        run.refresh_from_db()
        row.refresh_from_db()
        assert run.status == "cancelled"
        assert row.status == "cancelled"
        if isinstance(decided, ApprovalError):
            assert decided.reason == "cancelled"


def test_deciding_and_the_end_of_time_leave_one_outcome():
    ann = user("ann")
    for _ in range(6):
        row = ask(ann)
        outcome, _ = at_once(partial(services.approve, row.pk), partial(overdue_and_expire, row.pk))
        row.refresh_from_db()
        if isinstance(outcome, ApprovalError):
            assert (outcome.reason, row.status) == ("expired", "expired")
        else:
            assert row.decided_at is not None


@pytest.mark.parametrize("verb", ["approve", "deny", "use"])
def test_time_that_ends_in_the_last_moment_has_ended(monkeypatch, verb):
    """The row is looked at in time, and written too late."""
    ann = user("ann")
    row = ask(ann)
    if verb == "use":
        services.approve(row.pk)
    place, name = (approvals, "not_usable") if verb == "use" else (approval_decisions, "not_decidable")
    found_out = getattr(place, name)

    def looked_at(seen: Approval) -> Any:
        found = found_out(seen)
        overdue(row)
        return found

    monkeypatch.setattr(place, name, looked_at)
    with pytest.raises(ApprovalError) as caught:
        use(row, ann) if verb == "use" else getattr(services, verb)(row.pk)
    assert cases.refusal(caught) == "expired"
    row.refresh_from_db()
    assert row.status == ("approved" if verb == "use" else "pending")


def test_an_answer_is_used_by_one(meet):
    ann = user("ann")
    row = ask_input(ann, run=run_of(ann), call_id="c1")
    services.answer_input(row.pk, responses={"colour": {"action": "cancel"}})
    meet(approvals, "not_usable")
    outcomes = at_once(*[lambda: use(row, ann)] * THREADS)
    assert reasons(outcomes) == {"won": 1, "used": THREADS - 1}


def test_who_waits_for_a_call_that_is_being_written_down_sees_what_became_of_it():
    """The first one rolls back after the second has begun to wait: the second one gets it."""
    ann = user("ann")
    row = services.approve(ask(ann).pk)
    taken, second_begins = threading.Event(), threading.Event()

    def first() -> None:
        with transaction.atomic():
            use(row, ann)
            taken.set()
            second_begins.wait(30)
            transaction.set_rollback(True)

    def second() -> Any:
        taken.wait(30)
        second_begins.set()
        return use(row, ann)

    assert at_once(first, second) == [None, GIVEN]


def test_decisions_of_users_who_are_deleted_meanwhile_stay():
    boss = user("boss", "decide_approval")
    row = services.approve(ask(user("ann")).pk, user=boss)
    User.objects.all().delete()
    row.refresh_from_db()
    assert (row.status, row.decided_by, row.decided_by_name, row.username) == (
        "approved",
        None,
        "boss",
        "ann",
    )
