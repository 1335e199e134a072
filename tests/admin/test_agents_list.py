"""The list of agents: how they stand, what can be done to several, and what nobody may search by."""

from __future__ import annotations

import pytest

from mcp_client_app import services
from mcp_client_app.models import AgentConfig, ServerConfig
from mcp_client_app.testing import fake_server
from mcp_client_app.testing.fixtures import add_mcp_server, mcp_manager
from tests.admin import agent_pages, pages

__all__ = ["add_mcp_server", "mcp_manager"]

LIST = agent_pages.url


@pytest.mark.django_db
def test_the_list_tells_how_agents_stand(admin_client):
    ServerConfig.objects.create(name="files", command="x")
    ServerConfig.objects.create(name="gone", command="x", enabled=False)
    ServerConfig.objects.create(name="halted", command="x", stopped=True)
    services.add_agent("good", label="Good one", model="openai:gpt-5", servers=["files"])
    services.add_agent("empty")
    services.add_agent("everything", all_servers=True)
    services.add_agent("lame", servers=["gone", "halted"])
    services.add_agent("mute", servers=[{"server": "files", "blocked_tools": ["*"]}], allowed_tools=[])
    services.add_agent("off", enabled=False)

    page = pages.text(admin_client.get(LIST("changelist")))

    rows = {part.split("<", 1)[0]: part for part in page.split('/change/">')[1:]}
    assert "mcp-good" in rows["good (Good one)"]
    assert "openai:gpt-5" in rows["good (Good one)"]
    assert "It has no servers" in rows["empty"]
    assert "all servers" in rows["everything"]
    assert "in order" in rows["everything"]
    assert "The server &#x27;gone&#x27; is disabled." in rows["lame"]
    assert "The server &#x27;halted&#x27; was disconnected by hand." in rows["lame"]
    assert "No tool is allowed." in rows["mute"]
    assert "No tool of &#x27;files&#x27; is allowed." in rows["mute"]
    assert "mcp-off" in rows["off"]
    assert "It has no servers" not in rows["off"]


@pytest.mark.django_db(transaction=True)
def test_the_list_counts_the_tools_that_a_model_sees(admin_client, add_mcp_server):
    add_mcp_server("shop", fake_server("shop", tools={"price": lambda: 1, "order": lambda: 2}))
    row = services.add_agent("support", servers=["shop"], blocked_tools=["order"])
    services.connect("shop")

    page = pages.text(admin_client.get(LIST("changelist")))

    assert '<td class="field-tool_count">1</td>' in page
    assert f"/{row.pk}/change/" in page


@pytest.mark.django_db
def test_a_list_of_agents_costs_the_same_however_many_there_are(admin_client, django_assert_max_num_queries):
    def ask() -> int:
        with django_assert_max_num_queries(60) as queries:
            admin_client.get(LIST("changelist"))
        return len(queries)

    ServerConfig.objects.create(name="files", command="x")
    for number in range(2):
        services.add_agent(f"a{number}", servers=["files"])
    ask()
    two = ask()
    for number in range(2, 9):
        services.add_agent(f"a{number}", servers=["files"])

    assert ask() == two


@pytest.mark.django_db
def test_agents_are_searched_and_filtered_but_not_by_what_is_secret(admin_client):
    server = ServerConfig.objects.create(name="files", command="x", env={"KEY": "geheim"})
    services.add_agent("alpha", servers=["files"], model_settings={"extra_headers": {"X": "geheim"}})
    services.add_agent("beta", description="words")

    assert "alpha" not in pages.text(admin_client.get(LIST("changelist"), {"q": "WORD"}))
    assert "beta" not in pages.text(admin_client.get(LIST("changelist"), {"servers__id__exact": server.pk}))
    for lookup in (
        "model_settings__extra_headers__X__startswith",
        "base_url__icontains",
        "agent_servers__fixed_arguments__icontains",
        "servers__env__icontains",
    ):
        assert admin_client.get(LIST("changelist"), {lookup: "g"}).status_code == 400, lookup


@pytest.mark.django_db
def test_several_are_switched_at_once(admin_client):
    rows = [services.add_agent(name) for name in ("one", "two")]
    chosen = {"_selected_action": [str(row.pk) for row in rows]}

    off = admin_client.post(LIST("changelist"), {"action": "disable_agents", **chosen})
    assert pages.messages(off) == ["one: Disabled.", "two: Disabled."]
    assert not AgentConfig.objects.enabled().exists()

    on = admin_client.post(LIST("changelist"), {"action": "enable_agents", **chosen})
    assert pages.messages(on)[-2:] == ["one: Enabled.", "two: Enabled."]
    assert AgentConfig.objects.enabled().count() == 2


@pytest.mark.django_db
def test_an_action_that_cannot_be_done_says_why(staff):
    client = staff("view_agentconfig", "change_agentconfig")
    row = services.add_agent("one")
    AgentConfig.objects.update(model="a:b", api_key_variable="OTHERS")

    response = client.post(
        LIST("changelist"), {"action": "disable_agents", "_selected_action": [str(row.pk)]}
    )

    [told] = pages.messages(response)
    assert told.startswith("one: api_key_variable: Reading this variable needs the permission")
    assert AgentConfig.objects.get().enabled


@pytest.mark.django_db
def test_several_are_deleted_and_their_servers_stay(admin_client):
    ServerConfig.objects.create(name="files", command="x")
    rows = [services.add_agent(name, servers=["files"]) for name in ("one", "two")]

    admin_client.post(
        LIST("changelist"),
        {
            "action": "delete_selected",
            "post": "yes",
            "_selected_action": [str(row.pk) for row in rows],
        },
    )

    assert not AgentConfig.objects.exists()
    assert ServerConfig.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("codenames", "sees", "edits"),
    [((), False, False), (("view_agentconfig",), True, False), (("change_agentconfig",), True, True)],
)
def test_permissions_decide_who_sees_the_list_and_its_actions(staff, codenames, sees, edits):
    services.add_agent("one")

    response = staff(*codenames).get(LIST("changelist"))

    assert response.status_code == (200 if sees else 403)
    if sees:
        assert ("disable_agents" in response.content.decode()) is edits
