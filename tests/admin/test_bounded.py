"""Waiting for several things at once, so long and no longer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pytest
from django.db import transaction

from mcp_client_app.admin.bounded import run_bounded
from mcp_client_app.exceptions import ServerUnavailableError
from mcp_client_app.models import ServerConfig
from tests import leftovers

request_id: ContextVar[str] = ContextVar("request_id")

PATIENCE = 20.0
"""Never waited for: it only bounds a test that fails."""


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()
    assert leftovers.our_threads() == []


def test_each_piece_of_work_has_its_own_outcome():
    def fail(left: float) -> int:
        raise ServerUnavailableError("It is down.")

    outcomes = run_bounded({"good": lambda left: 1, "bad": fail}, PATIENCE)
    assert outcomes["good"].value == 1
    assert str(outcomes["bad"].error) == "It is down."


def test_work_is_done_side_by_side():
    meeting = threading.Barrier(8)
    outcomes = run_bounded({str(n): lambda left: meeting.wait(left) for n in range(8)}, PATIENCE)
    assert sorted(outcome.value or 0 for outcome in outcomes.values()) == list(range(8))


def test_what_takes_long_is_pending_and_hides_nothing_that_is_done(gate):
    done = threading.Event()
    work = {"slow": lambda left: gate.wait(), "fast": lambda left: done.set()}
    outcomes = run_bounded(work, 0.2)
    assert outcomes["slow"].is_pending
    assert not outcomes["fast"].is_pending
    assert done.is_set()


def test_a_bug_is_no_outcome():
    def bug(left: float) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_bounded({"x": bug}, PATIENCE)


def test_work_runs_in_the_context_of_the_request():
    request_id.set("r-1")
    assert run_bounded({"x": lambda left: request_id.get()}, PATIENCE)["x"].value == "r-1"


@pytest.mark.django_db(transaction=True)
def test_within_a_transaction_work_sees_what_it_has_written():
    with transaction.atomic():
        ServerConfig.objects.create(name="one", command="x")
        counted = run_bounded({"x": lambda left: ServerConfig.objects.count()}, PATIENCE)
    assert counted["x"].value == 1
