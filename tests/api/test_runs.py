"""Runs over REST. A backend takes them and leaves their execution to the test."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from mcp_client_app import services
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentConfig, AgentRun, Approval
from mcp_client_app.services import run_submission
from tests.api.conftest import Api, user_with
from tests.runs import backend

WORKER = "a worker"
MESSAGES: list[dict[str, Any]] = [
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Help!"}]},
    {"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]},
]


@pytest.fixture(autouse=True)
def _agent(_site, settings, monkeypatch) -> Iterator[None]:
    """An agent whose runs nobody executes but the test."""
    settings.MCP_CLIENT_RUN_BACKEND = "tests.runs.backend.take"
    # What this process would execute, too.
    monkeypatch.setitem(run_submission._BACKENDS, "thread", "tests.runs.backend.take")
    backend.given.clear()
    AgentConfig.objects.create(name="support", model="scripted:demo")
    yield
    backend.given.clear()


def start(api: Api, prompt: str = "Help!", **more: Any) -> AgentRun:
    answer = api.post("agents/support/runs/", {"prompt": prompt, **more})
    assert answer.status_code == 202, answer.data
    return AgentRun.objects.get(pk=answer.data["id"])


def work(run: AgentRun, *events: tuple[str, dict[str, Any]], text: str | None = "Done.") -> None:
    """Execute a run as a worker does; without a text it goes on."""
    services.claim(run.pk, WORKER)
    services.append_events(run.pk, events)
    if text is not None:
        services.finish(run.pk, WORKER, RunStatus.COMPLETED, text=text, messages=MESSAGES)


def ask(run: AgentRun, kind: Approval.Kind, **fields: Any) -> Approval:
    """Pause a run for a question to a person."""
    services.claim(run.pk, WORKER)
    chosen: dict[str, Any] = {"server_name": "shop", "tool": "order", "fingerprint": "f", **fields}
    row = Approval.objects.create(
        run=run,
        kind=kind,
        agent_name="support",
        user=run.user,
        call_id=f"call-{uuid.uuid4()}",
        expires_at=timezone.now() + timedelta(hours=1),
        **chosen,
    )
    status = RunStatus.AWAITING_INPUT if kind == Approval.Kind.INPUT else RunStatus.AWAITING_APPROVAL
    if run.status == RunStatus.QUEUED.value:
        services.pause(run.pk, WORKER, status, messages=[])
        run.refresh_from_db()
    return row


def in_background(work: Callable[[], object]) -> threading.Thread:
    """Do something on a thread of its own, as soon as the backend is given a run."""

    def main() -> None:
        try:
            while not backend.given:
                pass
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=main)
    thread.start()
    return thread


# Starting


def test_a_run_is_started_in_the_background(api):
    answer = api.post(
        "agents/SUPPORT/runs/", {"prompt": " Help! ", "deps": {"order": 7}}, **{"X-Correlation-ID": "mine"}
    )

    assert (answer.status_code, answer.data["status"], answer.data["agent"]) == (202, "queued", "support")
    assert (answer.data["prompt"], answer.data["username"]) == (" Help! ", "admin")
    assert answer["X-Correlation-ID"] == answer.data["correlation_id"] == "mine"
    assert answer["Location"] == f"http://testserver/api/mcp/runs/{answer.data['id']}/"
    run = AgentRun.objects.get()
    assert (run.deps, run.in_background) == ({"order": 7}, True)
    assert backend.given == [str(run.pk)] == [answer.data["id"]]


def test_a_conversation_goes_on_with_its_messages(api):
    first = start(api)
    work(first)
    messages = api.get(f"runs/{first.pk}/").data["messages"]

    second = start(api, history=messages)

    assert [message["parts"][0]["content"] for message in second.messages] == ["Help!", "Done."]


def test_a_conversation_tells_neither_what_the_agent_was_told_nor_where_its_model_is(api_as):
    user = api_as("run_agentconfig")
    run = start(user)
    request, response = MESSAGES
    told = [
        {**request, "instructions": "planted-4711"},
        {**response, "provider_url": "https://planted-4711.example/v1"},
    ]
    services.claim(run.pk, WORKER)
    services.finish(run.pk, WORKER, RunStatus.COMPLETED, text="Done.", messages=told)

    answer = user.get(f"runs/{run.pk}/")

    assert answer.data["messages"] == MESSAGES
    assert b"planted-4711" not in answer.content
    assert AgentRun.objects.get().messages == told


@pytest.mark.parametrize("place", ["run", "runs"])
def test_a_full_process_says_when_to_try_again(api, settings, monkeypatch, place):
    settings.MCP_CLIENT_RUN_BACKEND = "tests.runs.backend.refuse"
    monkeypatch.setitem(run_submission._BACKENDS, "thread", "tests.runs.backend.refuse")

    answer = api.post(f"agents/support/{place}/", {"prompt": "Help!"})

    assert (answer.status_code, answer.data["code"], answer["Retry-After"]) == (429, "busy", "3")
    assert not AgentRun.objects.exists()


@pytest.mark.parametrize("place", ["run", "runs"])
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": "x", "history": ["text"]}, "history.0"),
        ({"prompt": "x", "history": "text"}, "history"),
    ],
)
def test_what_is_no_order_is_refused_by_field(api, place, body, field):
    answer = api.post(f"agents/support/{place}/", body)
    assert (answer.status_code, answer.data["code"]) == (400, "invalid")
    assert list(answer.data["fields"]) == [field]


@pytest.mark.parametrize("place", ["run", "runs"])
def test_what_is_no_history_is_refused(api, place):
    answer = api.post(f"agents/support/{place}/", {"prompt": "x", "history": [{"kind": "text"}]})
    assert (answer.status_code, answer.data["code"]) == (400, "invalid_history")


@pytest.mark.parametrize("place", ["run", "runs"])
def test_an_agent_without_a_model_is_not_run(api, place):
    AgentConfig.objects.create(name="tools-only")
    answer = api.post(f"agents/tools-only/{place}/", {"prompt": "x"})
    assert (answer.status_code, answer.data["code"], answer.data["field"]) == (409, "configuration", "model")
    assert not AgentRun.objects.exists()


@pytest.mark.parametrize("place", ["run", "runs"])
def test_only_who_may_use_an_agent_starts_it(api_as, place):
    body = {"prompt": "Help!"}
    lacking = api_as("view_agentconfig", "view_agentrun").post(f"agents/support/{place}/", body)
    unknown = api_as("run_agentconfig", name="other").post(f"agents/none/{place}/", body)

    assert (lacking.status_code, lacking.data["permission"]) == (403, "mcp_client_app.run_agentconfig")
    assert (unknown.status_code, unknown.data["code"], unknown.data["agent"]) == (
        404,
        "unknown_agent",
        "none",
    )
    assert not AgentRun.objects.exists()


@pytest.mark.parametrize(("place", "begun"), [("run", "here"), ("runs", "elsewhere")])
def test_what_somebody_waits_for_begins_in_this_process(api, settings, monkeypatch, place, begun):
    settings.MCP_CLIENT_REQUEST_TIMEOUT = 0.1
    settings.MCP_CLIENT_RUN_BACKEND = "tests.runs.backend.take"
    monkeypatch.setitem(run_submission._BACKENDS, "thread", "tests.runs.backend.refuse")
    answer = api.post(f"agents/support/{place}/", {"prompt": "Help!"})
    assert answer.status_code == (429 if begun == "here" else 202)


@pytest.mark.parametrize("place", ["run", "runs"])
def test_a_run_that_is_ordered_twice_with_a_key_is_begun_once(api, settings, place):
    settings.MCP_CLIENT_REQUEST_TIMEOUT = 0.1
    first, repeat = (
        api.post(f"agents/{name}/{place}/", {"prompt": "Help!"}, **{"Idempotency-Key": "one"})
        for name in ("support", "SUPPORT")
    )
    assert (first.status_code, repeat.status_code) == (202, 202)
    assert first.data["id"] == repeat.data["id"]
    assert ("Idempotent-Replayed" in first, repeat["Idempotent-Replayed"]) == (False, "true")
    assert backend.given == [first.data["id"]]

    work(AgentRun.objects.get())
    late = api.post(f"agents/support/{place}/", {"prompt": "Help!", "idempotency_key": "one"})
    assert (late.status_code, late.data["status"]) == (200 if place == "run" else 202, "completed")
    for where, prompt in ((place, "Other!"), ("runs" if place == "run" else "run", "Help!")):
        other = api.post(f"agents/support/{where}/", {"prompt": prompt, "idempotency_key": "one"})
        assert (other.status_code, other.data["code"]) == (422, "key_reused")


def test_a_key_whose_run_could_not_be_begun_is_free(api, settings, monkeypatch):
    settings.MCP_CLIENT_RUN_BACKEND = "tests.runs.backend.refuse"
    body = {"prompt": "Help!", "idempotency_key": "one"}
    assert api.post("agents/support/runs/", body).status_code == 429
    settings.MCP_CLIENT_RUN_BACKEND = "tests.runs.backend.take"
    assert api.post("agents/support/runs/", body).status_code == 202
    assert AgentRun.objects.count() == 1


# Waiting


def test_who_waits_gets_the_answer(api):
    thread = in_background(lambda: work(AgentRun.objects.get()))
    answer = api.post("agents/support/run/", {"prompt": "Help!"})
    thread.join()

    assert (answer.status_code, answer.data["status"], answer.data["text"]) == (200, "completed", "Done.")
    assert answer.data["messages"] == MESSAGES
    assert answer["Location"].endswith(f"runs/{answer.data['id']}/")


def test_a_run_that_failed_is_an_answer_too(api):
    def fail() -> None:
        run = AgentRun.objects.get()
        services.claim(run.pk, WORKER)
        services.finish(run.pk, WORKER, RunStatus.FAILED, code="model_error", detail="The model is away.")

    thread = in_background(fail)
    answer = api.post("agents/support/run/", {"prompt": "Help!"})
    thread.join()

    assert answer.status_code == 200
    assert [answer.data[name] for name in ("status", "code", "detail", "text")] == [
        "failed",
        "model_error",
        "The model is away.",
        "",
    ]


def test_a_run_that_is_not_over_in_time_goes_on(api, settings):
    settings.MCP_CLIENT_REQUEST_TIMEOUT = 0.2

    answer = api.post("agents/support/run/", {"prompt": "Help!"})

    assert (answer.status_code, answer.data["status"]) == (202, "queued")
    run = AgentRun.objects.get()
    assert run.cancel_requested_at is None
    work(run)
    assert api.get(f"runs/{run.pk}/").data["text"] == "Done."


def test_a_run_that_waits_for_people_is_answered_with_what_it_waits_for(api):
    thread = in_background(lambda: ask(AgentRun.objects.get(), Approval.Kind.APPROVAL))
    answer = api.post("agents/support/run/", {"prompt": "Help!"})
    thread.join()

    assert (answer.status_code, answer.data["status"]) == (202, "awaiting_approval")
    [waits] = answer.data["approvals"]
    row = Approval.objects.get()
    assert (waits["id"], waits["kind"], waits["server"], waits["tool"]) == (
        str(row.pk),
        "approval",
        "shop",
        "order",
    )


# Looking


def test_runs_are_listed_latest_first_and_without_their_conversations(api):
    first, second = start(api, "one"), start(api, "two")
    work(first)

    for place in ("runs/", "agents/support/runs/"):
        page = api.get(place).data
        assert [run["id"] for run in page["results"]] == [str(second.pk), str(first.pk)]
        assert page["count"] == 2
        assert not {"messages", "approvals"} & set(page["results"][0])
        done = api.get(f"{place}?status=completed").data["results"]
        assert [run["prompt"] for run in done] == ["one"]
    assert api.get("runs/?agent=Support").data["count"] == 2
    assert api.get("runs/?agent=none").data["count"] == 0
    assert api.get("agents/none/runs/").data["count"] == 0
    assert api.get("runs/?status=no").status_code == 400


def test_everybody_sees_his_own_runs_and_some_see_all(api, api_as):
    run = start(api)
    own, viewer = api_as("run_agentconfig", name="own"), api_as("view_agentrun", name="viewer")
    mine = start(own)

    assert [each["id"] for each in own.get("runs/").data["results"]] == [str(mine.pk)]
    assert viewer.get("runs/").data["count"] == 2
    for place in ("", "events/"):
        assert own.get(f"runs/{mine.pk}/{place}").status_code == 200
        assert viewer.get(f"runs/{mine.pk}/{place}").status_code == 200
        foreign = own.get(f"runs/{run.pk}/{place}")
        assert (foreign.status_code, foreign.data["code"]) == (404, "unknown_run")
    assert api_as(name="nobody").get("runs/").status_code == 403


@pytest.mark.parametrize("name", ["no-id", "00000000-0000-4000-8000-000000000000", "x" * 500])
def test_what_is_no_run_is_not_found(api, name):
    for method, place in (("get", ""), ("get", "events/"), ("post", "cancel/")):
        answer = getattr(api, method)(f"runs/{name}/{place}")
        assert (answer.status_code, answer.data["code"]) == (404, "unknown_run")


def test_a_run_whose_worker_is_gone_is_settled_by_who_looks(api):
    run = start(api)
    services.claim(run.pk, WORKER)
    long_ago = timezone.now() - timedelta(hours=1)
    AgentRun.objects.filter(pk=run.pk).update(lease_until=long_ago, attempts=3)

    answer = api.get(f"runs/{run.pk}/")

    assert (answer.data["status"], answer.data["code"]) == ("failed", "abandoned")


# Events, as a list


def test_events_are_listed_from_any_one_on(api):
    run = start(api)
    work(run, *[("round", {"number": number}) for number in range(1, 6)])

    page = api.get(f"runs/{run.pk}/events/?limit=4").data
    rest = api.get(f"runs/{run.pk}/events/?after={page['last']}").data

    assert (page["status"], page["last"], page["more"]) == ("completed", 4, True)
    assert [event["kind"] for event in page["results"]] == ["run.started", "round", "round", "round"]
    assert page["results"][1]["data"] == {"number": 1}
    assert [event["number"] for event in rest["results"]] == [5, 6, 7]
    assert (rest["results"][-1]["kind"], rest["last"], rest["more"]) == ("run.completed", 7, False)
    assert rest["results"][-1]["data"]["text"] == "Done."
    end = api.get(f"runs/{run.pk}/events/", **{"Last-Event-ID": "7"}).data
    assert (end["results"], end["last"], end["more"]) == ([], 7, False)


@pytest.mark.parametrize("place", ["?after=-1", "?after=x", "?limit=0", "?limit=1001", f"?after={2**63}"])
def test_a_place_in_the_events_is_a_number(api, place):
    answer = api.get(f"runs/{start(api).pk}/events/{place}")
    assert (answer.status_code, answer.data["code"]) == (400, "invalid")


@pytest.mark.parametrize("header", ["x", "-1", "1.5", "²", "9" * 30])
def test_a_last_event_that_is_none_is_refused(api, header):
    answer = api.get(f"runs/{start(api).pk}/events/", **{"Last-Event-ID": header})
    assert (answer.status_code, list(answer.data["fields"])) == (400, ["Last-Event-ID"])


# Cancelling


def test_a_run_that_nobody_works_on_is_cancelled_at_once(api):
    run = start(api)

    for _ in range(2):
        answer = api.post(f"runs/{run.pk}/cancel/")
        assert (answer.status_code, answer.data["status"]) == (200, "cancelled")


def test_the_worker_of_a_run_is_told_to_cancel_it(api):
    run = start(api)
    services.claim(run.pk, WORKER)

    answer = api.post(f"runs/{run.pk}/cancel/")

    assert (answer.status_code, answer.data["status"], answer.data["cancel_requested"]) == (
        202,
        "running",
        True,
    )
    assert services.renew(run.pk, WORKER).cancel


def test_a_run_that_is_over_is_not_cancelled(api):
    run = start(api)
    work(run)
    answer = api.post(f"runs/{run.pk}/cancel/")
    assert (answer.status_code, answer.data["code"], answer.data["status"]) == (409, "run_state", "completed")


def test_to_see_a_run_is_not_to_cancel_it(api, api_as):
    run = start(api)
    looker = api_as("view_agentrun", "run_agentconfig", name="looker")
    manager = api_as("view_agentrun", "change_agentrun", name="manager")

    assert looker.post(f"runs/{run.pk}/cancel/").data["permission"] == "mcp_client_app.change_agentrun"
    assert AgentRun.objects.get().status == "queued"
    assert manager.post(f"runs/{run.pk}/cancel/").data["status"] == "cancelled"


# Input

ELICITATION = {
    "size": {
        "method": "elicitation/create",
        "params": {
            "message": "Which size?",
            "requestedSchema": {
                "type": "object",
                "properties": {"size": {"type": "string"}},
                "required": ["size"],
            },
        },
    }
}
ANSWER = {"size": {"action": "accept", "content": {"size": "L"}}}


def test_the_question_of_a_server_is_answered_and_the_run_goes_on(api):
    run = start(api)
    row = ask(run, Approval.Kind.INPUT, requests=ELICITATION)
    backend.given.clear()

    answer = api.post(f"runs/{run.pk}/input/", {"responses": ANSWER})

    assert (answer.status_code, answer.data["status"]) == (202, "queued"), answer.data
    assert backend.given == [str(run.pk)]
    row.refresh_from_db()
    assert row.status == "answered"
    assert services.approval_state(run).decisions[row.call_id].input_responses == ANSWER


def test_of_several_questions_the_one_that_is_meant_is_named(api):
    run = start(api)
    first = ask(run, Approval.Kind.INPUT, requests=ELICITATION)
    second = ask(run, Approval.Kind.INPUT, requests=ELICITATION, tool="other", fingerprint="g")

    unnamed = api.post(f"runs/{run.pk}/input/", {"responses": ANSWER})
    assert (unnamed.status_code, list(unnamed.data["fields"])) == (400, ["approval"])
    assert str(first.pk) in unnamed.data["detail"]

    answer = api.post(f"runs/{run.pk}/input/", {"responses": ANSWER, "approval": str(second.pk)})
    assert (answer.status_code, answer.data["status"]) == (202, "awaiting_input")
    assert [each["id"] for each in answer.data["approvals"]] == [str(first.pk)]


def test_an_answer_is_held_to_what_was_asked(api):
    run = start(api)
    ask(run, Approval.Kind.INPUT, requests=ELICITATION)

    answer = api.post(f"runs/{run.pk}/input/", {"responses": {"size": {"action": "accept", "content": {}}}})

    assert (answer.status_code, answer.data["code"]) == (400, "invalid_input")
    assert AgentRun.objects.get().status == "awaiting_input"


def test_a_run_that_asks_nothing_takes_no_answers(api):
    run = start(api)
    ask(run, Approval.Kind.APPROVAL)
    answer = api.post(f"runs/{run.pk}/input/", {"responses": ANSWER})
    assert (answer.status_code, answer.data["code"]) == (409, "run_state")


def test_a_question_of_another_run_is_not_answered_here(api):
    run, other = start(api), start(api)
    ask(run, Approval.Kind.INPUT, requests=ELICITATION)
    theirs = ask(other, Approval.Kind.INPUT, requests=ELICITATION)

    answer = api.post(f"runs/{run.pk}/input/", {"responses": ANSWER, "approval": str(theirs.pk)})

    assert (answer.status_code, answer.data["code"]) == (404, "unknown_run")
    theirs.refresh_from_db()
    assert theirs.status == "pending"


def test_to_see_a_run_is_not_to_answer_for_it(api, api_as):
    run = start(api)
    ask(run, Approval.Kind.INPUT, requests=ELICITATION)
    looker = Api(user_with("view_agentrun", "run_agentconfig", name="looker"))

    answer = looker.post(f"runs/{run.pk}/input/", {"responses": ANSWER})

    assert answer.status_code == 403
    assert Approval.objects.get().status == "pending"
