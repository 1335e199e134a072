"""Approvals over REST: listed, decided, answered, by those who may."""

from __future__ import annotations

import uuid

import pytest

from mcp_client_app import services
from mcp_client_app.models import Approval
from tests.api.conftest import user_with
from tests.approvals import cases
from tests.approvals.cases import BUY, FORM, GIVEN, STATE, ask, ask_input, overdue, question, run_of, use

RED = {"responses": {"colour": {"action": "accept", "content": {"colour": "red"}}}}
PLANTED = "planted-s3cret"


@pytest.fixture(autouse=True)
def _backend(settings):
    settings.MCP_CLIENT_RUN_BACKEND = cases.BACKEND
    cases.handed_over.clear()


@pytest.fixture
def own(api_as):
    """The API as Ann, whose calls these are."""
    return api_as("run_agentconfig", name="ann")


def test_a_call_is_shown_as_people_need_it(own):
    row = ask(own.user, run=run_of(own.user), call_id="c1")

    answer = own.get(f"approvals/{row.pk}/")

    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["id"], shown["kind"], shown["status"]) == (str(row.pk), "approval", "pending")
    assert (shown["agent"], shown["run"], shown["call_id"]) == ("support", str(row.run_id), "c1")
    assert (shown["server"], shown["tool"], shown["arguments"]) == ("shop", "buy", GIVEN)
    assert set(shown["schema"]["properties"]) == {"article", "count"}
    assert (shown["username"], shown["decided_by"], shown["edited_arguments"]) == ("ann", "", None)


def test_a_question_is_shown_without_the_servers_state(own):
    row = ask_input(own.user)
    answer = own.get(f"approvals/{row.pk}/")
    assert answer.json()["input_requests"] == {"colour": {"method": "elicitation/create", "params": FORM}}
    assert STATE not in answer.content.decode()


def test_ones_own_are_listed_by_what_they_are_about(own):
    other = user_with("run_agentconfig", name="eve")
    rows = {
        "run": ask(own.user, run=run_of(own.user), call_id="c1"),
        "input": ask_input(own.user),
        "expired": overdue(ask(own.user, toolset_name="other")),
    }
    ask(other)

    def listed(query: str = "") -> list[str]:
        page = own.get(f"approvals/{query}").json()
        assert page["count"] == len(page["results"])
        return [each["id"] for each in page["results"]]

    assert listed() == [str(row.pk) for row in reversed(rows.values())]
    assert listed(f"?run={rows['run'].run_id}") == [str(rows["run"].pk)]
    assert listed("?kind=input") == [str(rows["input"].pk)]
    assert listed("?agent=other&status=expired") == [str(rows["expired"].pk)]
    assert listed("?server=market") == []
    for wrong in ("?run=nonsense", "?status=nonsense", "?kind=nonsense"):
        assert own.get(f"approvals/{wrong}").status_code == 400


def test_a_call_is_approved_as_it_is(own):
    row = ask(own.user)
    answer = own.post(f"approvals/{row.pk}/approve/", {"reason": "Fine."})
    assert (answer.status_code, answer.json()["status"]) == (200, "approved")
    assert (answer.json()["decided_by"], answer.json()["reason"]) == ("ann", "Fine.")
    assert use(row, own.user) == GIVEN
    assert own.get(f"approvals/{row.pk}/").json()["status"] == "used"


def test_a_call_is_approved_with_other_arguments(own):
    row = ask(own.user)
    answer = own.post(f"approvals/{row.pk}/approve/", {"arguments": {"article": "coffee"}})
    assert answer.json()["edited_arguments"] == {"article": "coffee"}
    assert answer.json()["arguments"] == GIVEN
    assert use(row, own.user) == {"article": "coffee"}


def test_arguments_that_do_not_fit_are_refused_with_the_schema(own):
    row = ask(own.user)
    answer = own.post(f"approvals/{row.pk}/approve/", {"arguments": {"article": 1}})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_arguments")
    assert "article" in answer.json()["detail"]
    assert own.post(f"approvals/{row.pk}/approve/", {"arguments": ["tea"]}).json()["code"] == "invalid"
    row.refresh_from_db()
    assert row.status == "pending"


def test_a_call_is_denied_with_a_reason(own):
    row = ask(own.user)
    answer = own.post(f"approvals/{row.pk}/deny/", {"reason": "Too dear."})
    assert (answer.status_code, answer.json()["status"]) == (200, "denied")
    assert answer.json()["reason"] == "Too dear."
    assert own.post(f"approvals/{row.pk}/deny/", {"reason": "x" * 2001}).status_code == 400


