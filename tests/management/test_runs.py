"""The verbs runs and reap."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from mcp_client_app import services
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentConfig, AgentRun
from tests.agents.scripts import says, scripted
from tests.management.conftest import Run
from tests.runs.conftest import asked, fresh, give_up, prepared
from tests.runs.conftest import given as given  # a fixture


@pytest.fixture
def agent(run: Run, given: list[str]) -> AgentConfig:
    """An agent whose runs nobody executes."""
    return AgentConfig.objects.create(name="support", model="scripted:greeter")


def greeter() -> Any:
    return scripted(says("Hello."))


def ended(**options: Any) -> AgentRun:
    """Return a run that is over, with a call."""
    run = services.create_run("support", "Help me!")
    services.claim(run.pk, "a")
    services.RunJournal(run.pk, "a", "c1").begin(prepared(amount=3), is_safe=False)
    services.finish(run.pk, "a", RunStatus.FAILED, code="model_error", detail="It is away.", text="So far.")
    return run


@pytest.mark.parametrize("zones", [True, False])
def test_runs_are_listed_latest_first(run: Run, agent: AgentConfig, settings: Any, zones: bool):
    settings.USE_TZ = zones
    first, second = ended(), services.create_run("support", "Once\nmore!")

    lines = run("runs").lines

    assert lines[0].split() == ["RUN", "STATUS", "AGENT", "USER", "CREATED", "ROUNDS", "PROMPT"]
    assert [line.split()[:2] for line in lines[1:]] == [
        [str(second.pk), "queued"],
        [str(first.pk), "failed"],
    ]
    assert lines[1].endswith("Once more!")
    assert [line.split()[0] for line in run("runs", "--limit", "1").lines[1:]] == [str(second.pk)]
    assert [line.split()[0] for line in run("runs", "--status", "failed").lines[1:]] == [str(first.pk)]
    assert run("runs", "--agent", "sales").out == "There are no such runs.\n"


def test_machines_get_runs_as_a_document(run: Run, agent: AgentConfig):
    found = ended()

    [document] = run("runs", "--json").document["runs"]

    assert document["id"] == str(found.pk)
    assert (document["status"], document["code"], document["detail"]) == (
        "failed",
        "model_error",
        "It is away.",
    )


def test_one_run_is_shown_with_its_calls_and_its_answer(run: Run, agent: AgentConfig):
    found = ended()

    result = run("runs", str(found.pk))

    assert result.lines[:2] == ["support: failed (model_error)", "It is away."]
    assert "Help me!" in result.out
    assert ["shop:", "refund", "unknown", "interrupted", "no"] in [line.split() for line in result.lines]
    assert result.out.endswith("So far.\n")
    assert "planted-secret" not in result.out
    document = run("runs", str(found.pk), "--json").document["run"]
    [call] = document["calls"]
    assert (call["call_id"], call["arguments"], call["status"]) == ("c1", {"amount": 3}, "unknown")


def test_a_run_that_waits_shows_for_what(run: Run, agent: AgentConfig):
    found = services.create_run("support", "Refund it!")
    services.claim(found.pk, "a")
    approval = asked(found)
    services.pause(found.pk, "a", RunStatus.AWAITING_APPROVAL, messages=[])

    shown = run("runs", str(found.pk))
    [waiting] = run("runs", str(found.pk), "--json").document["run"]["waits_for"]

    assert [line.split()[0] for line in shown.lines if "approval of a call" in line] == [str(approval.pk)]
    assert (waiting["approval"], waiting["kind"]) == (str(approval.pk), "approval")
    assert (waiting["tool"], waiting["arguments"]) == (approval.tool, approval.arguments)


def test_a_run_is_cancelled(run: Run, agent: AgentConfig):
    queued, running = services.create_run("support", "Help!"), services.create_run("support", "Help!")
    services.claim(running.pk, "web-1:4711")

    assert run("runs", str(queued.pk), "--cancel").lines[0] == "support: cancelled"
    assert run("runs", str(running.pk), "--cancel").lines[:2] == [
        "support: running",
        "web-1:4711 works on it. Somebody has asked to cancel it.",
    ]
    services.finish(running.pk, "web-1:4711", RunStatus.COMPLETED)
    late = run("runs", str(running.pk), "--cancel", "--json")
    assert (late.code, late.document["error"]["code"]) == (2, "run_state")


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "--cancel"),
        ("runs", "no-id"),
        ("runs", "--limit", "0"),
        ("runs", "--limit", "x"),
        ("runs", "--status", "gone"),
        ("reap", "--older-than", "-1"),
        ("reap", "--older-than", "nan"),
        ("reap", "--older-than", "x"),
    ],
)
def test_what_cannot_be_meant_is_refused(run: Run, agent: AgentConfig, words: tuple[str, ...]):
    assert run(*words).code in (1, 2)


def test_nothing_is_to_be_done(run: Run, agent: AgentConfig):
    assert run("reap").out == "There is nothing to do.\n"
    assert run("reap", "--json").document == {
        "runs": {},
        "approvals": 0,
        "deleted_runs": 0,
        "deleted_approvals": 0,
        "deleted_receipts": 0,
    }


def test_what_was_done_is_told(run: Run, agent: AgentConfig):
    old = ended()
    AgentRun.objects.update(finished_at=timezone.now() - timedelta(days=8))
    lost = services.create_run("support", "Help!")
    give_up(lost)
    asked(None, expires_at=timezone.now())  # type: ignore[arg-type]

    result = run("reap", "--older-than", "7")

    assert result.code == 0
    assert [line.split() for line in result.lines] == [
        ["RUN", "DONE"],
        [str(lost.pk), "failed"],
        ["approvals:", "1"],
        ["deleted", "runs:", "1"],
    ]
    assert not AgentRun.objects.filter(pk=old.pk).exists()


def test_runs_of_threads_go_on_before_the_command_ends(run: Run, agent: AgentConfig, settings: Any):
    settings.MCP_CLIENT_RUN_BACKEND = "thread"
    settings.MCP_CLIENT_MODELS = {"scripted:greeter": f"{__name__}.greeter"}
    left = services.create_run("support", "Help!")
    AgentRun.objects.update(in_background=True)
    services.claim(left.pk, "gone")
    give_up(left)

    document = run("reap", "--json").document

    assert document["runs"] == {str(left.pk): "resumed"}
    row = fresh(left)
    assert (row.state, row.text, row.attempts) == (RunStatus.COMPLETED, "Hello.", 2)


def test_runs_of_another_backend_are_only_handed_over(run: Run, agent: AgentConfig, given: list[str]):
    left = services.create_run("support", "Help!")
    services.submit(left)
    give_up(left)

    assert run("reap", "--json").document["runs"] == {str(left.pk): "handed_out"}
    assert given == [str(left.pk)] * 2
