"""A run pauses in one process, a person decides over REST in a second one, a third one goes on with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rest_framework.authtoken.models import Token

from mcp_client_app import services
from mcp_client_app.models import AgentConfig, AgentServer, Approval
from tests.approvals.cases import overdue, user
from tests.approvals.processes import SETTINGS, Site, served
from tests.stored import run_process, stored

pytestmark = pytest.mark.django_db(transaction=True)

ASK = {
    "method": "elicitation/create",
    "params": {
        "message": "Which key?",
        "requestedSchema": {
            "type": "object",
            "properties": {"key": {"type": "string", "minLength": 2}},
            "required": ["key"],
        },
    },
}
START = """
from django.contrib.auth.models import User
from mcp_client_app.agents.api import run_agent
result = run_agent({agent!r}, {prompt!r}, user=User.objects.get(username="ann"))
print(json.dumps([os.getpid(), str(result.status), str(result.run_id), list(result.approvals)]))
"""
MISUSE = """
from django.contrib.auth.models import User
from mcp_client_app import services
from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.exceptions import ApprovalError
place = dict(toolset_name="writer", tool=ToolInfo(server="files", name="write"), run={run!r}, call_id="w1")
changed = {{"path": "/etc/passwd", "text": "a line"}}
for given, who, reason in ((changed, "ann", "changed"), ({given!r}, "eve", "other_user")):
    try:
        services.use_approval({approval!r}, given=given, user=User.objects.get(username=who), **place)
    except ApprovalError as error:
        assert error.reason == reason, error.reason
    else:
        raise AssertionError(given, who)
"""
GO_ON = """
from mcp_client_app.agents.executor import execute_run
from mcp_client_app.models import AgentRun
done = execute_run({run!r})
run = AgentRun.objects.get(pk={run!r})
print(json.dumps([os.getpid(), done, run.status, run.text]))
"""


@pytest.fixture
def tokens(db) -> dict[str, str]:
    """Who may sign in: the owner of the run, somebody who may only look, and a stranger."""
    people = {
        "ann": user("ann", "run_agentconfig", "call_tool"),
        "auditor": user("auditor", "run_agentconfig", "view_agentrun"),
        "eve": user("eve", "run_agentconfig"),
    }
    return {name: Token.objects.create(user=person).key for name, person in people.items()}


@pytest.fixture(scope="module")
def site(django_db_setup) -> Iterator[Site]:
    with served() as serving:
        yield serving


def agent(name: str, server: Any, **fields: Any) -> None:
    row = AgentConfig.objects.create(name=name, model=f"scripted:{name}")
    AgentServer.objects.create(agent=row, server=server, **fields)


def start(name: str, prompt: str) -> tuple[int, str, str, str]:
    """Run an agent in a process until it waits; return pid, status, run and what it waits for."""
    pid, status, run, (waiting,) = json.loads(run_process(SETTINGS + START.format(agent=name, prompt=prompt)))
    return pid, status, run, waiting


def go_on(run: str, before: str = "") -> tuple[int, bool, str, str]:
    """Go on with a run in another process; return pid, whether it was to be had, status and answer."""
    pid, done, status, text = json.loads(run_process(SETTINGS + before + GO_ON.format(run=run)))
    return pid, done, status, text


def test_a_call_is_approved_over_rest_and_made_by_a_third_process(site, tokens, tmp_path):
    written: Path = tmp_path / "written.txt"
    agent("writer", stored("files"), approval="always")
    first, status, run, approval = start("writer", str(written))
    assert (status, written.exists()) == ("awaiting_approval", False)

    def decide(who: str, verb: str = "approve", **body: Any) -> tuple[int, Any, Any]:
        code, answer = site.post(tokens[who], f"approvals/{approval}/{verb}/", body)
        return code, answer.get("code"), answer.get("reason")

    assert decide("eve") == (404, "unknown_run", None)
    assert decide("auditor") == (403, "permission_denied", None)
    assert decide("ann", arguments={"text": 1})[:2] == (400, "invalid_arguments")
    assert decide("ann")[0] == 200
    assert decide("ann") == (409, "approval_invalid", "decided")
    assert decide("ann", "deny") == (409, "approval_invalid", "decided")
    assert not written.exists()

    misuse = MISUSE.format(run=run, approval=approval, given=Approval.objects.get().arguments)
    third, done, status, text = go_on(run, misuse)
    assert (done, status, text) == (True, "completed", "written")
    assert written.read_text().splitlines() == ["a line"]
    assert len({first, site.pid, third}) == 3
    assert decide("ann") == (409, "approval_invalid", "decided")


def test_a_run_goes_on_without_the_call_that_nobody_has_allowed_in_time(site, tokens, tmp_path):
    written = tmp_path / "written.txt"
    agent("writer", stored("files"), approval="always")
    _, _, run, approval = start("writer", str(written))
    overdue(Approval.objects.get())
    code, answer = site.post(tokens["ann"], f"approvals/{approval}/approve/")
    assert (code, answer["reason"]) == (409, "expired")
    _, done, status, text = go_on(run)
    assert (done, status, written.exists()) == (True, "completed", False)
    assert "no person has decided in time" in text


def test_a_server_is_answered_over_rest_and_reads_it_from_a_third_process(site, tokens):
    script = {"": {"inputRequests": {"key": ASK}, "requestState": "opaque"}}
    agent("asker", stored("safe", f"--scenario=asks={json.dumps(script)}", "--era=2026-07-28"))
    first, status, run, question = start("asker", "Go.")
    assert status == "awaiting_input"

    def answer(who: str, place: str, content: dict[str, Any], **more: Any) -> tuple[int, Any, Any]:
        responses = {"key": {"action": "accept", "content": content}}
        code, body = site.post(tokens[who], place, {"responses": responses, **more})
        return code, body.get("code"), body.get("reason")

    place = f"approvals/{question}/answer/"
    assert answer("eve", place, {"key": "mine"}) == (404, "unknown_run", None)
    assert answer("auditor", place, {"key": "mine"}) == (403, "permission_denied", None)
    assert answer("eve", f"runs/{run}/input/", {"key": "mine"})[:2] == (404, "unknown_run")
    assert answer("auditor", f"runs/{run}/input/", {"key": "mine"})[:2] == (403, "permission_denied")
    assert answer("ann", place, {"key": "k"}) == (400, "invalid_input", None)
    assert answer("ann", f"runs/{run}/input/", {"key": "the key"})[0] in (200, 202)
    assert answer("ann", place, {"key": "another"}) == (409, "approval_invalid", "decided")

    third, done, status, text = go_on(run)
    assert (done, status) == (True, "completed")
    told = json.loads(text)
    assert told["inputResponses"] == {"key": {"action": "accept", "content": {"key": "the key"}}}
    assert told["requestState"] == "opaque"
    assert len({first, site.pid, third}) == 3
    (row,) = services.list_approvals(run=run)
    assert (row.status, row.answers, row.request_state) == ("used", None, "")
