"""Approvals in the admin: the list, the page where a person decides, and what others get to see."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.template.response import TemplateResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from mcp_client_app import services
from mcp_client_app.admin import ApprovalAdmin
from mcp_client_app.models import Approval
from tests.admin import pages
from tests.admin.conftest import MakeStaff
from tests.approvals import cases
from tests.approvals.cases import GIVEN, STATE, ask, ask_input, overdue, question, run_of

pytestmark = pytest.mark.django_db

LIST = "/admin/mcp_client_app/approval/"
PLANTED = "planted-s3cret"


@pytest.fixture(autouse=True)
def _backend(settings) -> None:
    settings.MCP_CLIENT_RUN_BACKEND = cases.BACKEND
    cases.handed_over.clear()


@pytest.fixture
def boss(staff: MakeStaff) -> Client:
    """May decide about everybody's calls."""
    return staff("decide_approval", name="boss")


@pytest.fixture
def ann(db) -> User:
    """Whose calls they are; may enter the admin, and see that there are approvals."""
    return cases.user("ann", "view_approval", is_staff=True)


def url(row: Approval) -> str:
    return f"{LIST}{row.pk}/change/"


def fill(client: Client, row: Approval, button: str, **fields: Any) -> Any:
    """Open the page of an approval, fill in its form, and press a button."""
    data = pages.form(pages.text(client.get(url(row))), "approval_form")
    assert set(fields) <= set(data), set(data)
    given = {name: value if isinstance(value, list) else [value] for name, value in fields.items()}
    return client.post(url(row), {**data, **given, button: ["x"]})


def shown(client: Client, **query: str) -> set[str]:
    return {row.tool + str(row.arguments.get("article", "")) for row in listed(client, **query)}


def listed(client: Client, **query: str) -> list[Approval]:
    rows: list[Approval] = list(client.get(LIST, query).context["cl"].result_list)
    return rows


# The list ------------------------------------------------------------------------------


def test_the_list_says_how_each_stands_and_how_long_it_waits(boss, ann):
    rows = {name: ask(ann, {"article": name}) for name in ("open", "yes", "no", "late")}
    services.approve(rows["yes"].pk)
    services.deny(rows["no"].pk)
    overdue(rows["late"])
    page = pages.text(boss.get(LIST))
    for tone, word in (("busy", "pending"), ("good", "approved"), ("bad", "denied"), ("off", "expired")):
        assert f'<span class="mcp-state mcp-{tone}">{word}</span>' in page
    assert "minutes ago; 23" in page.replace("\xa0", " ")
    assert {row.status for row in listed(boss)} == {"pending", "approved", "denied", "expired"}


def test_the_list_is_filtered_and_searched(boss, ann):
    ask(ann, {"article": "a"})
    services.deny(ask(ann, {"article": "b"}, toolset_name="other").pk)
    ask_input(cases.user("eve"), given={"article": "c"})
    assert shown(boss, status__exact="denied") == {"buyb"}
    assert shown(boss, kind__exact="input") == {"buyc"}
    assert shown(boss, agent_name="other") == {"buyb"}
    assert shown(boss, q="eve") == {"buyc"}
    assert shown(boss, q="buy") == {"buya", "buyb", "buyc"}


@pytest.mark.parametrize("column", ["arguments__article", "edited_arguments", "answers", "request_state"])
def test_nobody_finds_out_by_filters_what_is_not_shown(staff: MakeStaff, ann, column):
    ask(ann, {"article": PLANTED})
    response = staff("view_approval").get(LIST, {f"{column}__contains": "planted"})
    assert response.status_code == 400 or "e=1" in response.headers.get("Location", "")


def test_several_are_decided_at_once(boss, ann):
    rows = [ask(ann, {"article": name}) for name in "abc"]
    services.approve(rows[2].pk)
    selected = {"_selected_action": [str(row.pk) for row in rows]}
    answer = boss.post(LIST, {"action": "deny_calls", **selected})
    assert pages.messages(answer).count("shop: buy: denied.") == 2
    assert "shop: buy: This was approved already." in pages.messages(answer)
    found = {row.arguments["article"]: (row.status, row.decided_by_name) for row in Approval.objects.all()}
    assert found == {"a": ("denied", "boss"), "b": ("denied", "boss"), "c": ("approved", "")}
    more = [ask(ann, {"article": name}) for name in "de"]
    boss.post(LIST, {"action": "approve_calls", "_selected_action": [str(row.pk) for row in more]})
    assert {Approval.objects.get(pk=row.pk).status for row in more} == {"approved"}


