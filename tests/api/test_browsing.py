"""The browsable API: pages for people, with forms that work and without secrets."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import pytest

from mcp_client_app.models import AgentConfig, AgentEvent, AgentRun, AgentServer, ServerConfig
from tests.api.conftest import MOUNT, Api
from tests.stored import stored

SECRET = "s3cret-value-that-never-shows"
HTML = {"accept": "text/html"}
RUN = "00000000-0000-4000-8000-000000000001"


def page(api: Api, place: str) -> str:
    answer = api.get(place, **HTML)
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/html")
    return str(answer.content.decode())


def form(api: Api, place: str, method: str = "post", **fields: str) -> Any:
    """Send a form as a page of the browsable API does."""
    return api.client.generic(
        method.upper(), MOUNT + place, urlencode(fields), "application/x-www-form-urlencoded", headers=HTML
    )


@pytest.fixture
def browser(api: Api) -> Api:
    ServerConfig.objects.create(
        name="remote",
        transport="streamable_http",
        url="https://example.com/mcp",
        headers={"Authorization": SECRET},
        extra={"token": SECRET},
    )
    peer = stored("peer", env={"API_KEY": SECRET})
    agent = AgentConfig.objects.create(name="clerk")
    AgentServer.objects.create(agent=agent, server=peer, fixed_arguments={"add": {"b": SECRET}})
    run = AgentRun.objects.create(pk=RUN, agent=agent, agent_name="clerk", user=api.user, prompt="<planted>")
    AgentEvent.objects.create(run=run, number=1, kind="run.started")
    return api


@pytest.mark.parametrize(
    "place",
    [
        "",
        "servers/",
        "servers/remote/",
        "servers/peer/",
        "servers/peer/tools/?wait=10",
        "tools/",
        "calls/",
        "export/",
        "health/",
        "servers/peer/logs/",
        "agents/clerk/tools/?wait=10",
        "agents/clerk/runs/",
        "runs/",
        f"runs/{RUN}/",
        f"runs/{RUN}/events/",
    ],
)
def test_pages_render_without_secrets(browser, place):
    text = page(browser, place)
    assert SECRET not in text
    assert "<planted>" not in text
    assert "<h1>" in text


def test_a_form_adds_a_server_and_an_empty_box_is_no_secret(browser):
    text = page(browser, "servers/")
    assert 'name="command"' in text
    assert 'name="headers"' in text

    answer = form(
        browser,
        "servers/",
        name="new",
        transport="sse",
        url="https://example.com",
        headers='{"X": "y"}',
        env="",
    )

    assert answer.status_code == 201
    row = ServerConfig.objects.get(name="new")
    assert (row.headers, row.env) == ({"X": "y"}, {})


def test_a_form_changes_a_server_and_keeps_its_secrets(browser):
    text = page(browser, "servers/remote/")
    assert re.search(r'name="url"[^>]*value="https://example.com/mcp"', text)

    answer = form(
        browser,
        "servers/remote/",
        "put",
        label="Remote",
        url="https://example.com/new",
        transport="streamable_http",
        headers="",
        env="",
        enabled="true",
    )

    assert answer.status_code == 200, answer.content
    row = ServerConfig.objects.get(name="remote")
    assert (row.label, row.url, row.headers) == (
        "Remote",
        "https://example.com/new",
        {"Authorization": SECRET},
    )


def test_a_form_calls_a_tool(browser):
    answer = form(browser, "tools/call/", name="peer__pid")
    assert answer.status_code == 200
    assert "is_error" in answer.content.decode()


@pytest.mark.parametrize("place", ["servers/peer/connect/", "servers/peer/test/", "servers/peer/refresh/"])
def test_what_takes_no_body_has_a_page_too(browser, place):
    answer = form(browser, place)
    assert answer.status_code == 200
    assert "<h1>" in answer.content.decode()


def test_who_may_not_add_servers_sees_no_form_for_it(api_as):
    assert 'name="command"' not in page(api_as("view_serverconfig"), "servers/")
