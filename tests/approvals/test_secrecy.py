"""What is planted in calls, answers and states of servers shows up nowhere but where it belongs."""

from __future__ import annotations

import logging

import pytest

from mcp_client_app import services
from mcp_client_app.exceptions import MCPClientError
from tests.approvals.cases import BUY, ask, ask_input, question, run_of, use, user

pytestmark = pytest.mark.django_db

PLANTED = "planted-s3cret"


def attempts(ann):
    """Everything that logs or refuses, with the secret in whatever is given."""
    given = {"article": PLANTED}
    red = {"colour": {"action": "accept", "content": {"colour": "red"}}}
    run = run_of(ann)
    row = ask(ann, given, run=run, call_id="c1")
    yield lambda: services.deny(row.pk, user=user("auditor", "view_agentrun"))
    yield lambda: services.approve(row.pk, arguments={"article": "tea", "account": PLANTED})
    yield lambda: services.approve(row.pk, arguments={"article": PLANTED + "!"})
    yield lambda: use(row, ann, {"article": PLANTED, "count": 1})
    yield lambda: use(row, ann, given)
    yield lambda: ask(ann, {"article": PLANTED + "?"}, run=run, call_id="c1")
    asked = ask_input(ann, question(state=PLANTED), run=run, call_id="c1", given=given)
    wrong = {"colour": {"action": "accept", "content": {"colour": PLANTED}}}
    yield lambda: services.answer_input(asked.pk, responses=wrong)
    yield lambda: services.answer_input(asked.pk, responses=red)
    yield lambda: services.answer_input(asked.pk, responses=red)
    yield lambda: use(asked, ann, given)
    yield lambda: services.deny(ask(ann, {"article": PLANTED, "count": 7}).pk, reason=PLANTED)
    yield services.expire_approvals


def test_logs_and_refusals_hold_no_arguments_no_answers_and_no_state(ann, caplog):
    caplog.set_level(logging.DEBUG, "mcp_client_app")
    refusals = []
    for attempt in attempts(ann):
        try:
            attempt()
        except MCPClientError as error:
            refusals.append(f"{error} {error!r}")
    assert len(refusals) == 6
    assert PLANTED not in "".join(refusals)
    assert len(caplog.records) >= 8
    assert PLANTED not in caplog.text


def test_what_is_passed_around_shows_nothing_by_accident(ann):
    run = run_of(ann)
    row = ask_input(ann, question(state=PLANTED), run=run, call_id="c1", given={"article": PLANTED})
    services.answer_input(
        row.pk, responses={"colour": {"action": "accept", "content": {"colour": "red", "note": PLANTED}}}
    )
    state = services.approval_state(run)
    assert PLANTED in str(dict(state.decisions["c1"].input_responses))
    assert PLANTED not in f"{state!r} {row!r} {row}"


def test_names_of_fixed_arguments_are_not_in_the_schema_that_people_see(ann):
    assert "account" in BUY.input_schema["properties"]
    assert "account" not in str(ask(ann).schema)
