"""Tidying up: what nobody works on is settled, what is old is deleted, everything else stays."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcp_client_app import services
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentEvent, AgentRun, Approval, CallReceipt, RunCall
from mcp_client_app.services.run_settling import Settled
from tests.runs.conftest import NewRun, asked, fresh, give_up, prepared

pytestmark = pytest.mark.django_db(transaction=True)


def test_nothing_is_done_where_nothing_is_to_be_done(new_run: NewRun):
    runs = [new_run(), new_run(owner="a")]
    asked(runs[1])
    before = list(AgentRun.objects.order_by("pk").values())

    report = services.reap(older_than=0)

    assert report.is_empty
    assert list(AgentRun.objects.order_by("pk").values()) == before
    assert Approval.objects.get().status == "pending"


def test_abandoned_runs_are_settled_each_in_its_way(new_run: NewRun, given: list[str]):
    waited, resumed, lost, cancelled = new_run(), new_run(), new_run(), new_run()
    for run in (resumed, lost):
        services.submit(run)
    for run in (waited, resumed, cancelled):
        services.claim(run.pk, "a")
    services.cancel_run(cancelled.pk)
    for run in (waited, resumed, lost, cancelled):
        give_up(run)

    report = services.reap()

    assert report.runs == {
        str(waited.pk): Settled.FAILED,
        str(resumed.pk): Settled.RESUMED,
        str(lost.pk): Settled.HANDED_OUT,
        str(cancelled.pk): Settled.CANCELLED,
    }
    assert sorted(given[2:]) == sorted([str(resumed.pk), str(lost.pk)])
    assert services.reap().is_empty


def test_however_many_there_are(new_run: NewRun):
    for _ in range(30):
        new_run()
    AgentRun.objects.update(lease_until=timezone.now() - timedelta(seconds=1))

    assert len(services.reap().runs) == 30
    assert not AgentRun.objects.unfinished().exists()


def test_a_run_goes_on_when_nobody_has_answered_in_time(new_run: NewRun, given: list[str]):
    run = new_run(owner="a")
    approval = asked(run)
    services.pause(run.pk, "a", RunStatus.AWAITING_APPROVAL, messages=[])
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    report = services.reap()

    assert report.approvals == 1
    approval.refresh_from_db()
    assert approval.status == "expired"
    assert (fresh(run).state, given) == (RunStatus.QUEUED, [str(run.pk)])


def test_a_run_goes_on_whose_last_decision_was_not_followed(new_run: NewRun, given: list[str]):
    run = new_run(owner="a")
    asked(run)
    services.pause(run.pk, "a", RunStatus.AWAITING_INPUT, messages=[])
    Approval.objects.update(status="answered")

    assert services.reap().runs == {str(run.pk): Settled.RESUMED}
    assert (fresh(run).state, given) == (RunStatus.QUEUED, [str(run.pk)])


def test_runs_that_wait_cost_no_query_each(new_run: NewRun, django_assert_num_queries: Any):
    def wait() -> None:
        run = new_run(owner="a")
        asked(run)
        services.pause(run.pk, "a", RunStatus.AWAITING_APPROVAL, messages=[])

    wait()
    with CaptureQueriesContext(connection) as alone:
        assert services.reap().is_empty
    for _ in range(3):
        wait()

    with django_assert_num_queries(len(alone)):
        assert services.reap().is_empty


@pytest.mark.parametrize("status", list(RunStatus))
def test_only_what_ended_long_ago_is_deleted(new_run: NewRun, status: RunStatus):
    old, recent = new_run(owner="a"), new_run()
    asked(old)
    services.RunJournal(old.pk, "a", "c1").begin(prepared(), is_safe=False)
    AgentRun.objects.update(status=status.value, finished_at=timezone.now(), lease_until=None)
    AgentRun.objects.filter(pk=old.pk).update(finished_at=timezone.now() - timedelta(days=8))

    assert services.reap().deleted_runs == 0
    assert services.reap(older_than=9).deleted_runs == 0
    report = services.reap(older_than=7)

    assert report.deleted_runs == (1 if status.is_final else 0)
    kept = {recent.pk} if status.is_final else {old.pk, recent.pk}
    assert set(AgentRun.objects.values_list("pk", flat=True)) == kept
    counts = {model.objects.count() for model in (AgentEvent, RunCall, Approval)}
    assert counts == ({0} if status.is_final else {1})


def test_more_than_is_deleted_at_once_is_deleted(new_run: NewRun, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mcp_client_app.services.run_reaping.CHUNK", 2)
    for _ in range(5):
        services.finish(new_run(owner="a").pk, "a", RunStatus.COMPLETED)

    assert services.reap(older_than=0).deleted_runs == 5


@pytest.mark.parametrize(("status", "is_deleted"), [("pending", False), ("used", True), ("expired", True)])
def test_old_approvals_of_single_calls_are_deleted(new_run: NewRun, status: str, is_deleted: bool):
    fields: dict[str, Any] = {"status": status, "expires_at": timezone.now() + timedelta(days=8)}
    asked(None, **fields)  # type: ignore[arg-type]

    assert services.reap(older_than=7).deleted_approvals == 0
    if status != "pending":
        Approval.objects.update(expires_at=timezone.now() - timedelta(days=8))
    assert services.reap(older_than=7).deleted_approvals == is_deleted
    assert Approval.objects.exists() is not is_deleted


def test_receipts_whose_time_is_over_are_deleted(db: None):
    user = User.objects.create(username="ann")
    for key, days in [("old", -1), ("new", 1)]:
        expires_at = timezone.now() + timedelta(days=days)
        CallReceipt.objects.create(user=user, key=key, fingerprint="f", expires_at=expires_at)

    assert services.reap().deleted_receipts == 1
    assert CallReceipt.objects.get().key == "new"
