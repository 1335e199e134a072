"""Handing runs to what executes them: after the commit, and never lost or executed by mistake."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from mcp_client_app import services
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import BusyError, ConfigurationError
from mcp_client_app.models import AgentRun
from mcp_client_app.services import run_submission
from tests.runs.conftest import NewRun, asked, fresh, undone

pytestmark = pytest.mark.django_db(transaction=True)
REFUSE = "tests.runs.backend.refuse"


def test_a_run_is_handed_over_once_it_is_there_for_others(new_run: NewRun, given: list[str]):
    with transaction.atomic():
        run = new_run()
        services.submit(run)
        assert given == []

    assert given == [str(run.pk)]
    assert fresh(run).in_background


def test_a_run_that_is_rolled_back_is_not_handed_over(new_run: NewRun, given: list[str]):
    with undone():
        services.submit(new_run())

    assert given == []


def test_a_run_that_no_backend_takes_does_not_exist(new_run: NewRun, settings: Any):
    settings.MCP_CLIENT_RUN_BACKEND = REFUSE

    with pytest.raises(BusyError):
        services.submit(new_run())

    assert not AgentRun.objects.exists()


def test_a_run_that_was_begun_although_its_backend_failed_is_there(new_run: NewRun, settings: Any):
    settings.MCP_CLIENT_RUN_BACKEND = "tests.runs.backend.begin_unconfirmed"
    run = new_run()

    services.submit(run)

    assert fresh(run).state is RunStatus.RUNNING


@pytest.mark.parametrize(
    "path", ["tests.runs.backend.nothing", "no.such.module", "tests.runs.backend:nothing"]
)
def test_a_backend_that_cannot_be_loaded_is_named(new_run: NewRun, settings: Any, path: str):
    settings.MCP_CLIENT_RUN_BACKEND = path

    with pytest.raises(ConfigurationError) as caught:
        services.submit(new_run())

    assert caught.value.field == "MCP_CLIENT_RUN_BACKEND"
    assert path in str(caught.value)
    assert not AgentRun.objects.exists()


def test_a_backend_may_be_written_with_a_colon(new_run: NewRun, given: list[str], settings: Any):
    settings.MCP_CLIENT_RUN_BACKEND = "tests.runs.backend:take"
    run = new_run()

    services.submit(run)

    assert given == [str(run.pk)]


def test_a_paused_run_goes_on_when_nothing_is_open_any_more(new_run: NewRun, given: list[str]):
    run = new_run(owner="a")
    approvals = [asked(run), asked(run)]
    services.pause(run.pk, "a", RunStatus.AWAITING_APPROVAL, messages=["m"])

    for approval, goes_on in zip(approvals, [False, True], strict=True):
        type(approval).objects.filter(pk=approval.pk).update(status="approved")
        assert services.requeue(run.pk) is goes_on
    assert services.requeue(run.pk) is False

    row = fresh(run)
    assert (row.state, row.in_background, row.messages) == (RunStatus.QUEUED, True, ["m"])
    assert given == [str(run.pk)]


@pytest.mark.parametrize("status", [status for status in RunStatus if not status.is_paused])
def test_only_a_paused_run_is_queued_again(new_run: NewRun, given: list[str], status: RunStatus):
    run = new_run()
    AgentRun.objects.filter(pk=run.pk).update(status=status.value)

    assert not services.requeue(run.pk)

    assert (fresh(run).state, given) == (status, [])


def test_a_run_that_goes_on_waits_for_its_turn_if_the_backend_is_full(
    new_run: NewRun, given: list[str], settings: Any, caplog: pytest.LogCaptureFixture
):
    run = new_run(owner="a")
    asked(run)
    services.pause(run.pk, "a", RunStatus.AWAITING_APPROVAL, messages=[])
    run.approvals.update(status="denied")
    settings.MCP_CLIENT_RUN_BACKEND = REFUSE

    assert services.requeue(run.pk)

    row = fresh(run)
    assert row.state is RunStatus.QUEUED
    assert row.lease_until is not None
    assert row.lease_until > timezone.now()
    assert f"The run {run.pk} stays queued: BusyError" in caplog.text


def test_who_looks_at_a_paused_run_that_waits_for_nobody_has_it_go_on(new_run: NewRun, given: list[str]):
    run = new_run(owner="a")
    asked(run)
    services.pause(run.pk, "a", RunStatus.AWAITING_APPROVAL, messages=[])
    assert services.get_run(run.pk).state is RunStatus.AWAITING_APPROVAL
    run.approvals.update(expires_at=timezone.now())

    assert services.get_run(run.pk).state is RunStatus.QUEUED
    assert given == [str(run.pk)]


@pytest.mark.parametrize(("lease", "seconds"), [(3, 300), (60, 600)])
def test_a_backend_with_a_queue_is_given_longer_to_begin(settings: Any, lease: int, seconds: int):
    settings.MCP_CLIENT_RUN_LEASE = lease

    here = run_submission.begun_by("thread")
    queued = run_submission.begun_by("celery")

    assert queued - here >= timedelta(seconds=seconds - lease)
