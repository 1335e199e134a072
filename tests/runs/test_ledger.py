"""The ledger of a run's calls: what was begun is known after any crash, and not begun twice."""

from __future__ import annotations

import asyncio
import logging

import pytest
from django.db import DatabaseError

from mcp_client_app import services
from mcp_client_app.exceptions import (
    ConnectionLostError,
    InputRequiredError,
    MCPClientError,
    NotConnectedError,
    ProtocolError,
    RequestTimeoutError,
    RunStateError,
)
from mcp_client_app.models import AgentRun, RunCall
from mcp_client_app.services.run_ledger import recorded_result
from mcp_client_app.services.toolset_results import ToolsetResult
from mcp_client_app.toolsets.rendering import ImagePart, RenderedResult, TextPart
from tests.runs.conftest import NewRun, fresh, give_up, prepared, undone


def answered(
    *parts: TextPart | ImagePart, is_error: bool = False, error: MCPClientError | None = None
) -> ToolsetResult:
    """Return what a toolset answers."""
    return ToolsetResult(name="refund", rendered=RenderedResult(parts, is_error=is_error), error=error)


def test_a_call_is_written_down_before_and_after(new_run: NewRun):
    run = new_run(owner="a")
    journal = services.RunJournal(run.pk, "a", "c1")
    call = prepared(amount=3, note="a\0b")

    assert services.recorded_call(run.pk, "c1") is None
    journal.begin(call, is_safe=False)
    begun = services.recorded_call(run.pk, "c1")
    assert begun is not None
    assert (begun.status, begun.server_name, begun.tool) == ("started", "shop", "refund")
    assert begun.arguments == {"amount": 3, "note": "a�b"}, "without the fixed ones"
    assert not begun.is_safe
    assert begun.finished_at is None

    journal.end(call, answered(TextPart("do\0ne"), ImagePart("aGk=", "image/png", "an image")), None)
    ended = services.recorded_call(run.pk, "c1")
    assert ended is not None
    assert (ended.status, ended.code) == ("done", "ok")
    assert ended.finished_at is not None
    assert recorded_result(ended) == RenderedResult(
        (TextPart("do�ne"), ImagePart("aGk=", "image/png", "an image"))
    )


TIMEOUT = RequestTimeoutError("No answer.", server="shop", sent=True)


