"""Markup is planted in whatever servers and users may say; no page of admin or REST takes it for its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from mcp.server.mcpserver import Context

from mcp_client_app import services
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models import AgentConfig, ServerConfig, ToolCall
from mcp_client_app.testing import fake_server
from mcp_client_app.testing.fixtures import add_mcp_server, mcp_manager
from tests.admin import pages

__all__ = ["add_mcp_server", "mcp_manager"]

pytestmark = pytest.mark.django_db(transaction=True)

PLANTED = "planted"
MARKUP = f"\"'><{PLANTED} on{PLANTED}=1>{{{{ {PLANTED} }}}}"


class Markup(HTMLParser):
    """Finds elements and attributes that were planted."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if PLANTED in tag or any(PLANTED in name for name, _ in attrs):
            self.found.append(f"{self.getpos()}: <{tag} {attrs}>")


def planted_in(page: str) -> list[str]:
    parser = Markup()
    parser.feed(page)
    return parser.found


def evil() -> Any:
    """Return a server that says nothing but markup."""

    async def say(ctx: Context, text: str = MARKUP) -> str:
        await ctx.report_progress(1, 2, MARKUP)
        return text

    server = fake_server(MARKUP, instructions=MARKUP)
    server.add_tool(say, name="say", title=MARKUP, description=MARKUP)
    server.resource("evil://text", name=MARKUP, title=MARKUP, description=MARKUP)(lambda: MARKUP)
    server.resource("evil://{place}/x", name=MARKUP, description=MARKUP)(lambda place: place)
    server.prompt(MARKUP, title=MARKUP, description=MARKUP)(lambda text=MARKUP: text)
    return server


@pytest.fixture
def row(add_mcp_server: Callable[..., ServerConfig], settings: Any) -> ServerConfig:
    """The row of the server, after each kind of use."""
    settings.MCP_CLIENT_AUDIT_PAYLOADS = True
    found = add_mcp_server("evil", evil(), label=MARKUP, description=MARKUP)
    services.call_tool("evil__say", {"text": MARKUP}, agent=MARKUP, correlation_id=MARKUP)
    services.read_resource("evil", "evil://text")
    services.get_prompt("evil", MARKUP)
    return found


def test_the_parser_finds_what_is_planted():
    assert planted_in(f"<p>{MARKUP}</p>")
    assert planted_in(f'<input value="{MARKUP}">')
    assert planted_in(f"<a title='{MARKUP}'>")
    assert not planted_in("<p>&lt;planted&gt;</p>")


def test_no_page_of_the_admin_takes_it_for_its_own(admin_client: Client, row: ServerConfig):
    listing, calls = pages.url("changelist"), "/admin/mcp_client_app/toolcall/"
    addresses = [
        *(pages.url(page, row) for page in ("change", "offers", "history", "delete")),
        *(f"{place}?q={MARKUP}" for place in (listing, calls, pages.url("offers", row))),
        *(f"{calls}{call.pk}/change/" for call in ToolCall.objects.all()),
        listing,
        calls,
        "/admin/",
    ]
    shown = {address: pages.text(admin_client.get(address)) for address in addresses}
    document = {"mcpServers": {MARKUP: {"command": MARKUP, "env": {MARKUP: MARKUP}, MARKUP: 1}, "x": MARKUP}}
    shown["import"] = pages.text(admin_client.post(pages.url("import"), {"text": json.dumps(document)}))
    wrong = {"name": MARKUP, "label": MARKUP * 9, "args": MARKUP, "transport": MARKUP}
    shown["add"] = pages.text(pages.add(admin_client, **wrong))

    assert {address: found for address, page in shown.items() if (found := planted_in(page))} == {}
    silent = [address for address, page in shown.items() if PLANTED not in page]
    # Elsewhere it is not left out: it is shown as text.
    assert silent == [pages.url("history", row), pages.url("delete", row), "/admin/"]


@pytest.fixture
def agent(row: ServerConfig) -> AgentConfig:
    """An agent of the server, with markup wherever something may be written."""
    choice = {
        "server": "evil",
        "allowed_tools": ["*", MARKUP],
        "fixed_arguments": {MARKUP: {MARKUP: MARKUP}, "say": {MARKUP: MARKUP}},
        "result_limits": {MARKUP: 100},
        "tool_approvals": {MARKUP: "deny"},
    }
    settings = {MARKUP: MARKUP}
    texts = dict.fromkeys(("label", "description", "instructions"), MARKUP)
    found = services.add_agent(
        "support", servers=[choice], blocked_tools=[MARKUP], model_settings=settings, **texts
    )
    ServerConfig.objects.create(name="dead", command=MARKUP)
    services.update_agent("support", servers=["evil", "dead"])
    with pytest.raises(ConfigurationError):
        services.connect("dead")
    return found


def test_no_page_of_agents_takes_it_for_its_own(admin_client: Client, agent: AgentConfig, viewer: Client):
    place = "/admin/mcp_client_app/agentconfig/"
    addresses = [place, *(f"{place}{agent.pk}/{page}/" for page in ("change", "tools", "delete"))]
    shown = {address: pages.text(admin_client.get(address)) for address in addresses}
    shown["viewer"] = pages.text(viewer.get(f"{place}{agent.pk}/change/"))
    fixed = {f"agent_servers-0-fixed_arguments-{part}": [MARKUP] for part in ("tool", "name", "value")}
    wrong = {
        **dict.fromkeys(("name", "label", "model", "base_url", "model_settings", "allowed_tools"), MARKUP),
        **dict.fromkeys(("agent_servers-0-result_limits", "agent_servers-0-tool_approvals"), MARKUP),
        **fixed,
        "agent_servers-0-fixed_arguments-action": ["text"],
        "agent_servers-0-fixed_arguments-again": [""],
        "agent_servers-TOTAL_FORMS": "1",
        "agent_servers-INITIAL_FORMS": "0",
    }
    shown["add"] = pages.text(admin_client.post(f"{place}add/", wrong))
    for address in ("agents", "agents/support", f"agents/{MARKUP}"):
        answer = admin_client.get(f"/api/mcp/{address}/", headers={"accept": "text/html"})
        shown[address] = answer.content.decode()

    assert {address: found for address, page in shown.items() if (found := planted_in(page))} == {}
    # Who deletes sees the name; elsewhere it is not left out: it is shown as text.
    assert [address for address, page in shown.items() if PLANTED not in page] == [addresses[-1]]


@pytest.fixture
def viewer() -> Client:
    """Somebody who may look at agents."""
    user = User.objects.create_user("viewer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_agentconfig"))
    client = Client()
    client.force_login(user)
    return client


def test_no_page_of_the_rest_api_takes_it_for_its_own(admin_client: Client, row: ServerConfig):
    api = "/api/mcp/"
    addresses = [
        *(f"{api}{place}/" for place in ("servers", "tools", "resources", "resource-templates", "prompts")),
        *(f"{api}{place}/" for place in ("calls", "export", "servers/evil", "servers/evil/tools")),
        f"{api}tools/?search={MARKUP}",
        f"{api}servers/{MARKUP}/",
    ]
    accept = {"accept": "text/html"}
    shown = {each: admin_client.get(each, headers=accept).content.decode() for each in addresses}
    body = json.dumps({"name": "evil__say", "arguments": {"text": MARKUP}})
    answer = admin_client.post(f"{api}tools/call/", body, content_type="application/json", headers=accept)
    shown["call"] = answer.content.decode()

    assert {address: found for address, page in shown.items() if (found := planted_in(page))} == {}
    assert [address for address, page in shown.items() if PLANTED not in page] == []
