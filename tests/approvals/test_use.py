"""Using an approval: for the call it was given for, once, in time; each refusal says why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import transaction

from mcp_client_app import services
from mcp_client_app.exceptions import ApprovalError, UnknownRunError
from mcp_client_app.models import Approval
from tests.approvals.cases import BUY, GIVEN, STATE, ask, ask_input, overdue, refusal, run_of, use, user

pytestmark = pytest.mark.django_db


@pytest.fixture
def approved(ann) -> Approval:
    """An approved call of a run of Ann's."""
    return services.approve(ask(ann, run=run_of(ann), call_id="c1").pk)


def test_an_approval_is_good_for_one_call(ann, approved):
    assert use(approved, ann) == GIVEN
    approved.refresh_from_db()
    assert (approved.status, approved.open_key) == ("used", None)
    assert approved.used_at is not None
    with pytest.raises(ApprovalError) as caught:
        use(approved, ann)
    assert refusal(caught) == "used"


def test_edited_arguments_are_what_is_sent(ann):
    row = ask(ann)
    services.approve(row.pk, arguments={"article": "tea", "count": 1})
    assert use(row, ann) == {"article": "tea", "count": 1}


def test_arguments_edited_to_none_at_all_are_none(ann):
    tool = replace(BUY, input_schema={"type": "object"})
    row = ask(ann, tool=tool)
    services.approve(row.pk, arguments={})
    assert use(row, ann, tool=tool) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"given": {**GIVEN, "count": 3}},
        {"given": {"article": "tea"}},
        {"given": {**GIVEN, "note": None}},
        {"tool": replace(BUY, name="sell")},
        {"tool": replace(BUY, server="market")},
    ],
)
def test_an_approval_is_not_good_for_another_call(ann, approved, changes):
    with pytest.raises(ApprovalError) as caught:
        use(approved, ann, **changes)
    assert refusal(caught) == "changed"
    assert use(approved, ann) == GIVEN


def test_edited_arguments_do_not_change_what_the_approval_is_for(ann):
    row = ask(ann)
    services.approve(row.pk, arguments={"article": "tea", "count": 1})
    with pytest.raises(ApprovalError) as caught:
        use(row, ann, {"article": "tea", "count": 1})
    assert refusal(caught) == "changed"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"toolset_name": "other"}, "other_agent"),
        ({"toolset_name": ""}, "other_agent"),
        ({"call_id": "c2"}, "other_run"),
        ({"run": None}, "other_run"),
    ],
)
def test_an_approval_is_not_good_elsewhere(ann, approved, changes, reason):
    with pytest.raises(ApprovalError) as caught:
        use(approved, ann, **changes)
    assert refusal(caught) == reason
    assert use(approved, ann, toolset_name="SUPPORT") == GIVEN


def test_an_approval_is_not_good_for_another_run(ann, approved):
    with pytest.raises(ApprovalError) as caught:
        use(approved, ann, run=run_of(ann))
    assert refusal(caught) == "other_run"


def test_an_approval_of_a_single_call_is_not_good_for_a_run(ann):
    row = services.approve(ask(ann).pk)
    with pytest.raises(ApprovalError) as caught:
        use(row, ann, run=run_of(ann))
    assert refusal(caught) == "other_run"
    assert use(row, ann, call_id="whatever") == GIVEN


def test_an_approval_is_not_good_for_another_user(ann, boss, approved):
    for other in (boss, user("eve"), None):
        with pytest.raises(ApprovalError) as caught:
            use(approved, other)
        assert refusal(caught) == "other_user"
    assert use(approved, ann) == GIVEN


def test_the_approval_of_a_user_who_is_gone_is_nobodys(ann):
    row = services.approve(ask(ann).pk)
    ann.delete()
    row.refresh_from_db()
    with pytest.raises(ApprovalError) as caught:
        use(row, None)
    assert refusal(caught) == "other_user"


def test_trusted_code_uses_what_it_has_asked_for_itself(ann):
    row = services.approve(ask(None).pk)
    with pytest.raises(ApprovalError) as caught:
        use(row, ann)
    assert refusal(caught) == "other_user"
    assert use(row, None) == GIVEN


def test_what_trusted_code_has_asked_for_is_not_for_visitors():
    row = services.approve(ask(None).pk)
    with pytest.raises(ApprovalError) as caught:
        use(row, AnonymousUser())
    assert refusal(caught) == "other_user"


@pytest.mark.parametrize("how", ["pending", "denied", "expired", "approved too late", "cancelled"])
def test_a_call_nobody_has_allowed_is_not_made(ann, how):
    row = ask(ann)
    texts = {
        "denied": "denied by a person: too dear",
        "expired": "not made: no person has decided in time",
        "approved too late": "not made: a person had agreed, and it was not made in time",
        "cancelled": "not made: it was withdrawn before a person had decided",
    }
    if how == "denied":
        services.deny(row.pk, reason="too dear")
    elif how == "cancelled":
        Approval.objects.settle(Approval.Status.CANCELLED)
    elif how != "pending":
        if how == "approved too late":
            services.approve(row.pk)
        overdue(row)
    with pytest.raises(ApprovalError) as caught:
        use(row, ann)
    assert refusal(caught) == ("expired" if how == "approved too late" else how)
    assert str(caught.value) == texts.get(how, "Nobody has decided yet whether this call may be made.")


@pytest.mark.parametrize("approval_id", ["", "nonsense", "00000000-0000-0000-0000-000000000000"])
def test_what_was_never_asked_for_is_unknown(ann, approval_id):
    with pytest.raises(UnknownRunError):
        services.use_approval(approval_id, toolset_name="support", tool=BUY, given=GIVEN, user=ann)


def test_an_approval_is_not_used_if_the_call_could_not_be_written_down(ann, approved):
    with transaction.atomic():
        use(approved, ann)
        transaction.set_rollback(True)
    assert use(approved, ann) == GIVEN


# Answers -------------------------------------------------------------------------------


def test_answers_and_the_servers_state_are_gone_once_they_are_used(ann):
    row = ask_input(ann, run=run_of(ann), call_id="c1")
    with pytest.raises(ApprovalError) as caught:
        use(row, ann)
    assert refusal(caught) == "pending"
    answered = services.answer_input(
        row.pk, responses={"colour": {"action": "accept", "content": {"colour": "red"}}}
    )
    assert (answered.status, answered.request_state) == ("answered", STATE)

    assert use(row, ann) == GIVEN

    row.refresh_from_db()
    assert (row.status, row.answers, row.request_state) == ("used", None, "")
    with pytest.raises(ApprovalError) as caught:
        use(row, ann)
    assert refusal(caught) == "used"


def test_answers_that_are_not_used_in_time_are_gone(ann):
    row = ask_input(ann)
    services.answer_input(row.pk, responses={"colour": {"action": "accept", "content": {"colour": "red"}}})
    overdue(row)
    assert services.expire_approvals() == 1
    row.refresh_from_db()
    assert (row.status, row.answers, row.request_state) == ("expired", None, "")