def test_who_only_looks_decides_nothing_from_the_list(staff: MakeStaff, ann):
    row = ask(ann)
    for client in (staff("view_approval"), staff("change_approval", "delete_approval", name="other")):
        client.post(LIST, {"action": "approve_calls", "_selected_action": [str(row.pk)]})
        client.post(LIST, {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"})
    row.refresh_from_db()
    assert row.status == "pending"


def test_the_number_of_queries_does_not_grow_with_the_approvals(admin_client, ann):
    ask(ann)
    admin_client.get(LIST)
    with CaptureQueriesContext(connection) as few:
        pages.text(admin_client.get(LIST))
    for number in range(10):
        ask(ann, {"article": str(number)}, run=run_of(ann), call_id="c")
    with CaptureQueriesContext(connection) as many:
        pages.text(admin_client.get(LIST))
    assert len(many) == len(few)


def test_a_site_that_shows_no_runs_names_them_without_a_link(ann, rf):
    row = ask(ann, run=run_of(ann), call_id="c1")
    site = AdminSite("bare")
    site.register(Approval, ApprovalAdmin)
    request = rf.get("/")
    request.user = User.objects.create_superuser("root")
    response = site._registry[Approval].change_view(request, str(row.pk))
    assert isinstance(response, TemplateResponse)
    assert response.context_data is not None
    assert response.context_data["run_link"] == str(row.run_id)


# A call --------------------------------------------------------------------------------


def test_the_page_shows_what_a_person_needs_to_decide(boss, ann):
    page = pages.text(boss.get(url(ask(ann, {"article": "<tea>"}, run=run_of(ann), call_id="c1"))))
    assert "&lt;tea&gt;" in page
    assert "&quot;minimum&quot;: 1" in page
    for words in ("buy", "shop", "support", "ann"):
        assert f">{words}<" in page
    assert "account" not in page


def test_a_call_is_approved_as_it_is(boss, ann, django_capture_on_commit_callbacks):
    run = run_of(ann, "awaiting_approval")
    row = ask(ann, run=run, call_id="c1")
    with django_capture_on_commit_callbacks(execute=True):
        answer = fill(boss, row, "_approve", reason="Fine.")
    assert (answer.status_code, answer.headers["Location"]) == (302, LIST)
    row.refresh_from_db()
    assert (row.status, row.decided_by_name, row.reason) == ("approved", "boss", "Fine.")
    assert row.edited_arguments is None
    assert cases.handed_over == [str(run.pk)]
    assert LogEntry.objects.get().change_message == "Approved."


def test_a_call_without_arguments_shows_that_there_are_none(boss, ann):
    row = ask(ann, given={})
    page = pages.form(pages.text(boss.get(url(row))), "approval_form")
    assert page["arguments"] == ["{}"]

    fill(boss, row, "_approve")
    row.refresh_from_db()
    assert (row.status, row.edited_arguments) == ("approved", None)


def test_a_call_is_approved_with_other_arguments(boss, ann):
    row = ask(ann)
    fill(boss, row, "_approve", arguments='{"article": "coffee", "count": 1}')
    row.refresh_from_db()
    assert (row.status, row.edited_arguments) == ("approved", {"article": "coffee", "count": 1})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"article": 1}', "is not of type"),
        ('{"article": "tea", "account": "mine"}', "is fixed for this tool"),
        ('{"article": ', "line 1"),
        ("[1]", "This JSON is no object"),
    ],
)
def test_arguments_that_do_not_fit_are_mended_in_the_form(boss, ann, arguments, said):
    row = ask(ann)
    answer = fill(boss, row, "_approve", arguments=arguments, reason="Because.")
    assert said in "".join(answer.context["form"].errors["arguments"])
    page = pages.form(pages.text(answer), "approval_form")
    assert (page["arguments"], page["reason"]) == ([arguments], ["Because."])
    row.refresh_from_db()
    assert row.status == "pending"