def test_a_question_is_answered_and_the_answer_never_shown(own):
    row = ask_input(own.user, question(message="?", requestedSchema={"type": "object"}))
    responses = {"colour": {"action": "accept", "content": {"colour": PLANTED}}}
    answer = own.post(f"approvals/{row.pk}/answer/", {"responses": responses})
    assert (answer.status_code, answer.json()["status"]) == (200, "answered")
    for shown in (answer, own.get(f"approvals/{row.pk}/"), own.get("approvals/")):
        assert PLANTED not in shown.content.decode()
        assert STATE not in shown.content.decode()


def test_an_answer_that_does_not_fit_is_refused_without_its_values(own):
    row = ask_input(own.user)
    responses = {"colour": {"action": "accept", "content": {"colour": PLANTED}}}
    answer = own.post(f"approvals/{row.pk}/answer/", {"responses": responses})
    assert (answer.status_code, answer.json()["code"], answer.json()["key"]) == (
        400,
        "invalid_input",
        "colour",
    )
    assert PLANTED not in answer.content.decode()
    assert own.post(f"approvals/{row.pk}/answer/", {}).json()["code"] == "invalid"


def test_a_refusal_says_why(own):
    row = ask(own.user)
    own.post(f"approvals/{row.pk}/approve/")
    late, asked = overdue(ask(own.user, {"article": "late"})), ask_input(own.user)
    refused = {
        "decided": own.post(f"approvals/{row.pk}/deny/"),
        "expired": own.post(f"approvals/{late.pk}/approve/"),
        "other_kind": own.post(f"approvals/{asked.pk}/approve/"),
    }
    for reason, answer in refused.items():
        assert (answer.status_code, answer.json()["code"]) == (409, "approval_invalid"), reason
        assert answer.json()["reason"] == reason
    assert refused["decided"].json()["detail"] == "This was approved by ann already."


@pytest.mark.parametrize("approval_id", ["nonsense", str(uuid.UUID(int=0))])
def test_what_is_not_there_is_unknown(own, approval_id):
    for answer in (
        own.get(f"approvals/{approval_id}/"),
        own.post(f"approvals/{approval_id}/approve/"),
        own.post(f"approvals/{approval_id}/deny/"),
        own.post(f"approvals/{approval_id}/answer/", RED),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_run")


def test_others_neither_see_nor_decide_and_the_planted_secret_stays_where_it_is(own, api_as):
    rows = ask(own.user, {"article": PLANTED}), ask_input(own.user, given={"article": PLANTED})
    others = {
        (404, "unknown_run"): api_as("run_agentconfig", name="eve"),
        (403, "permission_denied"): api_as("run_agentconfig", "view_agentrun", name="auditor"),
    }
    for expected, other in others.items():
        assert other.get("approvals/").json()["results"] == []
        for row in rows:
            verbs = {"answer": RED} if row.is_input else {"approve": {}, "deny": {}}
            assert other.get(f"approvals/{row.pk}/").status_code == 404
            for verb, body in verbs.items():
                answer = other.post(f"approvals/{row.pk}/{verb}/", body)
                assert (answer.status_code, answer.json()["code"]) == expected
                assert PLANTED not in answer.content.decode()
    assert {row.status for row in Approval.objects.all()} == {"pending"}


def test_who_decides_for_others_sees_and_decides(own, api_as):
    row = ask(own.user, {"article": PLANTED})
    boss = api_as("decide_approval", name="boss")
    assert boss.get("approvals/").json()["results"][0]["arguments"] == {"article": PLANTED}
    assert boss.post(f"approvals/{row.pk}/approve/").json()["decided_by"] == "boss"


def test_without_any_right_there_is_nothing_here(own, api_as, anonymous):
    row = ask(own.user)
    nobody = api_as("view_serverconfig", "view_agentrun", name="nobody")
    for place in ("approvals/", f"approvals/{row.pk}/"):
        assert nobody.get(place).status_code == 403
        assert anonymous.get(place).status_code in (401, 403)
    assert nobody.post(f"approvals/{row.pk}/approve/").status_code == 403


def test_the_run_goes_on_once_the_last_one_is_decided(own):
    run = run_of(own.user, "awaiting_approval")
    first, second = (ask(own.user, run=run, call_id=name) for name in ("c1", "c2"))
    own.post(f"approvals/{first.pk}/approve/")
    assert cases.handed_over == []
    own.post(f"approvals/{second.pk}/deny/", {"reason": "no"})
    assert cases.handed_over == [str(run.pk)]
    state = services.approval_state(run)
    assert {name: each.status for name, each in state.decisions.items()} == {"c1": "approved", "c2": "denied"}


def test_the_number_of_queries_does_not_grow_with_the_approvals(own, django_assert_num_queries):
    def ask_for(count: int) -> None:
        for number in range(count):
            run = run_of(own.user)
            ask(own.user, {"article": str(number)}, run=run, call_id="c", tool=BUY)

    ask_for(1)
    with django_assert_num_queries(7):
        own.get("approvals/")
    ask_for(10)
    with django_assert_num_queries(7):
        own.get("approvals/")
