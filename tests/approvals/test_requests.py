"""Asking for an approval: once per call, with what people need and without what they must not see."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError
from django.utils import timezone

from mcp_client_app import services
from mcp_client_app.exceptions import ApprovalError, InvalidArgumentsError
from mcp_client_app.models import Approval
from mcp_client_app.services.approval_rows import new_row, place
from mcp_client_app.services.fingerprints import call_fingerprint
from tests.approvals.cases import (
    BUY,
    GIVEN,
    STATE,
    ask,
    ask_input,
    overdue,
    question,
    refusal,
    run_of,
    use,
    user,
)

pytestmark = pytest.mark.django_db


def test_a_call_is_kept_as_the_model_gave_it_without_what_is_fixed(ann):
    row = ask(ann)
    assert (row.kind, row.status, row.agent_name, row.username) == ("approval", "pending", "support", "ann")
    assert (row.server_name, row.tool, row.arguments) == ("shop", "buy", GIVEN)
    assert row.schema is not None
    assert set(row.schema["properties"]) == {"article", "count"}
    assert row.schema["required"] == ["article"]


def test_asking_again_within_a_run_gives_the_same_row(ann):
    run = run_of(ann)
    row = ask(ann, run=run, call_id="c1")
    assert ask(ann, run=str(run.pk), call_id="c1").pk == row.pk
    assert ask(ann, run=run, call_id="c2").pk != row.pk
    services.approve(row.pk)
    assert ask(ann, run=run, call_id="c1").pk == row.pk


def test_without_a_run_the_same_call_of_the_same_user_and_agent_is_asked_for_once(ann, boss):
    row = ask(ann)
    assert ask(ann, dict(reversed(GIVEN.items()))).pk == row.pk
    others = [
        ask(ann, {**GIVEN, "count": 3}),
        ask(ann, tool=replace(BUY, name="sell")),
        ask(ann, toolset_name="other"),
        ask(boss),
        ask(None),
    ]
    assert len({row.pk, *(other.pk for other in others)}) == 6


def test_a_used_approval_without_a_run_has_to_be_asked_for_anew(ann):
    row = ask(ann)
    services.approve(row.pk)
    assert ask(ann).pk == row.pk
    use(row, ann)
    again = ask(ann)
    assert (again.pk != row.pk, again.status) == (True, "pending")


def test_a_call_without_a_run_that_was_denied_can_be_asked_for_anew(ann):
    row = services.deny(ask(ann).pk)
    again = ask(ann)
    assert (again.pk != row.pk, again.status) == (True, "pending")


def test_an_overdue_approval_without_a_run_has_to_be_asked_for_anew(ann):
    row = overdue(ask(ann))
    again = ask(ann)
    row.refresh_from_db()
    assert (again.pk != row.pk, row.status) == (True, "expired")


def settled(row: Approval, how: str) -> None:
    if how == "denied":
        services.deny(row.pk, reason="too dear")
    elif how == "expired":
        overdue(row)
    elif how == "used":
        services.approve(row.pk)
        use(row, row.user)
    else:
        Approval.objects.filter(pk=row.pk).settle(Approval.Status.CANCELLED)


@pytest.mark.parametrize("how", ["denied", "expired", "used", "cancelled"])
def test_a_call_of_a_run_that_is_settled_is_not_asked_for_again(ann, how):
    run = run_of(ann)
    settled(ask(ann, run=run, call_id="c1"), how)
    with pytest.raises(ApprovalError) as caught:
        ask(ann, run=run, call_id="c1")
    assert refusal(caught) == how
    assert Approval.objects.count() == 1


def test_another_call_under_the_id_of_a_known_one_is_refused(ann):
    run = run_of(ann)
    ask(ann, run=run, call_id="c1")
    with pytest.raises(ApprovalError) as caught:
        ask(ann, {**GIVEN, "count": 3}, run=run, call_id="c1")
    assert refusal(caught) == "changed"


@pytest.mark.parametrize(
    ("lifetime", "setting", "seconds"),
    [(60.0, 5.0, 60), (None, 120.0, 120), (0.0, 5.0, 3650 * 86_400), (1e300, 5.0, 3650 * 86_400)],
)
def test_an_approval_waits_as_long_as_the_agent_or_the_setting_says(
    ann, settings, lifetime, setting, seconds
):
    settings.MCP_CLIENT_APPROVAL_LIFETIME = setting
    row = ask(ann, lifetime=lifetime)
    assert row.expires_at - row.created_at == timedelta(seconds=seconds)


def test_once_approved_it_has_as_long_to_be_used_as_it_had_to_be_decided(ann):
    row = ask(ann, lifetime=3600.0)
    created = timezone.now() - timedelta(seconds=3000)
    Approval.objects.filter(pk=row.pk).update(
        created_at=created, expires_at=created + timedelta(seconds=3600)
    )
    approved = services.approve(row.pk)
    assert approved.decided_at is not None
    assert approved.expires_at == approved.decided_at + timedelta(seconds=3600)


def test_arguments_that_no_database_can_keep_are_mended_or_refused(ann):
    row = ask(ann, {"article": "a\0b\ud800", "count": float("nan")})
    row.refresh_from_db()
    assert row.arguments == {"article": "a\ufffdb\ufffd", "count": None}
    with pytest.raises(InvalidArgumentsError):
        ask(ann, {"article": object()})


@pytest.mark.parametrize("value", [1.0, 1e22, 1.5e300, -0.0, 10**30, 0.1, 2**63, "\0", [{"a": 1.0}]])
def test_what_a_database_does_to_arguments_does_not_change_the_call(ann, value):
    row = ask(ann, {"article": value})
    row.refresh_from_db()
    services.approve(row.pk)
    assert use(row, ann, row.arguments) == row.arguments


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (1.0, 1, True),
        (1e22, 10**22, True),
        (1.5e300, 15 * 10**299, True),
        ("a\0", "a\ufffd", True),
        ({"x": 1, "y": 2}, {"y": 2, "x": 1}, True),
        (1, True, False),
        (0.1, 0, False),
        (1e22, 10**22 + 1, False),
        (1, "1", False),
        ([1, 2], [2, 1], False),
        (None, 0, False),
    ],
)
def test_a_call_is_told_from_others_however_its_numbers_are_written(one, other, is_same):
    fingerprints = [call_fingerprint(BUY, {"value": value}) for value in (one, other)]
    assert (fingerprints[0] == fingerprints[1]) is is_same


def test_a_whole_number_and_its_neighbour_are_different_calls(ann):
    row = ask(ann, {"article": 2**53})
    services.approve(row.pk)
    with pytest.raises(ApprovalError) as caught:
        use(row, ann, {"article": 2**53 + 1})
    assert refusal(caught) == "changed"


def test_a_schema_that_is_too_large_to_be_shown_is_not_kept(ann):
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        schema = {"allOf": [schema]}
    row = ask(ann, tool=replace(BUY, input_schema={"properties": {"account": {}}, "allOf": [schema]}))
    assert row.schema is None


def test_a_row_that_the_database_refuses_for_another_reason_is_not_tried_for_ever(ann):
    row = ask(ann)
    other = new_row("x", BUY, GIVEN, kind="approval", user=ann, run=None, call_id="", lifetime=None)
    other.pk = row.pk
    with pytest.raises(IntegrityError):
        place(other)


# Questions of servers ------------------------------------------------------------------


def test_a_question_is_kept_with_the_servers_state(ann):
    run = run_of(ann)
    row = ask_input(ann, run=run, call_id="c1")
    row.refresh_from_db()
    assert row.is_input
    assert row.requests["colour"]["method"] == "elicitation/create"
    assert row.requests["colour"]["params"]["message"] == "Which colour?"
    assert row.request_state == STATE
    assert ask_input(ann, run=run, call_id="c1").pk == row.pk


def test_another_question_in_the_same_call_takes_the_place_of_the_first(ann):
    run = run_of(ann)
    first = ask_input(ann, run=run, call_id="c1")
    second = ask_input(ann, question(state="another"), run=run, call_id="c1")
    first.refresh_from_db()
    assert (first.status, first.request_state) == ("cancelled", "")
    assert (second.status, second.request_state) == ("pending", "another")
    state = services.approval_state(run)
    assert state.pending == (second,)
    # It goes back with an answer, and nowhere else.
    assert state.decisions["c1"].request_state is None


def test_a_question_belongs_to_the_arguments_that_were_asked_about(ann):
    run = run_of(ann)
    ask_input(ann, run=run, call_id="c1")
    with pytest.raises(ApprovalError) as caught:
        ask_input(ann, given={"article": "coffee"}, run=run, call_id="c1")
    assert refusal(caught) == "changed"


def test_a_call_that_was_edited_goes_on_with_the_edited_arguments(ann):
    run = run_of(ann)
    row = ask(ann, run=run, call_id="c1")
    services.approve(row.pk, arguments={"article": "tea", "count": 1})
    assert use(row, ann) == {"article": "tea", "count": 1}

    first = ask_input(ann, run=run, call_id="c1")
    services.answer_input(first.pk, responses={"colour": {"action": "accept", "content": {"colour": "red"}}})
    assert use(first, ann) == {"article": "tea", "count": 1}

    second = ask_input(ann, question(state="later"), run=run, call_id="c1")
    services.answer_input(second.pk, responses={"colour": {"action": "decline"}})
    assert use(second, ann) == {"article": "tea", "count": 1}


def test_the_state_of_a_run_says_of_each_call_what_holds_now(ann):
    run, other = run_of(ann), run_of(user("eve"))
    rows = {name: ask(ann, {"article": name}, run=run, call_id=name) for name in "abcde"}
    ask(other.user, run=other, call_id="x")
    services.approve(rows["a"].pk)
    services.approve(rows["b"].pk, arguments={"article": "B"})
    services.deny(rows["c"].pk, reason="no")
    overdue(rows["d"])
    use(rows["a"], ann, {"article": "a"})
    asked = ask_input(ann, given={"article": "a"}, run=run, call_id="a")
    services.answer_input(asked.pk, responses={"colour": {"action": "accept", "content": {"colour": "red"}}})

    state = services.approval_state(run)

    assert state.pending == (rows["e"],)
    found = {name: (each.status, each.denial) for name, each in state.decisions.items()}
    assert found == {
        "a": ("answered", ""),
        "b": ("approved", ""),
        "c": ("denied", "denied by a person: no"),
        "d": ("expired", "not made: no person has decided in time"),
        "e": ("pending", ""),
    }
    assert state.decisions["b"].is_edited
    assert state.decisions["a"].approval == str(asked.pk)
    assert state.decisions["a"].request_state == STATE
    assert state.decisions["a"].input_responses == {
        "colour": {"action": "accept", "content": {"colour": "red", "gift": False}}
    }