@pytest.mark.parametrize(
    ("answer", "error", "status", "code", "text"),
    [
        (answered(TextPart("no"), is_error=True), None, "failed", "tool_failed", "no"),
        (answered(TextPart("late"), is_error=True, error=TIMEOUT), None, "unknown", "timeout", "late"),
        (None, TIMEOUT, "unknown", "timeout", "Error calling mcp tool shop__refund: No answer."),
        (
            None,
            RequestTimeoutError("Queue.", sent=False),
            "failed",
            "timeout",
            "Error calling mcp tool shop__refund: Queue.",
        ),
        (
            None,
            ConnectionLostError("Lost."),
            "unknown",
            "connection_lost",
            "Error calling mcp tool shop__refund: Lost.",
        ),
        (
            None,
            NotConnectedError("Off."),
            "failed",
            "not_connected",
            "Error calling mcp tool shop__refund: Off.",
        ),
        (None, ProtocolError("No."), "failed", "protocol_error", "Error calling mcp tool shop__refund: No."),
        (None, InputRequiredError("Who?"), "failed", "input_required", None),
        (None, asyncio.CancelledError(), "unknown", "interrupted", None),
        (None, ZeroDivisionError("planted"), "unknown", "interrupted", None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException | ToolsetResult) else None,
)
def test_the_ledger_says_what_is_known(
    new_run: NewRun,
    answer: ToolsetResult | None,
    error: BaseException | None,
    status: str,
    code: str,
    text: str | None,
):
    run = new_run(owner="a")
    journal = services.RunJournal(run.pk, "a", "c1")
    journal.begin(prepared(), is_safe=False)

    journal.end(prepared(), answer, error)

    call = RunCall.objects.get()
    assert (call.status, call.code) == (status, code)
    read = recorded_result(call)
    assert (read and read.text) == text
    if text is not None:
        assert read is not None
        assert read.is_error


@pytest.mark.parametrize("is_safe", [True, False], ids=["safe", "unsafe"])
@pytest.mark.parametrize("end", ["started", "unknown", "done", "failed", "input_required"])
def test_a_call_is_repeated_only_if_that_does_no_harm(new_run: NewRun, is_safe: bool, end: str):
    run = new_run(owner="a")
    journal = services.RunJournal(run.pk, "a", "c1")
    journal.begin(prepared(amount=3), is_safe=is_safe)
    endings: dict[str, tuple[ToolsetResult | None, BaseException | None]] = {
        "unknown": (None, TIMEOUT),
        "done": (answered(TextPart("done")), None),
        "failed": (answered(TextPart("no"), is_error=True), None),
        "input_required": (None, InputRequiredError()),
    }
    if end != "started":
        journal.end(prepared(amount=3), *endings[end])
    give_up(run)
    assert services.claim(run.pk, "b") is not None
    before = RunCall.objects.values().get()
    again = services.RunJournal(run.pk, "b", "c1")

    if end == "input_required" or (is_safe and end in ("started", "unknown")):
        with pytest.raises(RunStateError, match="not repeated"):
            services.RunJournal(run.pk, "b", "c1").begin(prepared(amount=4), is_safe=is_safe)
        again.begin(prepared(amount=3), is_safe=is_safe)
        call = RunCall.objects.get()
        assert (call.status, call.code, call.result, call.finished_at) == ("started", "", None, None)
    else:
        with pytest.raises(RunStateError, match="not repeated"):
            again.begin(prepared(amount=3), is_safe=is_safe)
        assert RunCall.objects.values().get() == before


def test_each_call_of_a_run_has_a_row_of_its_own(new_run: NewRun):
    first, second = new_run(owner="a"), new_run(owner="a")
    for run, call_id in [(first, "c1"), (first, "c2"), (second, "c1")]:
        services.RunJournal(run.pk, "a", call_id).begin(prepared(), is_safe=False)

    assert RunCall.objects.count() == 3


def test_nothing_is_begun_while_a_run_is_being_cancelled(new_run: NewRun):
    run = new_run(owner="a")
    services.cancel_run(run.pk)

    with pytest.raises(RunStateError, match="being cancelled: nothing more is begun"):
        services.RunJournal(run.pk, "a", "c1").begin(prepared(), is_safe=True)
    assert not RunCall.objects.exists()


def test_the_end_of_an_earlier_attempt_does_not_end_a_later_one(new_run: NewRun):
    run = new_run(owner="a")
    slow = services.RunJournal(run.pk, "a", "c1")
    slow.begin(prepared(), is_safe=True)
    give_up(run)
    assert services.claim(run.pk, "b") is not None
    services.RunJournal(run.pk, "b", "c1").begin(prepared(), is_safe=True)

    slow.end(prepared(), answered(TextPart("late")), None)

    assert RunCall.objects.get().status == "started"


def test_a_worker_that_was_given_up_still_tells_what_became_of_its_call(new_run: NewRun):
    run = new_run(owner="a")
    slow = services.RunJournal(run.pk, "a", "c1")
    slow.begin(prepared(), is_safe=False)
    give_up(run)
    assert services.claim(run.pk, "b") is not None

    slow.end(prepared(), answered(TextPart("late")), None)

    assert RunCall.objects.get().status == "done"


def test_a_call_that_is_begun_in_a_transaction_that_fails_was_not_begun(new_run: NewRun):
    run = new_run(owner="a")
    with undone():
        services.RunJournal(run.pk, "a", "c1").begin(prepared(), is_safe=False)

    assert services.recorded_call(run.pk, "c1") is None
    assert fresh(run).event_count == 1


def test_a_database_that_is_away_costs_no_answer(
    new_run: NewRun, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    run = new_run(owner="a")
    journal = services.RunJournal(run.pk, "a", "c1")
    journal.begin(prepared(), is_safe=False)

    def fail(*_args: object, **_kwargs: object) -> None:
        raise DatabaseError("planted: the row")

    with monkeypatch.context() as patch:
        patch.setattr("django.db.models.query.QuerySet.update", fail)
        journal.end(prepared(), answered(TextPart("done")), None)

    [record] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert "'shop'" in record.getMessage()
    assert "planted" not in caplog.text
    assert RunCall.objects.get().status == "started"


def test_the_calls_of_a_run_go_with_it(new_run: NewRun):
    run = new_run(owner="a")
    services.RunJournal(run.pk, "a", "c1").begin(prepared(), is_safe=False)

    AgentRun.objects.all().delete()

    assert not RunCall.objects.exists()
