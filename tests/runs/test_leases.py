"""Who works on a run, and that nobody else writes to it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from mcp_client_app import services
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import RunStateError
from mcp_client_app.models import AgentRun, Approval, RunCall
from mcp_client_app.services.run_leases import MAX_ATTEMPTS
from mcp_client_app.services.run_rows import shallow
from tests.runs.conftest import NewRun, asked, fresh, give_up, kinds, prepared

FINAL = [status for status in RunStatus if status.is_final]


def test_a_queued_run_is_claimed_once(new_run: NewRun):
    run = new_run()

    mine = services.claim(run.pk, "a")

    assert mine is not None
    assert (mine.state, mine.lease_owner, mine.attempts) == (RunStatus.RUNNING, "a", 1)
    assert mine.started_at is not None
    assert mine.lease_until is not None
    assert mine.lease_until > timezone.now()
    assert mine.prompt == "Help!"
    assert services.claim(run.pk, "b") is None
    assert services.claim(run.pk, "a") is None, "a worker that has it does not begin it twice"
    assert kinds(run) == ["run.started"]
    assert run.events.get().data == {"agent": "support", "attempt": 1}


def test_a_run_is_claimed_by_its_id_as_text(new_run: NewRun):
    assert services.claim(str(new_run().pk), "a") is not None
    assert services.claim("no id", "a") is None


@pytest.mark.parametrize("status", [status for status in RunStatus if status is not RunStatus.QUEUED])
def test_a_run_that_is_not_queued_is_not_to_be_had(new_run: NewRun, status: RunStatus):
    run = new_run(owner="a")
    AgentRun.objects.filter(pk=run.pk).update(status=status.value)

    assert services.claim(run.pk, "b") is None
    assert kinds(run) == ["run.started"]


def test_a_run_whose_worker_gives_no_sign_of_life_is_taken_over(new_run: NewRun):
    run = new_run(owner="a")
    services.RunJournal(run.pk, "a", "c1").begin(prepared(), is_safe=False)
    give_up(run)

    taken = services.claim(run.pk, "b")

    assert taken is not None
    assert (taken.lease_owner, taken.attempts) == ("b", 2)
    call = RunCall.objects.get()
    assert (call.status, call.code) == ("unknown", "interrupted")
    assert services.renew(run.pk, "a").lost


def test_it_is_taken_over_only_so_often(new_run: NewRun):
    run = new_run()
    for attempt in range(MAX_ATTEMPTS):
        assert services.claim(run.pk, str(attempt)) is not None
        give_up(run)

    assert services.claim(run.pk, "last") is None


def test_a_run_that_is_to_be_cancelled_is_not_taken_over(new_run: NewRun):
    run = new_run(owner="a")
    services.cancel_run(run.pk)
    give_up(run)

    assert services.claim(run.pk, "b") is None


def test_a_sign_of_life_prolongs_the_lease_and_tells_of_a_cancellation(new_run: NewRun):
    run = new_run(owner="a")
    soon = timezone.now() + timedelta(seconds=1)
    AgentRun.objects.filter(pk=run.pk).update(lease_until=soon)

    assert services.renew(run.pk, "a") == services.Renewal(lost=False, cancel=False)
    lease = fresh(run).lease_until
    assert lease is not None
    assert lease > soon
    services.cancel_run(run.pk)
    assert services.renew(run.pk, "a") == services.Renewal(lost=False, cancel=True)


def test_a_late_sign_of_life_counts_while_nobody_else_has_the_run(new_run: NewRun):
    run = new_run(owner="a")
    give_up(run)

    assert not services.renew(run.pk, "a").lost
    assert services.claim(run.pk, "b") is None


def test_a_checkpoint_keeps_how_far_a_run_is(new_run: NewRun):
    run = new_run(owner="a")
    messages = [{"kind": "request", "text": "a\0b", "number": float("nan"), "parts": ("x",)}]

    services.checkpoint(
        run.pk,
        "a",
        messages=messages,
        usage={"requests": 1},
        tool_rounds=1,
        seconds_used=2.5,
        events=[("round", {"number": 1})],
    )

    row = fresh(run)
    assert row.messages == [{"kind": "request", "text": "a�b", "number": None, "parts": ["x"]}]
    assert (row.usage, row.tool_rounds, row.seconds_used) == ({"requests": 1}, 1, 2.5)
    assert kinds(run) == ["run.started", "round"]
    services.checkpoint(run.pk, "a", messages=[])
    row = fresh(run)
    assert (row.messages, row.usage, row.tool_rounds, row.seconds_used) == ([], {"requests": 1}, 1, 2.5)


def test_a_run_that_waits_for_a_person_is_let_go(new_run: NewRun, given: list[str]):
    run = new_run(owner="a")
    asked(run)

    status = services.pause(run.pk, "a", RunStatus.AWAITING_APPROVAL, messages=["m"], tool_rounds=1)

    row = fresh(run)
    assert status is row.state is RunStatus.AWAITING_APPROVAL
    assert (row.lease_owner, row.lease_until, row.attempts) == ("", None, 0)
    assert (row.messages, row.tool_rounds) == (["m"], 1)
    assert kinds(run) == ["run.started", "run.paused"]
    assert services.renew(run.pk, "a").lost
    assert services.claim(run.pk, "b") is None
    assert given == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "decided", [{"status": "approved"}, {"expires_at": timezone.now()}], ids=["decided", "expired"]
)
def test_a_person_who_is_faster_than_the_pause_is_not_waited_for(
    new_run: NewRun, given: list[str], decided: dict[str, Any]
):
    run = new_run(owner="a")
    asked(run, **decided)

    status = services.pause(run.pk, "a", RunStatus.AWAITING_APPROVAL, messages=["m"])

    assert status is fresh(run).state is RunStatus.QUEUED
    assert given == [str(run.pk)]
    again = services.claim(run.pk, "b")
    assert again is not None
    assert (again.messages, again.attempts) == (["m"], 1)


def test_a_run_that_is_to_be_cancelled_does_not_wait_for_people(new_run: NewRun, given: list[str]):
    run = new_run(owner="a")
    before = asked(run)
    services.cancel_run(run.pk)
    after = asked(run)

    status = services.pause(run.pk, "a", RunStatus.AWAITING_APPROVAL, messages=["m"], events=[("round", {})])

    row = fresh(run)
    assert status is row.state is RunStatus.CANCELLED
    assert (row.messages, row.lease_owner) == (["m"], "")
    assert kinds(run) == ["run.started", "round", "run.cancelled"]
    for approval in (before, after):
        approval.refresh_from_db()
        assert approval.status == "cancelled"
    assert given == []


@pytest.mark.parametrize("status", FINAL)
def test_the_last_event_says_how_a_run_ended(new_run: NewRun, status: RunStatus):
    run = new_run(owner="a")
    services.RunJournal(run.pk, "a", "c1").begin(prepared(), is_safe=False)
    approval = asked(run, answers={"a": 1}, status="answered")

    services.finish(
        run.pk,
        "a",
        status,
        code="some",
        detail="So\0.",
        text="Done.",
        messages=["m"],
        usage={"requests": 2},
        tool_rounds=1,
        events=[("round", {"number": 1})],
    )

    row = fresh(run)
    assert (row.state, row.code, row.detail, row.text) == (status, "some", "So�.", "Done.")
    assert (row.messages, row.usage, row.tool_rounds) == (["m"], {"requests": 2}, 1)
    assert (row.lease_owner, row.lease_until) == ("", None)
    assert row.finished_at is not None
    *_, last = run.events.order_by("number")
    endings = {"limit_reached": "run.limit"}
    assert kinds(run) == ["run.started", "round", endings.get(status, f"run.{status}")]
    assert last.data == {
        "status": status.value,
        "code": "some",
        "detail": "So�.",
        "text": "Done.",
        "tool_rounds": 1,
        "usage": {"requests": 2},
    }
    assert RunCall.objects.get().status == "unknown"
    approval = Approval.objects.get()
    assert (approval.status, approval.answers) == ("cancelled", None), "nobody is asked for nothing"


def _writes(run: AgentRun, owner: str) -> dict[str, Any]:
    return {
        "checkpoint": lambda: services.checkpoint(run.pk, owner, messages=["x"]),
        "pause": lambda: services.pause(run.pk, owner, RunStatus.AWAITING_INPUT, messages=["x"]),
        "finish": lambda: services.finish(run.pk, owner, RunStatus.COMPLETED, text="x"),
        "append": lambda: services.append_events(run.pk, [("round", {})], owner=owner),
        "begin": lambda: services.RunJournal(run.pk, owner, "x").begin(prepared(), is_safe=True),
        "ask": lambda: services.request_approval(
            "support", prepared().tool, {}, user=None, run=run, call_id="x"
        ),
    }


@pytest.mark.parametrize("write", ["checkpoint", "pause", "finish", "append", "begin"])
def test_a_worker_that_has_lost_its_run_writes_nothing(new_run: NewRun, write: str):
    run = new_run(owner="a")
    approval = asked(run)
    give_up(run)
    assert services.claim(run.pk, "b") is not None
    before = AgentRun.objects.filter(pk=run.pk).values().get()

    with pytest.raises(RunStateError) as caught:
        _writes(run, "a")[write]()

    assert (caught.value.run, caught.value.status) == (str(run.pk), "running")
    assert "does not hold the run any more" in str(caught.value)
    assert AgentRun.objects.filter(pk=run.pk).values().get() == before
    assert kinds(run) == ["run.started", "run.started"]
    assert not RunCall.objects.exists()
    approval.refresh_from_db()
    assert approval.status == "pending"


@pytest.mark.parametrize("write", ["checkpoint", "pause", "finish", "append", "begin", "ask"])
def test_nobody_writes_to_a_run_that_is_over_or_gone(new_run: NewRun, write: str):
    run = new_run(owner="a")
    services.finish(run.pk, "a", RunStatus.COMPLETED)

    with pytest.raises(RunStateError) as caught:
        _writes(run, "a")[write]()
    assert caught.value.status == "completed"
    with pytest.raises(RunStateError):
        _writes(run, "")[write]()

    AgentRun.objects.all().delete()
    with pytest.raises(RunStateError, match="The run is gone"):
        _writes(run, "a")[write]()


def test_what_is_too_deep_for_a_database_is_kept_as_text(new_run: NewRun):
    value: Any = {"a": [1, {"b": [2, {"c": [3]}]}]}

    assert shallow(value, 7) == value
    assert shallow(value, 4) == {"a": [1, {"b": [2, '{"c":[3]}']}]}
    assert shallow([[]], 1) == ["[]"]
    deep: Any = "core"
    for _ in range(150):
        deep = [deep]
    run = new_run(owner="a")
    services.checkpoint(run.pk, "a", messages=[deep])
    assert "core" in json.dumps(fresh(run).messages)
