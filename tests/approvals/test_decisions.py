"""People decide: who may, once, in time, with which changes; afterwards the run goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser

from mcp_client_app import services
from mcp_client_app.exceptions import (
    ApprovalError,
    InvalidArgumentsError,
    InvalidInputError,
    PermissionDeniedError,
    ToolBlockedError,
    UnknownRunError,
)
from mcp_client_app.models import AgentConfig, AgentServer, Approval, ServerConfig
from tests.approvals import cases
from tests.approvals.cases import BUY, GIVEN, ask, ask_input, overdue, question, refusal, run_of, use, user

pytestmark = pytest.mark.django_db

RED = {"colour": {"action": "accept", "content": {"colour": "red"}}}
DECIDE = {
    "approve": lambda row, who: services.approve(row.pk, user=who),
    "deny": lambda row, who: services.deny(row.pk, user=who),
    "answer": lambda row, who: services.answer_input(row.pk, user=who, responses=RED),
}


def asked_for(verb: str, owner) -> Approval:
    return ask_input(owner) if verb == "answer" else ask(owner)


# Who -----------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", DECIDE)
def test_whose_call_it_is_may_decide_and_is_written_down(ann, verb):
    row = DECIDE[verb](asked_for(verb, ann), ann)
    assert (row.decided_by, row.decided_by_name) == (ann, "ann")
    assert row.status == {"approve": "approved", "deny": "denied", "answer": "answered"}[verb]
    assert row.decided_at is not None


@pytest.mark.parametrize("verb", DECIDE)
def test_who_may_decide_for_others_may(ann, boss, verb):
    assert DECIDE[verb](asked_for(verb, ann), boss).decided_by == boss


@pytest.mark.parametrize("verb", DECIDE)
@pytest.mark.parametrize("permission", ["view_agentrun", "view_approval"])
def test_who_only_sees_what_others_do_may_not_decide(ann, verb, permission):
    row = asked_for(verb, ann)
    with pytest.raises(PermissionDeniedError) as caught:
        DECIDE[verb](row, user("auditor", permission))
    assert caught.value.permission == "mcp_client_app.decide_approval"
    row.refresh_from_db()
    assert row.status == "pending"


@pytest.mark.parametrize("verb", DECIDE)
@pytest.mark.parametrize("who", ["another", "change_approval", "nobody", "inactive", "inactive decider"])
def test_to_everybody_else_there_is_no_such_approval(ann, verb, who):
    row = asked_for(verb, ann)
    ann.is_active = False
    others = {
        "another": lambda: user("eve"),
        "change_approval": lambda: user("eve", "change_approval"),
        "nobody": AnonymousUser,
        "inactive": lambda: ann,
        "inactive decider": lambda: user("old", "decide_approval", is_active=False),
    }
    with pytest.raises(UnknownRunError):
        DECIDE[verb](row, others[who]())
    row.refresh_from_db()
    assert row.status == "pending"


def test_a_call_without_a_user_is_decided_by_those_who_may_decide_for_others(boss):
    row = ask(None)
    with pytest.raises(UnknownRunError):
        services.approve(row.pk, user=user("eve"))
    with pytest.raises(UnknownRunError):
        services.approve(row.pk, user=AnonymousUser())
    assert services.approve(row.pk, user=boss).status == "approved"


def test_everybody_sees_their_own_and_who_decides_for_others_sees_all(ann, boss):
    eve = user("eve", "view_agentrun", "view_approval")
    own, others = ask(ann), ask(eve)
    assert services.list_approvals(ann) == [own]
    assert services.list_approvals(boss) == [others, own]
    assert services.list_approvals() == [others, own]
    assert services.list_approvals(AnonymousUser()) == []
    assert services.get_approval(own.pk, ann) == own
    assert services.get_approval(str(own.pk), boss) == own
    for other in (eve, AnonymousUser()):
        with pytest.raises(UnknownRunError):
            services.get_approval(own.pk, other)


def test_approvals_are_listed_by_what_they_are_about(ann):
    run = run_of(ann)
    rows = {
        "plain": ask(ann),
        "run": ask(ann, run=run, call_id="c"),
        "agent": ask(ann, toolset_name="other"),
        "server": ask(ann, tool=replace(BUY, server="market")),
        "input": ask_input(ann),
        "late": overdue(ask(ann, {"article": "late"})),
    }
    listed: dict[str, dict[str, Any]] = {
        "run": {"run": str(run.pk)},
        "agent": {"agent": "OTHER"},
        "server": {"server": "market"},
        "input": {"kind": "input"},
        "late": {"status": "expired"},
    }
    for name, filters in listed.items():
        assert services.list_approvals(ann, **filters) == [rows[name]], name
    assert len(services.list_approvals(ann, status="pending", limit=2)) == 2
    with pytest.raises(UnknownRunError):
        services.list_approvals(ann, run="nonsense")


# Once, and in time ---------------------------------------------------------------------


@pytest.mark.parametrize("verb", DECIDE)
def test_nobody_decides_twice(ann, boss, verb):
    row = asked_for(verb, ann)
    DECIDE[verb](row, ann)
    again = ["answer"] if verb == "answer" else ["approve", "deny"]
    for other in again:
        with pytest.raises(ApprovalError) as caught:
            DECIDE[other](row, boss)
        assert refusal(caught) == "decided"
        how = {"approve": "approved", "deny": "denied", "answer": "answered"}[verb]
        assert str(caught.value) == f"This was {how} by ann already."
    row.refresh_from_db()
    assert row.decided_by == ann


def test_what_was_used_counts_as_decided(ann):
    row = services.approve(ask(ann).pk, user=ann)
    use(row, ann)
    with pytest.raises(ApprovalError) as caught:
        services.deny(row.pk, user=ann)
    assert (refusal(caught), str(caught.value)) == ("decided", "This was approved by ann already.")


@pytest.mark.parametrize("zones", [True, False])
@pytest.mark.parametrize("verb", DECIDE)
def test_nobody_decides_when_the_time_is_over(ann, settings, verb, zones):
    settings.USE_TZ = zones
    row = overdue(asked_for(verb, ann))
    with pytest.raises(ApprovalError) as caught:
        DECIDE[verb](row, ann)
    assert refusal(caught) == "expired"
    row.refresh_from_db()
    assert (row.status, row.decided_by) == ("expired", None)


@pytest.mark.parametrize("verb", DECIDE)
def test_nobody_decides_what_was_withdrawn(ann, verb):
    row = asked_for(verb, ann)
    Approval.objects.settle(Approval.Status.CANCELLED)
    with pytest.raises(ApprovalError) as caught:
        DECIDE[verb](row, ann)
    assert refusal(caught) == "cancelled"


def test_a_question_is_neither_approved_nor_denied_and_a_call_is_not_answered(ann):
    for verb, row in (("approve", ask_input(ann)), ("deny", ask_input(ann)), ("answer", ask(ann))):
        with pytest.raises(ApprovalError) as caught:
            DECIDE[verb](row, ann)
        assert refusal(caught) == "other_kind"


def test_what_the_agent_refuses_by_now_cannot_be_approved(ann):
    agent = AgentConfig.objects.create(name="support")
    server = ServerConfig.objects.create(name="shop", command="x")
    chosen = AgentServer.objects.create(agent=agent, server=server, tool_approvals={"buy": "always"})
    row = ask(ann)
    chosen.tool_approvals = {"b*": "deny"}
    chosen.save()
    with pytest.raises(ToolBlockedError, match="nobody can approve them"):
        services.approve(row.pk)
    assert services.deny(row.pk).status == "denied"


# Edited arguments ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"article": 1}, "article: 1 is not of type"),
        ({"count": 1}, '"article" is a required property'),
        ({"article": "tea", "count": 0}, "count: 0 is less than the minimum"),
        ({"article": "tea", "account": "mine"}, "the argument 'account' is fixed for this tool"),
    ],
)
def test_edited_arguments_have_to_fit_the_tool(ann, arguments, said):
    row = ask(ann)
    with pytest.raises(InvalidArgumentsError, match=said) as caught:
        services.approve(row.pk, user=ann, arguments=arguments)
    assert caught.value.schema == row.schema
    row.refresh_from_db()
    assert (row.status, row.edited_arguments) == ("pending", None)


@pytest.mark.parametrize(
    "schema", [{"type": "nonsense"}, {"$ref": "https://schemas.example.com/purchase.json"}]
)
def test_arguments_that_cannot_be_checked_are_not_edited(ann, schema):
    row = ask(ann, tool=replace(BUY, input_schema=schema), fixed_names=())
    with pytest.raises(ApprovalError, match="changed arguments cannot be checked") as caught:
        services.approve(row.pk, user=ann, arguments={"article": "coffee"})
    assert refusal(caught) == "no_schema"
    assert services.approve(row.pk, user=ann, arguments=GIVEN).edited_arguments is None


@pytest.mark.parametrize(("given", "edited"), [(1, True), (0, False), ("a", "b"), ([1], [True])])
def test_each_change_of_the_arguments_counts(ann, given, edited):
    tool = replace(BUY, input_schema={"type": "object"})
    row = ask(ann, {"article": given}, tool=tool)
    found = services.approve(row.pk, arguments={"article": edited}).edited_arguments
    assert json.dumps(found) == json.dumps({"article": edited})


def test_what_is_written_in_another_order_is_no_change(ann):
    row = ask(ann)
    assert services.approve(row.pk, arguments=dict(reversed(GIVEN.items()))).edited_arguments is None


def test_arguments_without_a_json_form_are_not_sent(ann):
    with pytest.raises(InvalidArgumentsError):
        services.approve(ask(ann).pk, arguments={"article": object()})


def test_who_and_why_is_kept(ann):
    row = services.deny(ask(ann).pk, user=ann, reason="  too\0 dear " + "x" * 3000)
    assert row.reason.startswith("too� dear x")
    assert len(row.reason) == 2000
    assert services.deny(ask(ann, {"article": "b"}).pk).decided_by_name == ""


# Answers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("responses", "key", "said"),
    [
        ({}, "colour", "has no answer"),
        ([], None, "Give an object of answers"),
        ({**RED, "size": {"action": "decline"}}, "size", "There is no question 'size'"),
        ({"colour": "red"}, "colour", "it must be an object"),
        ({"colour": {"content": {"colour": "red"}}}, "colour", "the action must be one of"),
        ({"colour": {"action": "accept", "content": "red"}}, "colour", "its content must be an object"),
        ({"colour": {"action": "accept"}}, "colour", '"colour" is a required property'),
        ({"colour": {"action": "accept", "content": {"colour": "s3cret"}}}, "colour", "colour: the value"),
    ],
)
def test_an_answer_has_to_fit_the_question(ann, responses, key, said):
    row = ask_input(ann)
    with pytest.raises(InvalidInputError, match=said) as caught:
        services.answer_input(row.pk, user=ann, responses=responses)
    assert caught.value.key == key
    assert "s3cret" not in str(caught.value)
    row.refresh_from_db()
    assert (row.status, row.answers) == ("pending", None)


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_person_may_say_no_to_a_server(ann, action):
    row = services.answer_input(
        ask_input(ann).pk, responses={"colour": {"action": action, "content": {"colour": "red"}}}
    )
    assert row.answers == {"colour": {"action": action}}


def test_several_questions_are_answered_together(ann):
    row = ask_input(ann, question("a", "b"))
    answer = {"action": "accept", "content": {"colour": "red", "gift": True}}
    row = services.answer_input(row.pk, responses={"b": {"action": "cancel"}, "a": answer})
    assert row.answers == {"a": answer, "b": {"action": "cancel"}}


def test_a_visit_to_an_address_has_no_content(ann):
    row = ask_input(ann, question("visit", mode="url", url="https://bank.example.com", message="Sign in."))
    row = services.answer_input(row.pk, responses={"visit": {"action": "accept", "content": {"x": 1}}})
    assert row.answers == {"visit": {"action": "accept"}}


MESSAGE = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hi."}}


@pytest.mark.parametrize(
    ("method", "good", "bad"),
    [
        ("sampling/createMessage", MESSAGE, {**MESSAGE, "content": "Hi."}),
        ("sampling/createMessage", MESSAGE, {"action": "decline"}),
        ("roots/list", {"roots": [{"uri": "file:///srv"}]}, {"roots": ["file:///srv"]}),
    ],
)
def test_questions_for_models_and_folders_are_answered_in_the_wires_form(ann, method, good, bad):
    row = ask_input(ann)
    Approval.objects.filter(pk=row.pk).update(requests={"x": {"method": method, "params": {}}})
    with pytest.raises(InvalidInputError, match="does not fit: give the "):
        services.answer_input(row.pk, responses={"x": bad})
    assert services.answer_input(row.pk, responses={"x": good}).answers == {"x": good}


# The run goes on -----------------------------------------------------------------------


@pytest.mark.parametrize("last", ["approve", "deny", "answer", "expire"])
def test_a_run_goes_on_when_nothing_is_open_any_more(ann, django_capture_on_commit_callbacks, last):
    run = run_of(ann, "awaiting_approval")
    first = ask(ann, run=run, call_id="c1")
    second = (ask_input if last == "answer" else ask)(ann, run=run, call_id="c2")
    with django_capture_on_commit_callbacks(execute=True):
        services.approve(first.pk, user=ann)
    run.refresh_from_db()
    assert (run.status, cases.handed_over) == ("awaiting_approval", [])

    with django_capture_on_commit_callbacks(execute=True):
        if last == "expire":
            overdue(second)
            assert services.expire_approvals() == 1
        else:
            DECIDE[last](second, ann)
    run.refresh_from_db()
    assert (run.status, cases.handed_over) == ("queued", [str(run.pk)])


def test_a_run_that_does_not_wait_is_left_alone(ann, django_capture_on_commit_callbacks):
    run = run_of(ann, "running")
    row = ask(ann, run=run, call_id="c1")
    with django_capture_on_commit_callbacks(execute=True):
        services.approve(row.pk, user=ann)
    run.refresh_from_db()
    assert (run.status, cases.handed_over) == ("running", [])


def test_a_refused_decision_wakes_no_run(ann, django_capture_on_commit_callbacks):
    run = run_of(ann, "awaiting_approval")
    row = ask(ann, run=run, call_id="c1")
    with django_capture_on_commit_callbacks(execute=True), pytest.raises(InvalidArgumentsError):
        services.approve(row.pk, user=ann, arguments={})
    run.refresh_from_db()
    assert (run.status, cases.handed_over) == ("awaiting_approval", [])


def test_expiry_is_noticed_by_whoever_looks(ann, django_capture_on_commit_callbacks):
    run = run_of(ann, "awaiting_approval")
    row = overdue(ask(ann, run=run, call_id="c1"))
    with django_capture_on_commit_callbacks(execute=True):
        assert services.get_approval(row.pk, ann).status == "expired"
    run.refresh_from_db()
    assert (run.status, cases.handed_over) == ("queued", [str(run.pk)])


def test_approvals_expire_per_run_and_only_when_their_time_is_over(ann):
    run, other = run_of(ann, "awaiting_approval"), run_of(ann, "awaiting_approval")
    late = [overdue(ask(ann, run=each, call_id="c")) for each in (run, other)]
    single = overdue(ask(ann))
    fresh = ask(ann, {"article": "b"})
    assert services.expire_approvals(run) == 1
    assert services.expire_approvals() == 2
    assert services.expire_approvals() == 0
    for row in (*late, single):
        row.refresh_from_db()
        assert (row.status, row.open_key) == ("expired", None)
    fresh.refresh_from_db()
    assert fresh.status == "pending"
