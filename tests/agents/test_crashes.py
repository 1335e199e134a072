"""Workers that are gone in mid run: nothing is done twice, and what is not known is not claimed."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from mcp.types import ToolAnnotations

from mcp_client_app import services
from mcp_client_app.agents.api import start_agent
from mcp_client_app.agents.executor import execute_run
from mcp_client_app.agents.loop import close_agents_loop
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentConfig, AgentEvent, AgentRun, AgentServer, RunCall
from mcp_client_app.testing import fake_server
from tests.agents.conftest import at_rest
from tests.agents.scripts import asks, call, says, scripted, tool_results


class Desk:
    """A server with tools that do not come back before they may."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.may_go = threading.Event()
        self.calls: list[str] = []

    def _work(self, name: str) -> str:
        self.calls.append(name)
        self.arrived.set()
        self.may_go.wait(60)
        return f"{name} done"

    def server(self) -> Any:
        server = fake_server("desk", tools={"write": lambda: self._work("write"), "quick": lambda: "quick"})
        server.add_tool(
            lambda: self._work("look"),
            name="look",
            annotations=ToolAnnotations(read_only_hint=True),
        )
        return server


@pytest.fixture
def desk(transactional_db, add_mcp_server, settings):
    desk = Desk()
    server = add_mcp_server("desk", desk.server(), trust_annotations=True)
    row = AgentConfig.objects.create(name="clerk", model="scripted:writer")
    AgentServer.objects.create(agent=row, server=server)
    settings.MCP_CLIENT_MODELS = {
        "scripted:writer": f"{__name__}.writer",
        "scripted:reader": f"{__name__}.reader",
    }
    yield desk
    desk.may_go.set()


def _report(messages, info):
    return says(" / ".join(text for _, _, text in tool_results(messages)))


def writer():
    return scripted(asks(call("desk__quick", "q")), asks(call("desk__write", "w")), _report)


def reader():
    return scripted(asks(call("desk__look", "l")), _report)


def crash(desk: Desk, run: AgentRun | None = None) -> AgentRun:
    """Begin a run, or take one that goes on, and have its worker vanish while a call is made."""
    run = run or start_agent("clerk", "Go.")
    assert desk.arrived.wait(60)
    close_agents_loop()
    run.refresh_from_db()
    assert run.state is RunStatus.RUNNING  # nobody has ended it: it is left to whoever finds it
    AgentRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    desk.may_go.set()
    return run


def test_a_write_of_a_worker_that_is_gone_is_not_repeated_and_said_to_be_unknown(desk):
    run = crash(desk)

    assert execute_run(run.pk) is True
    run.refresh_from_db()

    assert run.state is RunStatus.COMPLETED
    assert desk.calls == ["write"]
    first, second = run.text.split(" / ")
    assert first == "quick"
    assert "unknown" in second
    assert "not repeated" in second
    assert RunCall.objects.get(call_id="w").status == RunCall.Status.UNKNOWN


def test_a_call_that_may_be_repeated_is(desk):
    AgentConfig.objects.update(model="scripted:reader")
    run = crash(desk)

    assert execute_run(run.pk) is True
    run.refresh_from_db()

    assert desk.calls == ["look", "look"]
    assert run.text == "look done"


def test_a_call_that_may_be_repeated_is_not_if_people_allowed_it_once(desk):
    AgentConfig.objects.update(model="scripted:reader", approval="always")
    run = start_agent("clerk", "Go.")
    waits = at_rest(run.pk, RunStatus.AWAITING_APPROVAL)
    services.approve(waits.approvals.get().pk)
    run = crash(desk, run)

    assert execute_run(run.pk) is True
    run.refresh_from_db()

    assert desk.calls == ["look"]
    assert "outcome of this call is unknown" in run.text


def test_nothing_is_told_twice(desk):
    run = crash(desk)
    execute_run(run.pk)

    kinds = list(AgentEvent.objects.filter(run=run).order_by("number").values_list("kind", flat=True))
    assert kinds.count("tool.call") == 2
    assert kinds.count("tool.result") == 2
    assert kinds.count("round") == 2
    assert kinds.count("run.started") == 2
    run.refresh_from_db()
    assert run.tool_rounds == 2
    assert run.usage["requests"] == 3
    assert run.seconds_used > 0


def test_a_run_whose_worker_lives_is_not_to_be_had(desk):
    run = start_agent("clerk", "Go.")
    assert desk.arrived.wait(60)

    assert execute_run(run.pk) is False
    assert desk.calls == ["write"]