def test_a_call_is_denied_whatever_stands_in_the_arguments(boss, ann):
    row = ask(ann)
    fill(boss, row, "_deny", arguments="nonsense", reason="Too dear.")
    row.refresh_from_db()
    assert (row.status, row.reason, row.edited_arguments) == ("denied", "Too dear.", None)


def test_arguments_that_cannot_be_checked_cannot_be_edited(boss, ann):
    row = ask(ann)
    Approval.objects.filter(pk=row.pk).update(schema=None)
    page = pages.text(boss.get(url(row)))
    assert "could not be had" in page
    assert "tea" in page
    data = pages.form(page, "approval_form")
    assert "arguments" not in data
    boss.post(url(row), {**data, "arguments": '{"article": "coffee"}', "_approve": "x"})
    row.refresh_from_db()
    assert (row.status, row.edited_arguments) == ("approved", None)


def test_who_was_slower_is_told_who_decided(boss, ann):
    row = ask(ann)
    data = pages.form(pages.text(boss.get(url(row))), "approval_form")
    services.deny(row.pk, user=ann)
    answer = boss.post(url(row), {**data, "_approve": "x"}, follow=True)
    assert "This was denied by ann already." in pages.text(answer)
    assert "_approve" not in pages.text(answer)


def test_a_decided_call_is_only_looked_at(boss, ann):
    row = ask(ann)
    services.approve(row.pk, user=ann, arguments={"article": "coffee"}, reason="Fine.")
    page = pages.text(boss.get(url(row)))
    assert "_approve" not in page
    for words in ("approved", "tea", "coffee", "Fine.", "ann"):
        assert words in page
    assert boss.post(f"{LIST}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    assert boss.get(f"{LIST}add/").status_code == 403


# Who sees, and who decides -------------------------------------------------------------


def test_who_only_looks_sees_that_there_is_one_and_not_what_it_is_about(staff: MakeStaff, ann):
    client = staff("view_approval", "view_agentrun", "change_approval")
    rows = [
        ask(ann, {"article": PLANTED}),
        ask_input(ann, question(state=PLANTED, message=PLANTED), given={"article": PLANTED}),
        services.approve(ask(ann, {"article": "b"}).pk, arguments={"article": PLANTED}),
    ]
    for row in rows:
        page = pages.text(client.get(url(row)))
        assert ("pending" if row.status == "pending" else "approved") in page
        assert "shown to those who may decide" in page
        assert PLANTED not in page
        assert client.post(url(row), {"_approve": "x", "arguments": "{}"}).status_code == 403
    assert PLANTED not in pages.text(client.get(LIST))
    assert {row.status for row in Approval.objects.all()} == {"pending", "approved"}


def test_whose_call_it_is_decides_in_the_admin_too(ann):
    client = Client()
    client.force_login(ann)
    row = ask(ann, {"article": PLANTED})
    assert PLANTED in pages.text(client.get(url(row)))
    fill(client, row, "_deny")
    row.refresh_from_db()
    assert (row.status, row.decided_by_name) == ("denied", "ann")


def test_without_a_right_nobody_gets_in(staff: MakeStaff, ann):
    row = ask(ann)
    client = staff("view_serverconfig")
    assert client.get(LIST).status_code == 403
    assert client.get(url(row)).status_code == 403
    assert client.post(url(row), {"_approve": "x"}).status_code == 403
    assert client.get(f"{LIST}nonsense/change/").status_code in (302, 403)


def test_a_right_that_is_lost_meanwhile_is_missed(boss, ann, monkeypatch):
    """The service has the last word: here the page believes that the user may."""
    row = ask(ann)
    data = pages.form(pages.text(boss.get(url(row))), "approval_form")
    User.objects.get(username="boss").user_permissions.clear()
    monkeypatch.setattr("mcp_client_app.admin.approvals.may_decide", lambda row, user: True)
    monkeypatch.setattr("mcp_client_app.admin.approvals.may", lambda user, permission: True)
    assert boss.post(url(row), {**data, "_approve": "x"}).status_code == 403


# Questions of servers ------------------------------------------------------------------

FORM: dict[str, Any] = {
    "message": "Fill this in <b>now</b>.",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "title": "Your name",
                "description": "As in the passport.",
                "minLength": 2,
            },
            "mail": {"type": "string", "format": "email", "default": "a@example.com"},
            "count": {"type": "integer", "minimum": 1},
            "weight": {"type": "number"},
            "gift": {"type": "boolean", "default": True},
            "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"]},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "small"}, {"const": "l"}]},
            "extras": {
                "type": "array",
                "items": {"anyOf": [{"const": "a", "title": "ribbon"}, {"const": "b", "title": "card"}]},
                "maxItems": 1,
            },
            "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
        },
        "required": ["name"],
    },
}
FILLED = {
    "q0-field0": "Ann",
    "q0-field2": "3",
    "q0-field3": "1.5",
    "q0-field4": "false",
    "q0-field5": "g",
    "q0-field6": "s",
}


