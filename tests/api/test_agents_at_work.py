"""Agents that really run, over REST: a scripted model, real servers, this process's own agents' loop."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from mcp_client_app.agents.loop import close_agents_loop
from mcp_client_app.models import AgentConfig, AgentRun, AgentServer, ToolCall
from tests.api.test_run_streams import blocks, nobody_watches, told, under_asgi
from tests.stored import stored

STREAM = {"accept": "text/event-stream"}


@pytest.fixture(autouse=True)
def _agent(_site, settings) -> Iterator[None]:
    settings.MCP_CLIENT_MODELS = {"scripted:caller": "tests.api.models.caller"}
    agent = AgentConfig.objects.create(name="helper", model="scripted:caller")
    AgentServer.objects.create(agent=agent, server=stored("peer"), tool_approvals={"write": "always"})
    yield
    close_agents_loop()
    nobody_watches()


def prompt(tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the body that has the scripted model call a tool."""
    return {"prompt": f"peer__{tool} {json.dumps(arguments)}"}


ECHO = prompt("echo", text="hi there")
TOLD = [
    ("run", False),
    ("run.started", True),
    ("round", True),
    ("tool.call", True),
    ("tool.result", True),
    ("text.start", False),
    ("text.delta", False),
    ("text.delta", False),
    ("text.delta", False),
    ("run.completed", True),
]


def test_who_asks_an_agent_gets_its_answer(api):
    answer = api.post("agents/helper/run/", ECHO)

    assert (answer.status_code, answer.data["status"]) == (200, "completed"), answer.data
    assert (answer.data["text"], answer.data["tool_rounds"]) == ("It said: hi there", 1)
    call = ToolCall.objects.get()
    assert (call.agent, call.tool, call.username, call.code) == ("helper", "echo", "admin", "ok")


def test_a_run_is_told_while_it_runs_and_told_again(api):
    events = told(api.post("agents/helper/run/", ECHO, **STREAM))

    assert [(event.name, event.number is not None) for event in events] == TOLD
    assert "".join(event.data["text"] for event in events if event.name.startswith("text.")) == (
        "It said: hi there"
    )
    again = told(api.get(f"runs/{events[0].data['id']}/events/", **STREAM))
    assert again == [event for event in events if event.number]


def test_a_run_waits_for_approval_and_goes_on(api, tmp_path):
    answer = api.post("agents/helper/run/", prompt("write", path=str(tmp_path / "out"), text="x"))
    assert (answer.status_code, answer.data["status"]) == (202, "awaiting_approval")
    [waits] = answer.data["approvals"]
    assert not (tmp_path / "out").exists()

    following = api.get(f"runs/{answer.data['id']}/events/", **STREAM)
    assert api.post(f"approvals/{waits['id']}/approve/", {}).status_code == 200
    names = [event.name for event in told(following)]

    assert names.count("run.paused") == 1
    assert names[-1] == "run.completed"
    assert (tmp_path / "out").read_text().splitlines() == ["x"]
    run = api.get(f"runs/{answer.data['id']}/").data
    assert (run["status"], run["approvals"]) == ("completed", [])


def test_a_run_is_cancelled_while_its_tool_is_called(api):
    started = api.post("agents/helper/runs/", prompt("hang")).data["id"]
    following = api.get(f"runs/{started}/events/", **STREAM)
    events = iter(following.streaming_content)
    while b"tool.call" not in next(events):
        pass

    assert api.post(f"runs/{started}/cancel/").status_code in (200, 202)
    rest = b"".join(events).decode()
    following.close()

    assert "event: run.cancelled" in rest
    assert api.get(f"runs/{started}/").data["status"] == "cancelled"


@pytest.fixture(params=["wsgi", "asgi"])
def url(request, api) -> Iterator[str]:
    api.user.set_password("secret")
    api.user.save()
    if request.param == "wsgi":
        yield request.getfixturevalue("live_server").url
    else:
        with under_asgi() as found:
            yield found


def test_text_is_told_as_it_comes_under_wsgi_and_asgi(url):
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    headers = {
        "Authorization": f"Basic {base64.b64encode(b'admin:secret').decode()}",
        "Accept": "text/event-stream",
        "Content-Type": "application/json",
    }
    with contextlib.closing(connection):
        connection.request("POST", "/api/mcp/agents/helper/run/", json.dumps(ECHO), headers)
        response = connection.getresponse()
        events = [event for event in blocks(response) if event is not None]
        response.close()

    assert [(event.name, event.number is not None) for event in events] == TOLD
    assert AgentRun.objects.get().status == "completed"


def test_a_process_that_executes_as_much_as_it_may_says_so(api, settings, tmp_path):
    settings.MCP_CLIENT_RUN_WORKERS = 1
    go = tmp_path / "go"
    first = api.post("agents/helper/runs/", prompt("wait", path=str(go)))

    refused = api.post("agents/helper/run/", ECHO)
    go.touch()

    assert first.status_code == 202
    assert (refused.status_code, refused.data["code"], refused["Retry-After"]) == (429, "busy", "5")
    assert AgentRun.objects.count() == 1
    assert told(api.get(f"runs/{first.data['id']}/events/", **STREAM))[-1].name == "run.completed"
