"""Agents and what they may use: names, groups, references, revisions, fixtures."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core import serializers
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from mcp_client_app.datatypes import AgentServerSpec, ApprovalPolicy, ToolFilter
from mcp_client_app.models import AgentConfig, AgentServer, ServerConfig

KEY = {"model": "openai:gpt-5", "api_key_variable": "OPENAI_API_KEY"}


def agent(**fields: Any) -> AgentConfig:
    return AgentConfig(**{"name": "support", **fields})


def errors(row: AgentConfig | AgentServer) -> dict[str, list[str]]:
    """Return the codes of what is wrong, by field."""
    with pytest.raises(ValidationError) as caught:
        row.full_clean(exclude=["agent", "server"], validate_unique=False, validate_constraints=False)
    return {name: [str(error.code) for error in found] for name, found in caught.value.error_dict.items()}


def is_sound(row: AgentConfig | AgentServer) -> bool:
    row.full_clean(exclude=["agent", "server"], validate_unique=False, validate_constraints=False)
    return True


@pytest.fixture
def row(db: None) -> AgentConfig:
    return AgentConfig.objects.create(name="support")


@pytest.fixture
def server(db: None) -> ServerConfig:
    return ServerConfig.objects.create(name="files", command="x")


def revision() -> int:
    return AgentConfig.objects.get(name="support").revision


# Names


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["support", "SUPPORT"])
def test_a_name_is_given_once_whatever_its_case(name, row):
    other = agent(name=name)

    with pytest.raises(ValidationError) as caught:
        other.full_clean()
    assert set(caught.value.error_dict) == {"name"}
    with pytest.raises(IntegrityError), transaction.atomic():
        other.save()


@pytest.mark.parametrize("name", ["", "1st", "a b", "a/b", "_a", "ä", "x" * 101])
def test_names_that_no_address_could_hold_are_refused(name):
    assert set(errors(agent(name=name))) == {"name"}


@pytest.mark.django_db
def test_agents_are_found_whatever_the_case(row):
    assert AgentConfig.objects.named("SupPort").get() == row
    assert not AgentConfig.objects.named("suppor").exists()


def test_the_title_is_the_label_or_the_name():
    assert (agent().title, agent(label="Help desk").title) == ("support", "Help desk")


# Soundness


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"allowed_tools": "search"}, {"allowed_tools": ["tool_patterns", "list"]}),
        ({"allowed_tools": {}}, {"allowed_tools": ["list"]}),
        ({"blocked_tools": {}}, {"blocked_tools": ["list"]}),
        ({"blocked_tools": [""]}, {"blocked_tools": ["tool_patterns"]}),
        ({"model_settings": []}, {"model_settings": ["object"]}),
        ({"blocked_tools": ["a\0"]}, {"blocked_tools": ["characters"]}),
        ({"model_settings": {"a": ["\0"]}}, {"model_settings": ["characters"]}),
        ({"model_settings": {"\ud800": 1}}, {"model_settings": ["characters"]}),
        ({"model": "gpt-5"}, {"model": ["model_name"]}),
        ({"approval": "sometimes"}, {"approval": ["invalid_choice"]}),
        ({"validation": "sometimes"}, {"validation": ["invalid_choice"]}),
        ({"result_limit": 99}, {"result_limit": ["min_value"]}),
        ({"max_rounds": 0}, {"max_rounds": ["min_value"]}),
        ({"token_limit": 0}, {"token_limit": ["min_value"]}),
        ({"time_limit": float("nan")}, {"time_limit": ["seconds"]}),
        ({"approval_lifetime": -1}, {"approval_lifetime": ["seconds"]}),
        ({"base_url": "https://x.example/v1"}, {"base_url": ["irrelevant"]}),
        (
            {**KEY, "base_url": "https://x.example/${V}"},
            {"base_url": ["url"], "api_key_variable": ["reference"]},
        ),
        ({**KEY, "api_key_variable": "sk-12345"}, {"api_key_variable": ["variable_name", "reference"]}),
        ({"api_key_variable": "TOKEN"}, {"api_key_variable": ["reference", "irrelevant"]}),
    ],
)
def test_what_cannot_work_is_told_by_field(fields, found):
    assert errors(agent(**fields)) == found


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"allowed_tools": [], "blocked_tools": ["*"]},
        {"model": "openai:gpt-5", "base_url": "http://localhost:11434/v1", "model_settings": {"seed": 1}},
        {"time_limit": 0, "max_parallel_calls": 0},
    ],
)
def test_sound_agents(fields):
    assert is_sound(agent(**fields))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"allowed_tools": "x"}, "allowed_tools"),
        ({"blocked_tools": {}}, "blocked_tools"),
        ({"fixed_arguments": []}, "fixed_arguments"),
        ({"fixed_arguments": {"search": "x"}}, "fixed_arguments"),
        ({"fixed_arguments": {" ": {}}}, "fixed_arguments"),
        ({"output_filters": []}, "output_filters"),
        ({"result_limit": 99}, "result_limit"),
        ({"result_limits": {"search": "100"}}, "result_limits"),
        ({"result_limits": {"search": True}}, "result_limits"),
        ({"result_limits": {"search": 99}}, "result_limits"),
        ({"tool_approvals": {"search": "sometimes"}}, "tool_approvals"),
        ({"tool_approvals": {"search": ["always"]}}, "tool_approvals"),
        ({"approval": "sometimes"}, "approval"),
        ({"allowed_tools": ["\0"]}, "allowed_tools"),
        ({"fixed_arguments": {"search": {"a": {"b": "\0"}}}}, "fixed_arguments"),
        ({"result_limits": {"\0": 100}}, "result_limits"),
    ],
)
def test_what_is_said_of_a_server_is_judged_by_field(fields, field):
    assert set(errors(AgentServer(**fields))) == {field}


def test_an_error_in_a_map_names_the_tool_and_no_value():
    with pytest.raises(ValidationError) as caught:
        AgentServer(fixed_arguments={"search": "geheim", "write": {"path": "/srv"}}).clean()

    assert "'search'" in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_fixed_arguments_are_not_shown_by_accident():
    row = AgentServer(fixed_arguments={"search": {"token": "geheim"}})

    assert "geheim" not in f"{row.fixed_arguments} {row.fixed_arguments!r} {vars(row)}"


# The variable of the key


def test_a_variable_needs_a_permission_or_the_setting(settings):
    assert errors(agent(**KEY)) == {"api_key_variable": ["reference"]}

    settings.MCP_CLIENT_ENV_ALLOW = ["OPENAI_*"]
    assert is_sound(agent(**KEY))

    settings.MCP_CLIENT_ENV_DENY = ["*_KEY"]
    row = agent(**KEY)
    row.judge_references(saver_may=True)
    assert errors(row) == {"api_key_variable": ["reference"]}


@pytest.mark.django_db
def test_a_grant_lasts_until_somebody_without_it_changes_where_the_key_goes():
    row = agent(**KEY)
    row.judge_references(saver_may=True)
    row.save()

    row.label = "other"
    row.judge_references(saver_may=False)
    assert row.may_reference_environment

    for field, value in (
        ("base_url", "https://elsewhere.example"),
        ("model", "anthropic:claude-sonnet-5-5"),
        ("api_key_variable", "OTHER_KEY"),
    ):
        changed = AgentConfig.objects.get()
        setattr(changed, field, value)
        changed.judge_references(saver_may=False)
        assert not changed.may_reference_environment, field


@pytest.mark.django_db
def test_a_new_agent_has_no_grant_that_nobody_gave():
    row = agent(**KEY, may_reference_environment=True)

    row.judge_references(saver_may=False)

    assert not row.may_reference_environment


@pytest.mark.django_db
def test_without_a_variable_nothing_is_granted():
    row = agent()

    row.judge_references(saver_may=True)

    assert not row.may_reference_environment


# Groups


@pytest.mark.django_db
def test_agents_without_groups_are_for_everybody_and_others_for_their_members(row):
    members, others = Group.objects.create(name="members"), Group.objects.create(name="others")
    closed = AgentConfig.objects.create(name="closed")
    closed.groups.set([members, others])
    inside, outside = User.objects.create_user("in"), User.objects.create_user("out")
    inside.groups.set([members, others])

    def seen(user: Any) -> list[str]:
        return [each.name for each in AgentConfig.objects.for_user(user)]

    assert seen(inside) == ["closed", "support"]
    assert seen(outside) == seen(AnonymousUser()) == seen(object()) == ["support"]
    assert seen(None) == seen(User.objects.create_superuser("root")) == ["closed", "support"]


# Revisions


def change_one() -> None:
    row = AgentServer.objects.get()
    row.blocked_tools = ["x"]
    row.save()


def change_one_column() -> None:
    AgentServer.objects.get().save(update_fields=["blocked_tools"])


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        change_one,
        change_one_column,
        lambda: AgentServer.objects.get().delete(),
        lambda: AgentServer.objects.all().delete(),
        lambda: AgentServer.objects.update(blocked_tools=["x"]),
        lambda: AgentServer.objects.bulk_update(AgentServer.objects.all(), ["approval"]),
        lambda: ServerConfig.objects.get(name="files").delete(),
        lambda: ServerConfig.objects.filter(name="files").delete(),
        lambda: AgentConfig.objects.get(name="support").servers.clear(),
        lambda: AgentConfig.objects.get(name="support").servers.add(
            ServerConfig.objects.create(name="more", command="x")
        ),
        lambda: AgentServer.objects.bulk_create(
            [
                AgentServer(
                    agent=AgentConfig.objects.get(name="support"),
                    server=ServerConfig.objects.create(name="more", command="x"),
                )
            ]
        ),
    ],
)
def test_whatever_changes_the_use_of_a_server_raises_the_agents_revision(change, row, server):
    other = AgentConfig.objects.create(name="other")
    AgentServer.objects.create(agent=row, server=server)
    before = revision()

    change()

    assert revision() > before
    assert AgentConfig.objects.get(name="other").revision == other.revision


@pytest.mark.django_db
def test_a_new_server_raises_the_revision(row, server):
    before = revision()

    AgentServer.objects.create(agent=row, server=server)

    assert revision() > before


@pytest.mark.django_db
def test_a_server_that_is_handed_over_changes_both_agents(row, server):
    other = AgentConfig.objects.create(name="other")
    AgentServer.objects.create(agent=row, server=server)
    before = revision()

    AgentServer.objects.filter(agent=row).update(agent=other)

    assert revision() > before
    assert AgentConfig.objects.get(name="other").revision > other.revision


@pytest.mark.django_db
def test_an_agent_is_deleted_with_what_it_may_use(row, server):
    AgentServer.objects.create(agent=row, server=server)

    row.delete()

    assert not AgentServer.objects.exists()
    assert ServerConfig.objects.exists()


# Ways in and out


@pytest.mark.django_db
def test_fixtures_refer_by_name_and_keep_the_revision(row, server):
    AgentServer.objects.create(agent=row, server=server, fixed_arguments={"search": {"tenant": "acme"}})
    saved = revision()
    text = serializers.serialize(
        "json",
        [*AgentConfig.objects.all(), *ServerConfig.objects.all(), *AgentServer.objects.all()],
        use_natural_foreign_keys=True,
        use_natural_primary_keys=True,
    )
    assert '"agent": ["support"]' in text
    AgentConfig.objects.all().delete()
    ServerConfig.objects.all().delete()

    for each in serializers.deserialize("json", text):
        each.save()
    for each in serializers.deserialize("json", text):
        each.save()

    loaded = AgentServer.objects.get()
    assert (loaded.agent.name, loaded.server.name) == ("support", "files")
    assert loaded.fixed_arguments == {"search": {"tenant": "acme"}}
    assert revision() == saved


@pytest.mark.django_db
def test_a_spec_tells_all_that_is_stored(server, django_assert_num_queries):
    row = AgentConfig.objects.create(
        name="support", allowed_tools=["a"], approval="writes", model="openai:gpt-5", token_limit=9
    )
    AgentServer.objects.create(
        agent=row,
        server=server,
        blocked_tools=["b"],
        fixed_arguments={"search": {"tenant": "acme"}},
        result_limits={"*": 500},
        tool_approvals={"write_*": "deny"},
    )

    with django_assert_num_queries(1):
        spec = row.to_spec()

    assert spec.filter == ToolFilter(("a",), ())
    assert (spec.approval, spec.model, spec.token_limit) == (ApprovalPolicy.WRITES, "openai:gpt-5", 9)
    assert spec.servers == (
        AgentServerSpec(
            name="files",
            filter=ToolFilter(None, ("b",)),
            fixed_arguments={"search": {"tenant": "acme"}},
            result_limits={"*": 500},
            tool_approvals={"write_*": ApprovalPolicy.DENY},
        ),
    )
    assert spec.server("FILES") is spec.servers[0]
    assert "acme" not in repr(spec)