def test_a_form_is_made_of_what_the_server_asks(boss, ann):
    row = ask_input(ann, question(**FORM))
    page = pages.text(boss.get(url(row)))
    for words in (
        "shop asks",
        "&lt;b&gt;now&lt;/b&gt;",
        "Your name *",
        "As in the passport.",
        "small",
        "ribbon",
    ):
        assert words in page
    for option in ('<option value="g">green</option>', 'type="email"', 'type="number"'):
        assert option in page
    data = pages.form(page, "approval_form")
    assert (data["q0-field1"], data["q0-field4"]) == (["a@example.com"], ["true"])
    assert STATE not in page


def test_what_is_filled_in_is_sent_with_its_types(boss, ann):
    row = ask_input(ann, question(**FORM))
    data = pages.form(pages.text(boss.get(url(row))), "approval_form")
    boss.post(url(row), {**data, **FILLED, "q0-field7": ["b"], "q0-field8": ["x", "y"], "_answer": "x"})
    row.refresh_from_db()
    assert row.status == "answered"
    assert row.answers == {
        "colour": {
            "action": "accept",
            "content": {
                "name": "Ann",
                "mail": "a@example.com",
                "count": 3,
                "weight": 1.5,
                "gift": False,
                "colour": "g",
                "size": "s",
                "extras": ["b"],
                "tags": ["x", "y"],
            },
        }
    }


def test_what_is_left_empty_is_left_out_unless_a_default_was_taken_away(boss, ann):
    row = ask_input(
        ann,
        question(
            message="?",
            requestedSchema={
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "b": {"type": "string", "default": "x"},
                    "c": {"type": "number"},
                },
            },
        ),
    )
    fill(boss, row, "_answer", **{"q0-field1": ""})
    row.refresh_from_db()
    assert row.answers == {"colour": {"action": "accept", "content": {"b": ""}}}


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"q0-field0": "A"}, "field0", "the value is shorter than 2 characters"),
        ({"q0-field2": "0"}, "field2", "the value is less than the minimum"),
        ({"q0-field2": "many"}, "field2", "Enter a whole number"),
        ({"q0-field1": "no address"}, "field1", "is not a"),
        ({"q0-field0": ""}, "__all__", "&quot;name&quot; is a required property"),
        ({"q0-field7": ["a", "b"]}, "field7", "the value has more than 1 item"),
        ({"q0-field5": "blue"}, "field5", "Select a valid choice"),
        ({"q0-action": "perhaps"}, "action", "Select a valid choice"),
    ],
)
def test_answers_that_do_not_fit_are_mended_in_the_form(boss, ann, changes, field, said):
    row = ask_input(ann, question(**FORM))
    data = pages.form(pages.text(boss.get(url(row))), "approval_form")
    answer = boss.post(url(row), {**data, **FILLED, **changes, "_answer": "x"})
    (form,) = answer.context["answers"].forms
    assert said in str(form.errors[field]), form.errors
    assert said in pages.text(answer)
    row.refresh_from_db()
    assert (row.status, row.answers) == ("pending", None)


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_person_may_say_no_without_filling_anything_in(boss, ann, action):
    row = ask_input(ann, question(**FORM))
    fill(boss, row, "_answer", **{"q0-action": action, "q0-field2": "many"})
    row.refresh_from_db()
    assert row.answers == {"colour": {"action": action}}


