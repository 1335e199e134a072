"""The form of an agent: what it takes, what it shows, and whose changes it refuses to overwrite."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import translation

from mcp_client_app import services
from mcp_client_app.models import AgentConfig, AgentServer, ServerConfig
from tests.admin import agent_pages, pages
from tests.admin.agent_pages import FIRST

pytestmark = pytest.mark.django_db

PLANTED = "planted-5e2c"
EDITOR = ("view_agentconfig", "add_agentconfig", "change_agentconfig", "delete_agentconfig")


@pytest.fixture
def files() -> ServerConfig:
    return ServerConfig.objects.create(name="files", command="x")


@pytest.fixture
def agent(files) -> AgentConfig:
    fixed = {"search": {"token": PLANTED, "limit": 5}}
    return services.add_agent(
        "support",
        model="openai:gpt-5",
        allowed_tools=[],
        model_settings={"temperature": 0, "extra_headers": {"X-Key": f"{PLANTED}-header"}},
        servers=[
            {
                "server": "files",
                "blocked_tools": ["x"],
                "fixed_arguments": fixed,
                "output_filters": {"search": ["drop_binary", {"cut": 500}]},
                "result_limits": {"*": 900},
                "tool_approvals": {"write_*": "always"},
            }
        ],
    )


def fixed() -> dict[str, Any]:
    return dict(AgentServer.objects.get().fixed_arguments)


# Saving


def test_an_agent_is_added_with_a_server(admin_client, files):
    group = Group.objects.create(name="helpers")
    data = agent_pages.with_server(
        agent_pages.form(admin_client),
        files.pk,
        allowed_tools="read_*\nlist",
        tool_approvals='{"read_*": "never", /* the rest */ "*": "always",}',
    )

    response = agent_pages.send(
        admin_client, None, data, name="support", model="openai:gpt-5", groups=[str(group.pk)]
    )

    assert response.status_code == 302, agent_pages.errors(response)
    spec = services.agent_spec("support")
    assert spec.servers[0].filter.allowed == ("read_*", "list")
    assert spec.servers[0].tool_approvals == {"read_*": "never", "*": "always"}
    assert spec.filter.allowed is None
    assert AgentConfig.objects.get().groups.get() == group


def test_saving_an_untouched_form_changes_nothing_that_is_stored(admin_client, agent):
    def stored() -> list[dict[str, Any]]:
        touched = ("revision", "updated_at", "may_reference_environment")
        rows = [*AgentConfig.objects.values(), *AgentServer.objects.values()]
        return [{key: value for key, value in row.items() if key not in touched} for row in rows]

    before = stored()

    assert agent_pages.change(admin_client, agent).status_code == 302

    assert stored() == before


def test_a_server_is_taken_out(admin_client, agent):
    assert agent_pages.change(admin_client, agent, **{f"{FIRST}-DELETE": "on"}).status_code == 302

    assert not AgentServer.objects.exists()
    assert services.get_agent("support").revision > agent.revision


def test_a_server_is_chosen_once(admin_client, agent, files):
    data = agent_pages.with_server(agent_pages.form(admin_client, agent), files.pk)

    page = pages.text(agent_pages.send(admin_client, agent, data))

    assert "Please correct the duplicate" in page
    assert AgentServer.objects.count() == 1


def test_what_is_fixed_for_one_server_cannot_be_sent_to_another(admin_client, agent):
    other = ServerConfig.objects.create(name="other", command="x")

    agent_pages.change(admin_client, agent, **{f"{FIRST}-server": str(other.pk)})

    assert AgentServer.objects.get().server.name == "files"


def test_the_log_names_changed_fields_and_no_value(admin_client, agent):
    data = agent_pages.form(admin_client, agent)
    change = agent_pages.argument(data, "search", "token", action="text", value="other-9f")

    assert agent_pages.send(admin_client, agent, data, **change, label="x").status_code == 302

    message = LogEntry.objects.latest("pk").get_change_message()
    assert "Label" in message
    assert "Fixed arguments" in message
    assert "other-9f" not in str(list(LogEntry.objects.values()))


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("name", "a b", "letter"),
        ("model", "gpt-5", "colon"),
        ("model_settings", "[1]", "no object"),
        ("model_settings", '{"a": 1,\n "b": }', "line 2"),
        ("model_settings", '{"a": 1, "a": 2}', "'a' is given twice"),
        ("model_settings", '{"a":' * 300 + "1" + "}" * 300, "nested too deeply"),
        ("allowed_tools", '["a", 1]', "Item 2"),
        ("max_rounds", "0", "1"),
        ("result_limit", "5", "100"),
    ],
)
def test_what_is_wrong_is_told_beside_its_field(admin_client, field, value, told):
    data = agent_pages.form(admin_client)

    errors = agent_pages.errors(agent_pages.send(admin_client, None, data, **{"name": "new", field: value}))

    assert list(errors) == [field]
    assert told in str(errors[field][0])


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("result_limits", '{"search": 5}', "'search'"),
        ("tool_approvals", '{"write_*": "sometimes"}', "'write_*'"),
        ("output_filters", '{"search": ["nonsense"]}', "search"),
        ("output_filters", '{\n"search": [\n}', "line 3"),
        ("blocked_tools", "[", "line 1"),
    ],
)
def test_what_is_wrong_about_a_server_names_the_tool_or_the_line(admin_client, agent, field, value, told):
    response = agent_pages.change(admin_client, agent, **{f"{FIRST}-{field}": value})

    errors = agent_pages.errors(response)
    assert list(errors) == [f"{FIRST}-{field}"]
    assert told in str(errors[f"{FIRST}-{field}"][0])


# Secrets


@pytest.mark.parametrize("permissions", [EDITOR, ("view_agentconfig",)])
def test_no_page_shows_a_stored_value(staff, agent, permissions):
    client = staff(*permissions)
    for page in ("change", "history", "tools"):
        html = pages.text(client.get(agent_pages.url(page, agent)))
        assert PLANTED not in html
    change = pages.text(client.get(agent_pages.url("change", agent)))
    for shown in ("search", "token", "temperature", "X-Key"):
        assert shown in change


@pytest.mark.parametrize(
    ("action", "value", "expected"),
    [
        ("keep", "", {"search": {"token": PLANTED, "limit": 5}}),
        ("text", "12", {"search": {"token": "12", "limit": 5}}),
        ("text", "", {"search": {"token": "", "limit": 5}}),
        ("json", "12", {"search": {"token": 12, "limit": 5}}),
        ("json", "null", {"search": {"token": None, "limit": 5}}),
        ("json", '{"a": [1,]}', {"search": {"token": {"a": [1]}, "limit": 5}}),
        ("remove", "", {"search": {"limit": 5}}),
        # Typed, and the choice beside it forgotten: without JavaScript nothing moves it.
        ("keep", "typed", {"search": {"token": "typed", "limit": 5}}),
    ],
)
def test_each_fixed_argument_is_kept_replaced_or_removed(admin_client, agent, action, value, expected):
    data = agent_pages.form(admin_client, agent)
    change = agent_pages.argument(data, "search", "token", action=action, value=value)

    response = agent_pages.send(admin_client, agent, data, **change)

    assert response.status_code == 302, agent_pages.errors(response)
    assert fixed() == expected


def test_arguments_of_new_tools_are_added_and_the_last_one_takes_its_tool_along(admin_client, agent):
    data = agent_pages.form(admin_client, agent)
    data |= agent_pages.argument(data, "write", "path", action="text", value="/srv")
    data |= agent_pages.argument(data, "search", "token", action="remove")
    data |= agent_pages.argument(data, "search", "limit", action="remove")

    assert agent_pages.send(admin_client, agent, data).status_code == 302

    assert fixed() == {"write": {"path": "/srv"}}


@pytest.mark.parametrize(
    ("tool", "name", "action", "value", "told"),
    [
        ("search", "", "text", "typed-77", "needs the name"),
        ("", "", "text", "typed-77", "needs the name"),
        ("write", "path", "json", '{"typed-77', "write, path: This is no valid JSON"),
        ("write", "path", "json", "", "write, path: This is no valid JSON"),
        ("write", "path", "keep", "", "nothing is stored"),
        ("write", "path", "json", "[" * 300 + "]" * 300, "nested too deeply"),
    ],
)
def test_arguments_that_cannot_be_are_refused_by_place(admin_client, agent, tool, name, action, value, told):
    data = agent_pages.form(admin_client, agent)
    change = agent_pages.argument(data, tool, name, action=action, value=value)

    response = agent_pages.send(admin_client, agent, data, **change)

    errors = agent_pages.errors(response)
    assert list(errors) == [f"{FIRST}-fixed_arguments"]
    assert told in str(errors[f"{FIRST}-fixed_arguments"][0])
    assert "typed-77" not in pages.text(response)
    assert fixed()["search"]["token"] == PLANTED


def test_an_argument_is_given_once(admin_client, agent):
    data = agent_pages.form(admin_client, agent)
    field = f"{FIRST}-fixed_arguments"
    change = {f"{field}-tool": ["search"] * 2, f"{field}-name": ["token"] * 2}
    change |= {f"{field}-action": ["keep", "text"], f"{field}-value": ["", "x"], f"{field}-again": ["", ""]}

    errors = agent_pages.errors(agent_pages.send(admin_client, agent, data, **change))

    assert "given twice" in str(errors[field])


def test_a_value_typed_into_a_form_that_fails_is_not_sent_back_and_has_to_be_typed_again(admin_client, agent):
    data = agent_pages.form(admin_client, agent)
    new = agent_pages.argument(data, "write", "path", action="text", value="typed-77")
    failed = agent_pages.send(admin_client, agent, data, **new, max_rounds="0")
    page = pages.text(failed)
    assert "typed-77" not in page
    again = {
        name: values
        for name, values in pages.form(page, "agentconfig_form").items()
        if "__prefix__" not in name
    } | {"max_rounds": ["8"]}

    refused = agent_pages.send(admin_client, agent, again)

    assert "write, path: type the value again" in str(agent_pages.errors(refused))
    typed = agent_pages.argument(again, "write", "path", action="text", value="typed-78")
    assert agent_pages.send(admin_client, agent, again, **typed).status_code == 302
    assert fixed()["write"] == {"path": "typed-78"}


def test_masked_settings_are_kept_and_changed(admin_client, agent):
    settings = '{"temperature": 1, "extra_headers": {"X-Key": null, "X-New": "new"}}'

    assert agent_pages.change(admin_client, agent, model_settings=settings).status_code == 302

    assert AgentConfig.objects.get().model_settings == {
        "temperature": 1,
        "extra_headers": {"X-Key": f"{PLANTED}-header", "X-New": "new"},
    }


def test_masked_settings_are_sent_nowhere_else_by_who_does_not_know_them(staff, agent):
    client = staff(*EDITOR)

    refused = agent_pages.change(client, agent, base_url="https://elsewhere.example/v1")

    assert set(agent_pages.errors(refused)) == {"model_settings"}
    assert AgentConfig.objects.get().base_url == ""
    assert agent_pages.change(client, agent, label="other").status_code == 302


# Nobody's change is overwritten unseen


def test_somebody_elses_change_is_told_and_not_overwritten(admin_client, agent):
    data = agent_pages.form(admin_client, agent)
    services.update_agent(
        "support",
        label="theirs",
        model_settings={"seed": "planted-new"},
        servers=[{"server": "files", "approval": "deny"}],
    )

    response = agent_pages.send(admin_client, agent, data, label="mine")

    told = " ".join(agent_pages.errors(response)["__all__"])
    assert "This agent was changed" in told
    assert "Label: now 'theirs'." in told
    assert "Model settings: changed." in told
    assert "MCP servers: changed." in told
    assert "planted-new" not in told
    assert AgentConfig.objects.get().label == "theirs"
    again = {
        name: values
        for name, values in pages.form(pages.text(response), "agentconfig_form").items()
        if "__prefix__" not in name
    }
    assert agent_pages.send(admin_client, agent, again).status_code == 302
    assert AgentConfig.objects.get().label == "mine"


def test_a_change_of_a_server_alone_counts(admin_client, agent):
    data = agent_pages.form(admin_client, agent)
    AgentServer.objects.update(approval="deny")

    told = " ".join(agent_pages.errors(agent_pages.send(admin_client, agent, data))["__all__"])

    assert "MCP servers: changed." in told
    assert AgentServer.objects.get().approval == "deny"


# Who may


def test_viewers_see_all_but_change_nothing(staff, agent):
    client = staff("view_agentconfig")
    AgentConfig.objects.update(base_url="https://llm.example.com/s3cret/v1")
    page = pages.text(client.get(agent_pages.url("change", agent)))

    assert "s3cret" not in page
    assert "https://llm.example.com" in page
    assert "search: token, limit" in page
    assert "<textarea" not in page
    assert agent_pages.send(client, agent, {}, label="x").status_code == 403
    assert client.get(agent_pages.url("add")).status_code == 403


@pytest.mark.parametrize("may_refer", [False, True])
def test_the_variable_of_a_key_needs_a_permission(staff, may_refer):
    client: Client = staff(*EDITOR, *(["reference_environment"] if may_refer else []))
    fields = {"name": "new", "model": "openai:gpt-5", "api_key_variable": "SOME_KEY"}

    response = agent_pages.send(client, None, agent_pages.form(client), **fields)

    if may_refer:
        assert response.status_code == 302
        assert AgentConfig.objects.get().may_reference_environment
    else:
        assert list(agent_pages.errors(response)) == ["api_key_variable"]


def test_who_may_edit_agents_edits_their_servers_without_further_permissions(staff, agent):
    client = staff(*EDITOR)
    data = agent_pages.form(client, agent)

    response = agent_pages.send(client, agent, data, **{f"{FIRST}-approval": "always"})

    assert response.status_code == 302
    assert AgentServer.objects.get().approval == "always"
    client.post(agent_pages.url("delete", agent), {"post": "yes"})
    assert not AgentConfig.objects.exists()


# What to look at


def test_the_form_tells_what_to_look_at(admin_client, files):
    row = AgentConfig.objects.create(name="support", model="nobody:nothing", api_key_variable="UNSET_KEY")
    AgentConfig.objects.update(may_reference_environment=True)

    page = pages.text(admin_client.get(agent_pages.url("change", row)))

    assert "It has no servers" in page
    assert "&#x27;UNSET_KEY&#x27; of the API key is not set" in page
    assert "The provider &#x27;nobody&#x27; is not known; write the model as in" in page


def test_a_provider_that_is_not_known_is_told_in_the_language_of_the_reader(admin_client):
    row = AgentConfig.objects.create(name="support", model="nobody:nothing")

    with translation.override("de"):
        page = pages.text(admin_client.get(agent_pages.url("change", row)))

    assert "Der Anbieter &#x27;nobody&#x27; ist nicht bekannt" in page


def test_models_of_the_project_are_known(admin_client, agent, settings):
    settings.MCP_CLIENT_MODELS = {"nobody:nothing": "some.module.make"}
    AgentConfig.objects.update(model="nobody:nothing", allowed_tools=None)

    assert "Look at this" not in pages.text(admin_client.get(agent_pages.url("change", agent)))
