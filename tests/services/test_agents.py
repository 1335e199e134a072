"""Stored agents: adding, changing, removing, and who may use them."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.exceptions import ValidationError

from mcp_client_app import services
from mcp_client_app.configuration.argument_changes import ArgumentChanges, Change
from mcp_client_app.datatypes import ApprovalPolicy, ToolFilter
from mcp_client_app.exceptions import (
    ConfigurationError,
    DuplicateAgentError,
    PermissionDeniedError,
    StaleRevisionError,
    UnknownAgentError,
)
from mcp_client_app.models import AgentConfig, AgentServer, ServerConfig
from mcp_client_app.runtime import row_source
from mcp_client_app.services import agents
from tests.stored import close_connections, peer_entry, stored

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def servers(db) -> Any:
    row_source.forget()
    yield stored("files"), stored("tracker")
    row_source.forget()


def add(name: str = "support", **fields: Any) -> AgentConfig:
    return services.add_agent(name, **fields)


def fixed(server: str = "files") -> dict[str, Any]:
    return dict(AgentServer.objects.get(server__name=server).fixed_arguments)


# Adding and changing ---------------------------------------------------------------------


def test_an_agent_is_stored_with_its_servers_and_groups():
    Group.objects.create(name="helpers")

    row = add(
        model="openai:gpt-5",
        blocked_tools=["*__delete*"],
        servers=["FILES", {"server": "tracker", "allowed_tools": ["read_*"], "approval": "writes"}],
        groups=["helpers"],
    )

    spec = services.agent_spec("Support")
    assert [server.name for server in spec.servers] == ["files", "tracker"]
    assert spec.filter == ToolFilter(None, ("*__delete*",))
    assert spec.servers[1].filter == ToolFilter(("read_*",), ())
    assert spec.servers[1].approval is ApprovalPolicy.WRITES
    assert spec.revision == row.revision == AgentConfig.objects.get().revision
    assert [group.name for group in row.groups.all()] == ["helpers"]


@pytest.mark.parametrize("name", ["support", "SUPPORT"])
def test_a_name_is_given_once(name):
    add()

    with pytest.raises(DuplicateAgentError) as caught:
        add(name)

    assert caught.value.field == "name"
    assert AgentConfig.objects.count() == 1


def test_of_two_who_add_the_same_agent_at_once_the_second_is_told_so(monkeypatch):
    """Both have looked before either has saved."""
    looks: list[str] = []
    look = agents._require_free
    monkeypatch.setattr(agents, "_require_free", lambda name: look(name) if looks else looks.append(name))
    monkeypatch.setattr(AgentConfig, "full_clean", lambda self: None)
    AgentConfig.objects.create(name="support")

    with pytest.raises(DuplicateAgentError):
        add("Support", servers=["files"])

    assert AgentConfig.objects.get().name == "support"
    assert not AgentServer.objects.exists()


def test_everything_that_is_wrong_is_told_at_once_and_by_place():
    with pytest.raises(ValidationError) as caught:
        add(
            "a b",
            servers=[
                {"server": "files", "approval": "sometimes", "nonsense": 1},
                "nowhere",
                "FILES",
                {"server": "tracker", "result_limits": {"search": 5}},
            ],
            groups=["strangers"],
        )

    assert set(caught.value.message_dict) == {
        "name",
        "servers.0.approval",
        "servers.0.nonsense",
        "servers.1.server",
        "servers.2.server",
        "servers.3.result_limits",
        "groups",
    }
    assert not AgentConfig.objects.exists()
    assert not AgentServer.objects.exists()


@pytest.mark.parametrize(
    "field", ["id", "revision", "may_reference_environment", "runs", "agent_servers", "nonsense"]
)
def test_what_is_no_field_to_set_is_refused(field):
    with pytest.raises(ConfigurationError, match=field):
        add(**{field: 1})  # type: ignore[arg-type]  # what is wrong is the point
    add()
    with pytest.raises(ConfigurationError, match=field):
        services.update_agent("support", **{field: 1})  # type: ignore[arg-type]  # as above


def test_only_what_is_given_changes():
    add(label="Help", max_rounds=3, servers=[{"server": "files", "blocked_tools": ["x"]}, "tracker"])

    row = services.update_agent("SUPPORT", label="Hilfe")

    assert (row.label, row.max_rounds) == ("Hilfe", 3)
    assert AgentServer.objects.count() == 2

    services.update_agent("support", servers=[{"server": "files", "result_limit": 500}])

    only = AgentServer.objects.get()
    assert (only.server.name, only.blocked_tools, only.result_limit) == ("files", ["x"], 500)


def test_nothing_is_saved_if_anything_is_wrong():
    add(label="Help", servers=["files"])

    with pytest.raises(ValidationError):
        services.update_agent("support", label="Hilfe", servers=["tracker", "nowhere"])

    assert AgentConfig.objects.get().label == "Help"
    assert [row.server.name for row in AgentServer.objects.all()] == ["files"]


def test_the_revision_that_is_returned_is_the_stored_one():
    row = add(servers=["files"])
    for servers in (["files", "tracker"], ["tracker"], []):
        before = row.revision
        row = services.update_agent("support", expected_revision=row.revision, servers=servers)
        assert row.revision == AgentConfig.objects.get().revision > before


def test_an_unseen_change_is_not_overwritten():
    seen = add().revision
    services.update_agent("support", servers=["files"])

    with pytest.raises(StaleRevisionError) as caught:
        services.update_agent("support", expected_revision=seen, servers=[])
    with pytest.raises(StaleRevisionError):
        services.remove_agent("support", expected_revision=seen)

    assert caught.value.revision == AgentConfig.objects.get().revision
    assert AgentServer.objects.exists()


def test_servers_of_the_settings_can_be_chosen_before_anybody_has_used_them(settings):
    settings.MCP_CLIENT_SERVERS = {"theirs": peer_entry()}
    row_source.invalidate()

    add(servers=["theirs"])

    assert services.agent_spec("support").servers[0].name == "theirs"


def test_what_is_not_there_is_told():
    for verb in (services.get_agent, services.update_agent, services.remove_agent, services.agent_spec):
        with pytest.raises(UnknownAgentError) as caught:
            verb("nobody")
        assert caught.value.agent == "nobody"


def test_removing_takes_what_was_said_of_servers_and_leaves_these():
    add(servers=["files"])

    services.remove_agent("SUPPORT")

    assert services.list_agents() == []
    assert not AgentServer.objects.exists()
    assert ServerConfig.objects.count() == 2


# Fixed arguments, masked settings --------------------------------------------------------


def test_fixed_arguments_are_given_whole_or_as_changes():
    add(servers=[{"server": "files", "fixed_arguments": {"search": {"tenant": "acme", "limit": 5}}}])
    changes = ArgumentChanges(
        {"SEARCH": {"limit": Change.REMOVE, "null": None}, "write": {"path": "/srv"}}, frozenset({"gone"})
    )

    services.update_agent("support", servers=[{"server": "files", "fixed_arguments": changes}])
    assert fixed() == {"search": {"tenant": "acme", "null": None}, "write": {"path": "/srv"}}

    changes = ArgumentChanges({"search": {"tenant": Change.KEEP}}, replace=True)
    services.update_agent("support", servers=[{"server": "files", "fixed_arguments": changes}])
    assert fixed() == {"search": {"tenant": "acme"}}

    changes = ArgumentChanges(removed=frozenset({"Search"}))
    services.update_agent("support", servers=[{"server": "files", "fixed_arguments": changes}])
    assert fixed() == {}


def test_a_value_that_is_not_there_cannot_be_kept():
    add(servers=["files"])
    changes = ArgumentChanges({"search": {"tenant": Change.KEEP}})

    with pytest.raises(ValidationError) as caught:
        services.update_agent("support", servers=[{"server": "files", "fixed_arguments": changes}])

    assert set(caught.value.message_dict) == {"servers.0.fixed_arguments"}


def test_what_was_masked_in_model_settings_is_kept_when_it_comes_back_as_null():
    add(model_settings={"extra_headers": {"X-Team": "geheim"}, "temperature": 0, "stop": "a"})

    services.update_agent(
        "support", model_settings={"extra_headers": {"X-Team": None, "X-New": None}, "stop": None}
    )

    assert AgentConfig.objects.get().model_settings == {
        "extra_headers": {"X-Team": "geheim", "X-New": None},
        "stop": None,
    }


# Who may -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("permission", "verb"),
    [
        ("view_agentconfig", lambda user: services.list_agents(user=user)),
        ("view_agentconfig", lambda user: services.get_agent("support", user=user)),
        ("add_agentconfig", lambda user: services.add_agent("other", user=user)),
        ("add_agentconfig", lambda user: services.save_agent(AgentConfig(name="other"), user=user)),
        ("change_agentconfig", lambda user: services.update_agent("support", user=user, label="x")),
        ("change_agentconfig", lambda user: services.save_agent(AgentConfig.objects.get(), user=user)),
        ("delete_agentconfig", lambda user: services.remove_agent("support", user=user)),
        ("run_agentconfig", lambda user: services.agent_spec("support", user=user)),
        ("run_agentconfig", lambda user: services.usable_agents(user=user)),
    ],
)
def test_each_verb_needs_its_permission_and_no_other(permission, verb, make_user):
    add()
    every = {f"{each}_agentconfig" for each in ("view", "add", "change", "delete", "run")}

    with pytest.raises(PermissionDeniedError) as caught:
        verb(make_user(*every - {permission}))
    assert caught.value.permission == f"mcp_client_app.{permission}"
    verb(make_user(permission))


def test_nobody_without_an_account_uses_an_agent():
    add()

    with pytest.raises(PermissionDeniedError):
        services.agent_spec("support", user=AnonymousUser())


def test_an_agent_with_groups_is_for_their_members_alone(make_user):
    members, others = Group.objects.create(name="members"), Group.objects.create(name="others")
    add(groups=[members, "others"])
    inside, outside = make_user("run_agentconfig"), make_user("run_agentconfig")
    inside.groups.add(others)
    outside.groups.add(Group.objects.create(name="strangers"))

    assert services.agent_spec("support", user=inside).name == "support"
    assert services.agent_spec("support", user=User.objects.create_superuser("root")).name == "support"
    assert services.agent_spec("support").name == "support"
    with pytest.raises(UnknownAgentError):
        services.agent_spec("support", user=outside)
    add("open")
    add("off", enabled=False)
    assert [row.name for row in services.usable_agents(user=inside)] == ["open", "support"]
    assert [row.name for row in services.usable_agents(user=outside)] == ["open"]


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_disabled_agent_is_as_good_as_none(is_trusted, make_user):
    add(enabled=False)

    with pytest.raises(UnknownAgentError, match="disabled"):
        services.agent_spec("support", user=None if is_trusted else make_user("run_agentconfig"))
    assert not services.get_agent("support").enabled


def test_naming_the_variable_of_a_key_needs_a_permission(make_user, settings):
    editor = make_user("add_agentconfig", "change_agentconfig")
    fields = {"model": "openai:gpt-5", "api_key_variable": "OTHERS_KEY"}

    with pytest.raises(ValidationError) as caught:
        add(user=editor, **fields)
    assert set(caught.value.message_dict) == {"api_key_variable"}

    add(user=make_user("add_agentconfig", "reference_environment"), **fields)
    services.update_agent("support", user=editor, label="may be changed")
    with pytest.raises(ValidationError):
        services.update_agent("support", user=editor, base_url="https://elsewhere.example/v1")
    settings.MCP_CLIENT_ENV_ALLOW = ["OTHERS_*"]
    services.update_agent("support", user=editor, base_url="https://elsewhere.example/v1")


@pytest.mark.parametrize("change", [{"model": "groq:x"}, {"base_url": "https://elsewhere.example/v1"}])
@pytest.mark.parametrize("place", [{"extra_headers": {"X-Team": "geheim"}}, {"more": [{"token": "geheim"}]}])
def test_secrets_in_model_settings_go_nowhere_else_without_a_permission(change, place, make_user):
    add(model="openai:gpt-5", model_settings={**place, "temperature": 0})
    editor = make_user("change_agentconfig")
    back = {"extra_headers": {"X-Team": None}} if "extra_headers" in place else {"more": [{"token": None}]}

    for settings in ({}, {"model_settings": back}, {"model_settings": place}):
        with pytest.raises(ValidationError) as caught:
            services.update_agent("support", user=editor, **change, **settings)
        assert set(caught.value.message_dict) == {"model_settings"}
        assert "geheim" not in str(caught.value)

    services.update_agent("support", user=editor, label="other", model_settings={**back, "temperature": 1})
    assert AgentConfig.objects.get().model_settings == {**place, "temperature": 1}
    services.update_agent("support", user=make_user("change_agentconfig", "reference_environment"), **change)
    other: dict[str, Any] = {"model": "openai:gpt-5", "base_url": ""}
    services.update_agent(
        "support", user=editor, **other, model_settings={"extra_headers": {"X-Team": "new"}}
    )
    assert AgentConfig.objects.get().model_settings == {"extra_headers": {"X-Team": "new"}}


# Async -------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.django_db(transaction=True)
async def test_each_verb_has_an_async_twin():
    row = await services.aadd_agent("helper", servers=["files"])
    row.label = "Help"
    await services.asave_agent(row)
    assert (await services.aget_agent("helper")).label == "Help"
    await services.aupdate_agent("helper", label="Hilfe")
    assert [each.label for each in await services.alist_agents()] == ["Hilfe"]
    assert [each.name for each in await services.ausable_agents()] == ["helper"]
    assert (await services.aagent_spec("helper")).servers[0].name == "files"
    await services.aremove_agent("helper")
    assert await services.alist_agents() == []
    await close_connections()
