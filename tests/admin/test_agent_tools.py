"""The page of an agent's tools."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.urls import include, path, reverse

from mcp_client_app import services
from mcp_client_app.admin import register
from mcp_client_app.admin.agents import AgentConfigAdmin
from mcp_client_app.models import AgentConfig, ServerConfig
from mcp_client_app.testing import fake_server
from mcp_client_app.testing.fixtures import add_mcp_server, mcp_manager
from tests.admin import agent_pages, pages

__all__ = ["add_mcp_server", "mcp_manager"]

pytestmark = pytest.mark.django_db(transaction=True)

own_site = admin.AdminSite(name="operations")
register(own_site)
urlpatterns = [path("admin/", admin.site.urls), path("operations/", own_site.urls), path("", include([]))]


def shop() -> Any:
    def search(text: str, tenant: str) -> str:
        """Search the shop."""
        return text

    def order(article: str) -> str:
        return article

    return fake_server("shop", tools=[search, order])


@pytest.fixture
def agent(add_mcp_server) -> AgentConfig:
    add_mcp_server("shop", shop())
    ServerConfig.objects.create(name="broken", command="no-such-program")
    ServerConfig.objects.create(name="off", command="x", enabled=False)
    choice = {
        "server": "shop",
        "fixed_arguments": {"search": {"tenant": "planted-1a", "typo": 1}},
        "tool_approvals": {"order": "always"},
        "result_limits": {"search": 777},
    }
    return services.add_agent("support", servers=[choice, "broken", "off"])


def page_of(client: Any, row: AgentConfig) -> str:
    return pages.text(client.get(agent_pages.url("tools", row)))


def test_looking_connects_nothing(admin_client, agent):
    page = page_of(admin_client, agent)

    assert "A model sees no tools." in page
    assert "The server &#x27;shop&#x27; is not connected." in page
    assert [status.connects for status in services.server_statuses()] == [0, 0, 0]


def test_tools_are_shown_as_a_model_sees_them(admin_client, agent):
    services.connect("shop")

    page = page_of(admin_client, agent)

    assert "<strong>shop__search</strong>" in page
    assert "Search the shop." in page
    assert "777 characters" in page
    arguments = page.partition("<h3>Arguments</h3>")[2].partition("</pre>")[0]
    assert "&quot;text&quot;" in arguments
    assert "tenant" not in arguments
    assert "<dd><code>tenant</code>, <code>typo</code></dd>" in page
    assert "planted-1a" not in page
    order = page.partition("<strong>shop__order</strong>")[2]
    assert "<dd>always</dd>" in order
    assert "has no argument &#x27;typo&#x27;, which is fixed for it" in page


def test_servers_that_are_missing_are_shown_with_the_reason(admin_client, agent):
    page = page_of(admin_client, agent)

    missing = page.partition('id="mcp-unavailable"')[2].partition("</section>")[0]
    assert "The server &#x27;off&#x27; is disabled." in missing
    broken = ServerConfig.objects.get(name="broken")
    assert f'<a href="{pages.url("offers", broken)}">broken</a>' in missing


def test_the_servers_are_asked_at_the_press_of_a_button(admin_client, agent):
    response = admin_client.post(agent_pages.url("tools", agent))

    assert response.url == agent_pages.url("tools", agent)
    page = page_of(admin_client, agent)
    assert "shop__order" in page
    assert "no-such-program" in page


@pytest.mark.parametrize(
    ("model", "named", "unnamed"),
    [
        ("openai:gpt-5", "OpenAI", "Anthropic"),
        ("anthropic:claude", "Anthropic", "OpenAI"),
        ("", "OpenAI", ""),
    ],
)
def test_warnings_are_those_of_the_models_provider(admin_client, add_mcp_server, model, named, unnamed):
    server = fake_server("odd")

    def odd(x: dict[str, Any]) -> str:
        return ""

    server.add_tool(odd, name="odd")
    tool: Any = server._tool_manager.get_tool("odd")
    tool.parameters = {"type": "object", "properties": {"x": {"$ref": "https://elsewhere.example/schema"}}}
    add_mcp_server("odd", server)
    services.connect("odd")
    row = services.add_agent("support", model=model, servers=["odd"])

    page = page_of(admin_client, row)

    assert f"With models of {named}:" in page
    assert f"left out for {named}" in page
    if unnamed:
        assert f"With models of {unnamed}:" not in page


@pytest.mark.parametrize(
    ("codenames", "seen", "asked"),
    [
        ((), 403, 403),
        (("view_agentconfig",), 200, 403),
        (("view_agentconfig", "connect_serverconfig"), 200, 302),
        (("connect_serverconfig",), 403, 403),
    ],
)
def test_permissions_decide_who_looks_and_who_connects(staff, agent, codenames, seen, asked):
    client = staff(*codenames)

    looked = client.get(agent_pages.url("tools", agent))
    assert looked.status_code == seen
    if seen == 200:
        page = looked.content.decode()
        assert ("Ask the servers" in page) is (asked == 302)
        # Who may not see servers gets no links to them.
        assert "/serverconfig/" not in page.partition('id="content-main"')[2]
    assert client.post(agent_pages.url("tools", agent)).status_code == asked


def test_where_no_connections_can_be_had_the_page_says_so(admin_client, settings):
    settings.MCP_CLIENT_MAX_STARTS = "x"
    row = AgentConfig.objects.create(name="support", all_servers=True)

    page = page_of(admin_client, row)

    assert "the connections of this process cannot be asked" in page
    assert '<td class="field-tool_count">-</td>' in pages.text(
        admin_client.get(agent_pages.url("changelist"))
    )


@pytest.mark.urls("tests.admin.test_agent_tools")
def test_pages_of_another_site_lead_to_that_site(admin_client, agent):
    assert isinstance(own_site.get_model_admin(AgentConfig), AgentConfigAdmin)
    base = reverse("operations:mcp_client_app_agentconfig_changelist")

    for address in (base, f"{base}add/", f"{base}{agent.pk}/change/", f"{base}{agent.pk}/tools/"):
        html = pages.text(admin_client.get(address))
        assert 'href="/admin/' not in html, address
    assert admin_client.post(f"{base}{agent.pk}/tools/").url == f"{base}{agent.pk}/tools/"