def test_several_questions_are_answered_on_one_page(boss, ann):
    row = ask_input(ann, question("a", "b"))
    data = pages.form(pages.text(boss.get(url(row))), "approval_form")
    answer = boss.post(url(row), {**data, "q0-field0": ["red"], "_answer": "x"})
    assert [bool(form.errors) for form in answer.context["answers"].forms] == [False, True]
    boss.post(url(row), {**data, "q0-field0": ["red"], "q1-action": ["decline"], "_answer": "x"})
    row.refresh_from_db()
    content = {"colour": "red", "gift": False}
    assert row.answers == {"a": {"action": "accept", "content": content}, "b": {"action": "decline"}}


NESTED = {"type": "object", "properties": {"place": {"type": "object", "required": ["city"]}}}


@pytest.mark.parametrize(
    "schema",
    [
        NESTED,
        {"type": "object", "properties": {"x": True}},
        {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "string"}}}},
        {"type": "object", "properties": {"x": {"oneOf": [{"pattern": "a"}]}}},
        {"type": "object"},
    ],
)
def test_what_no_fields_can_stand_for_is_answered_as_json(boss, ann, schema):
    row = ask_input(ann, question(message="?", requestedSchema=schema))
    data = pages.form(pages.text(boss.get(url(row))), "approval_form")
    assert set(data) - {"csrfmiddlewaretoken"} == {"q0-action", "q0-json"}
    fill(boss, row, "_answer", **{"q0-json": json.dumps({"place": {"city": "Lisbon"}, "x": ["a"]})})
    row.refresh_from_db()
    assert row.answers == {
        "colour": {"action": "accept", "content": {"place": {"city": "Lisbon"}, "x": ["a"]}}
    }


def test_json_is_held_to_the_schema_as_well(boss, ann):
    row = ask_input(ann, question(message="?", requestedSchema=NESTED))
    answer = fill(boss, row, "_answer", **{"q0-json": '{"place": {}}'})
    assert "is a required property" in pages.text(answer)
    row.refresh_from_db()
    assert row.status == "pending"


def test_an_address_is_shown_and_never_a_link(boss, ann):
    row = ask_input(ann, question(mode="url", url="javascript:alert(1)", message="Visit me."))
    page = pages.text(boss.get(url(row)))
    assert "<code>javascript:alert(1)</code>" in page
    assert 'href="javascript' not in page
    fill(boss, row, "_answer")
    row.refresh_from_db()
    assert row.answers == {"colour": {"action": "accept"}}


def test_what_the_protocol_asks_models_is_answered_in_its_own_form(boss, ann):
    row = ask_input(ann)
    asked = {"x": {"method": "roots/list", "params": {}}}
    Approval.objects.filter(pk=row.pk).update(requests=asked)
    answer = fill(boss, row, "_answer", **{"q0-json": "{}"})
    assert "give the folders" in pages.text(answer)
    fill(boss, row, "_answer", **{"q0-json": '{"roots": [{"uri": "file:///srv"}]}'})
    row.refresh_from_db()
    assert row.answers == {"x": {"roots": [{"uri": "file:///srv"}]}}


def test_an_answered_question_shows_no_answer(boss, ann):
    row = ask_input(ann, question(message="?", requestedSchema={"type": "object"}))
    services.answer_input(row.pk, responses={"colour": {"action": "accept", "content": {"x": PLANTED}}})
    page = pages.text(boss.get(url(row)))
    assert "answered" in page
    assert PLANTED not in page
    assert STATE not in page


def test_the_given_arguments_are_what_the_form_begins_with(boss, ann):
    data = pages.form(pages.text(boss.get(url(ask(ann)))), "approval_form")
    assert json.loads(data["arguments"][0]) == GIVEN
