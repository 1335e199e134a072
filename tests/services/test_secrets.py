"""Secrets are planted everywhere and looked for everywhere else."""

from __future__ import annotations

import json
import logging
import traceback
from typing import Any

import pytest

from mcp_client_app import services
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import ServerConfig, ServerState, ToolCall
from mcp_client_app.runtime import row_source
from mcp_client_app.runtime.observer import DjangoObserver
from tests.stored import peer_entry

pytestmark = pytest.mark.django_db(transaction=True)

SECRETS = {
    "env": "env-5ecret-value-4711",
    "header": "header-5ecret-value-4711",
    "path": "path-5ecret-value-4711",
    "query": "query-5ecret-value-4711",
    "password": "password-5ecret-value-4711",
}


def plant(monkeypatch, add_mcp_server) -> None:
    """Store servers of every kind that hold secrets and fail in different ways."""
    monkeypatch.setenv("PLANTED", SECRETS["env"])
    url = f"http://127.0.0.1:1/{SECRETS['path']}?key={SECRETS['query']}"
    headers = {"Authorization": f"Bearer {SECRETS['header']}", "X-Other": "${PLANTED}"}
    env = {"TOKEN": SECRETS["env"], "OTHER": "$PLANTED"}
    add_mcp_server("works", {**peer_entry(), "env": env})
    add_mcp_server("dies", {**peer_entry("--scenario=die_on_call=7"), "env": env})
    add_mcp_server("tells", {**peer_entry("--scenario=telltale"), "env": env})
    add_mcp_server("tells-and-dies", {**peer_entry("--scenario=telltale=crash"), "env": env})
    add_mcp_server("refused", {"type": "http", "url": url, "headers": headers})
    add_mcp_server("old", {"type": "sse", "url": url, "headers": headers})
    row = add_mcp_server("login", {"type": "http", "url": url, "headers": headers})
    # No validation was asked: the core may trust no row.
    ServerConfig.objects.filter(pk=row.pk).update(
        url=f"http://ada:{SECRETS['password']}@127.0.0.1:1/{SECRETS['path']}"
    )
    add_mcp_server("no-program", {"command": "surely-no-such-program", "env": env})
    add_mcp_server("no-variable", {**peer_entry(), "env": {"A": f"{SECRETS['env']} ${{NOT_SET_ANYWHERE}}"}})


def everything_said(error: BaseException) -> list[str]:
    said = [str(error), repr(error), *traceback.format_exception(error)]
    if isinstance(error, MCPClientError):
        said.append(json.dumps(error.details(), default=str))
    return said


def test_secrets_show_up_nowhere(mcp_manager, add_mcp_server, make_user, monkeypatch, settings, caplog):
    """D14."""
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True
    settings.MCP_CLIENT_RECORD_STATES = True
    caplog.set_level(logging.DEBUG)
    plant(monkeypatch, add_mcp_server)
    said: list[Any] = []

    said.append(services.connect_all())
    for server in ServerConfig.objects.all():
        for verb in (
            lambda name: services.connect(name),
            lambda name: services.call_tool("echo", {"text": "hi"}, server=name),
            lambda name: services.list_tools(name),
            lambda name: services.read_resource(name, "x://y"),
            lambda name: services.test_server(name),
            lambda name: services.server_status(name),
            lambda name: mcp_manager.get_client(name),
        ):
            try:
                said.append(verb(server.name))
            except MCPClientError as error:
                said += everything_said(error)
        said += [repr(server), str(server), repr(server.env), f"{server.headers}"]
    said.append(services.server_statuses())
    said.append(services.list_tools(wait=0).errors)
    said.append(row_source.current())
    viewer = make_user("view_serverconfig")
    said.append(json.dumps(services.export_servers(user=viewer)))
    observer = DjangoObserver()
    for status in services.server_statuses():
        observer.state_changed(status)
    said += [list(ServerState.objects.values()), list(ToolCall.objects.values())]
    said += [record.getMessage() for record in caplog.records]
    said.append(caplog.text)
    observer.closed()

    text = "\n".join(each if isinstance(each, str) else repr(each) for each in said)
    leaks = [line for line in text.splitlines() if any(secret in line for secret in SECRETS.values())]
    assert leaks == []
    assert "works" in text
    assert "refused" in text


def test_a_server_that_tells_its_environment_does_not_tell_the_audit(add_mcp_server, settings, monkeypatch):
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True
    plant(monkeypatch, add_mcp_server)

    result = services.call_tool("works__env")

    assert SECRETS["env"] in result.text, "the caller gets what the tool said"
    assert SECRETS["env"] not in json.dumps(ToolCall.objects.get().result)
