"""The views that work as agents do: over REST on a real port, over services under WSGI and ASGI."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.test import AsyncClient
from rest_framework.authtoken.models import Token

from example_project import settings as example_settings
from mcp_client_app.agents.loop import close_agents_loop
from mcp_client_app.models import AgentConfig, AgentServer, ServerConfig, ToolCall
from mcp_client_app.testing import fake_server
from mcp_client_app.testing.fixtures import add_mcp_server, mcp_manager
from tests.stored import close_connections

__all__ = ["add_mcp_server", "mcp_manager"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls("example_project.urls")]

PLACES = ["/agents/rest/", "/agents/services/", "/agents/services/async/"]
WISH = {"wanted": "forecast", "arguments": {"city": "Oslo"}}


def forecast(city: str) -> str:
    """Tell the weather."""
    if city == "Atlantis":
        raise ValueError("There is no weather under water.")
    return f"{city}: sunny"


@pytest.fixture(autouse=True)
def weather(add_mcp_server, settings) -> None:
    settings.REST_FRAMEWORK = example_settings.REST_FRAMEWORK
    add_mcp_server("weather", fake_server("weather", tools={"forecast": forecast}))
    add_mcp_server("other", fake_server("other", tools={"unrelated": lambda: "no"}))


def token_of(name: str, *codenames: str) -> str:
    user = User.objects.create_user(name)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return str(Token.objects.create(user=user).key)


def post(place: str, server: Any, token: str | None = None, body: Any = WISH) -> tuple[int, dict[str, Any]]:
    """Post to a view of the live server: a real port, with a thread for each request."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Token {token}"} if token else {})
    request = urllib.request.Request(server.url + place, json.dumps(body).encode(), headers)
    try:
        answer = urllib.request.urlopen(request)
    except urllib.error.HTTPError as refusal:
        answer = refusal
    with answer:
        assert answer.headers["WWW-Authenticate"] == ("Token" if answer.status == 401 else None)
        return answer.status, json.load(answer)


@pytest.mark.parametrize("place", PLACES)
def test_an_agent_finds_a_tool_and_calls_it_in_the_name_of_its_caller(place, live_server):
    answer = post(place, live_server, token_of("ada", "call_tool"))
    assert answer == (200, {"tool": "weather__forecast", "is_error": False, "text": "Oslo: sunny"})
    assert ToolCall.objects.get().username == "ada"


@pytest.mark.parametrize("place", PLACES)
def test_a_failure_of_the_tool_is_an_answer(place, live_server):
    body = {"wanted": "forecast", "arguments": {"city": "Atlantis"}}
    status, answer = post(place, live_server, token_of("ada", "call_tool"), body)
    assert status == 200
    assert answer["is_error"]
    assert "under water" in answer["text"]


@pytest.mark.parametrize("place", PLACES)
def test_nobody_is_let_in_without_a_token(place, live_server):
    status, answer = post(place, live_server)
    assert (status, answer["code"]) == (401, "not_authenticated")
    status, answer = post(place, live_server, "wrong")
    assert (status, answer["code"]) == (401, "authentication_failed")


@pytest.mark.parametrize("place", PLACES)
def test_the_permissions_of_the_caller_hold(place, live_server):
    status, answer = post(place, live_server, token_of("eve", "view_serverconfig"))
    assert (status, answer["code"]) == (403, "permission_denied")
    assert not ToolCall.objects.filter(code="ok").exists()


@pytest.mark.parametrize("place", PLACES)
def test_a_tool_that_nobody_offers_is_unknown(place, live_server):
    status, answer = post(place, live_server, token_of("ada", "call_tool"), {"wanted": "paint"})
    assert (status, answer["code"]) == (404, "unknown_tool")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ([], "object"),
        ({}, "'wanted'"),
        ({"wanted": 5}, "'wanted'"),
        ({"wanted": "forecast", "arguments": []}, "'arguments'"),
    ],
)
def test_a_request_that_makes_no_sense_is_explained(body, named, live_server):
    status, answer = post("/agents/services/", live_server, token_of("ada", "call_tool"), body)
    assert status == 400
    assert named in answer["detail"]


@pytest.fixture
def clerk(settings) -> AgentConfig:
    """A stored agent whose model asks for each tool once."""
    settings.MCP_CLIENT_MODELS = {"offline:test": "pydantic_ai.models.test.TestModel"}
    row = AgentConfig.objects.create(name="clerk", model="offline:test")
    AgentServer.objects.create(agent=row, server=ServerConfig.objects.get(name="weather"))
    return row


@pytest.fixture
def _agents_closed() -> Iterator[None]:
    yield
    close_agents_loop()


@pytest.mark.usefixtures("clerk", "_agents_closed")
def test_a_stored_agent_runs_in_the_name_of_its_caller(live_server):
    order = {"agent": "clerk", "prompt": "How is the weather?"}
    status, answer = post("/agents/run/", live_server, token_of("ada", "run_agentconfig", "call_tool"), order)
    assert status == 200
    assert (answer["status"], answer["tool_rounds"]) == ("completed", 1)
    assert "sunny" in answer["text"]
    call = ToolCall.objects.get()
    assert (call.username, call.agent, call.tool) == ("ada", "clerk", "forecast")


@pytest.mark.usefixtures("clerk")
def test_what_the_api_says_of_a_run_that_may_not_be_is_passed_on(live_server):
    may, may_not = token_of("ada", "run_agentconfig"), token_of("eve", "call_tool")
    order = {"agent": "clerk", "prompt": "How is the weather?"}
    status, answer = post("/agents/run/", live_server, may_not, order)
    assert (status, answer["code"]) == (403, "permission_denied")
    status, answer = post("/agents/run/", live_server, may, {"agent": "nobody", "prompt": "?"})
    assert (status, answer["code"]) == (404, "unknown_agent")
    status, answer = post("/agents/run/", live_server, may, {"agent": "clerk"})
    assert status == 400
    assert "'prompt'" in answer["detail"]
    status, answer = post("/agents/run/", live_server, None, order)
    assert (status, answer["code"]) == (401, "not_authenticated")


@pytest.mark.parametrize("place", ["/agents/services/", "/agents/services/async/"])
def test_the_views_over_services_answer_under_wsgi(place, client):
    headers = {"authorization": f"Token {token_of('ada', 'call_tool')}"}
    response = client.post(place, WISH, content_type="application/json", headers=headers)
    assert response.json()["text"] == "Oslo: sunny"


@pytest.mark.anyio
@pytest.mark.parametrize("place", ["/agents/services/", "/agents/services/async/"])
async def test_the_views_over_services_answer_under_asgi_side_by_side(place):
    token = await sync_to_async(token_of)("ada", "call_tool")
    requests = [
        AsyncClient().post(
            place,
            json.dumps({"wanted": "forecast", "arguments": {"city": f"City {number}"}}),
            content_type="application/json",
            headers={"authorization": f"Token {token}"},
        )
        for number in range(8)
    ]
    answers = await asyncio.gather(*requests)
    assert [answer.json()["text"] for answer in answers] == [f"City {number}: sunny" for number in range(8)]
    await close_connections()
