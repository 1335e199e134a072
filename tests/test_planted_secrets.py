"""Secrets are planted in every kind of server; then every page and endpoint is read, by all who may."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from mcp_client_app import services
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import (
    AgentConfig,
    AgentRun,
    AgentServer,
    Approval,
    ServerConfig,
    ServerState,
    ToolCall,
    WorkerProcess,
)
from mcp_client_app.runtime.observer import DjangoObserver
from mcp_client_app.testing.fixtures import add_mcp_server, mcp_manager
from tests.authorization.callers import make_clients
from tests.authorization.requests import AGENT, IDS, REMOTE, Ask, admin_asks, api_asks
from tests.services.test_secrets import SECRETS, plant

__all__ = ["add_mcp_server", "mcp_manager"]

pytestmark = pytest.mark.django_db(transaction=True)

HTML = {"accept": "text/html"}
SAFE = ("GET", "POST")
DESTRUCTIVE = ("delete", "disable", "disconnect")
OF_NO_SERVER = ("admin:agent", "admin:approval")
"""Pages that are the same whichever server is looked at."""


@pytest.fixture
def servers(mcp_manager, add_mcp_server, monkeypatch, settings) -> list[ServerConfig]:
    """Servers that were used, each failing in its own way, with all that this leaves behind."""
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True
    settings.MCP_CLIENT_RECORD_STATES = True
    plant(monkeypatch, add_mcp_server)
    url = f"http://127.0.0.1:1/{SECRETS['path']}?key={SECRETS['query']}"
    add_mcp_server(REMOTE, {"type": "http", "url": url, "headers": {"X-Key": SECRETS["header"]}})
    services.connect_all()
    observer = DjangoObserver()
    for status in services.server_statuses():
        observer.state_changed(status)
        try:
            services.call_tool("echo", {"text": "hi"}, server=status.name)
        except MCPClientError:
            continue
    plant_in_an_agent(ServerConfig.objects.get(name=REMOTE))
    return list(ServerConfig.objects.all())


def plant_in_an_agent(server: ServerConfig) -> None:
    """Store an agent, a run of it, and a question of a server that waits to be sent its answer."""
    agent = AgentConfig.objects.create(name=AGENT)
    fixed = {"echo": {"token": SECRETS["env"]}}
    AgentServer.objects.create(agent=agent, server=server, fixed_arguments=fixed)
    run = AgentRun.objects.create(pk=IDS["runs"], agent=agent, agent_name=AGENT, status="awaiting_input")
    Approval.objects.create(
        pk=IDS["approvals"],
        kind="input",
        status="answered",
        run=run,
        agent=agent,
        agent_name=AGENT,
        server_name=server.name,
        tool="echo",
        request_state=SECRETS["env"],
        answers={"key": {"action": "accept", "content": {"key": SECRETS["header"]}}},
        expires_at=timezone.now() + timedelta(days=1),
    )


@pytest.fixture
def clients(servers) -> dict[str, Client]:
    """The superuser, who may see most, and one who may only look."""
    made = make_clients()
    return {name: made[name] for name in ("super", "view", "rest") if name in made}


def pages(servers: list[ServerConfig]) -> Iterator[tuple[Ask, str]]:
    """Yield what to ask: REST for the one server the requests name, the admin for each server."""
    yield from ((ask, "api") for ask in api_asks() if ask.method in SAFE)
    for number, server in enumerate(servers):
        rows: dict[type, Any] = {
            ServerConfig: server,
            WorkerProcess: WorkerProcess.objects.latest("pk"),
            ServerState: ServerState.objects.filter(server=server).last() or ServerState.objects.latest("pk"),
            ToolCall: ToolCall.objects.filter(server_name=server.name).first() or ToolCall.objects.latest(),
            AgentConfig: AgentConfig.objects.get(name=AGENT),
            AgentRun: AgentRun.objects.get(pk=IDS["runs"]),
            Approval: Approval.objects.get(pk=IDS["approvals"]),
        }
        for ask in admin_asks(rows):
            is_read_before = number > 0 and ask.endpoint.startswith(OF_NO_SERVER)
            if not is_read_before and not any(word in str(ask) for word in DESTRUCTIVE):
                yield ask, "admin"
        for place in ("", "tools/", "logs/", "resources/", "prompts/"):
            yield Ask("api:server", "GET", f"/api/mcp/servers/{server.name}/{place}"), "api"


def answer(client: Client, ask: Ask, **headers: str) -> str:
    is_json = not ask.is_form
    content_type = {"content_type": "application/json"} if is_json else {}
    body = None if is_json and ask.method == "GET" else ask.body
    response = getattr(client, ask.method.lower())(ask.path, body, headers=headers, **content_type)
    content = b"".join(response) if response.streaming else response.content
    location = response.headers.get("Location", "")
    return f"{response.status_code} {location} {content.decode('utf-8', 'replace')}"


def test_no_page_and_no_answer_holds_a_secret(servers, clients, caplog):
    """D14."""
    caplog.set_level(logging.DEBUG)
    leaks: list[str] = []
    seen: set[str] = set()
    for name, client in clients.items():
        for ask, kind in pages(servers):
            texts = [answer(client, ask)]
            if kind == "api" and ask.method == "GET":
                texts.append(answer(client, ask, **HTML))
            for text in texts:
                seen.add(text[:3])
                leaks += [f"{name}: {ask}: {key}" for key in hidden_from(name) if SECRETS[key] in text]
    leaks += [record.getMessage() for record in caplog.records if holds_secret(record.getMessage())]
    assert leaks == []
    assert "200" in seen
    assert User.objects.filter(is_superuser=True).exists()


def hidden_from(name: str) -> list[str]:
    """Who may change a server edits its URL and has to see it; everybody else sees scheme and host."""
    return list(SECRETS) if name == "view" else ["env", "header"]


def holds_secret(text: str) -> bool:
    return any(secret in text for secret in SECRETS.values())
