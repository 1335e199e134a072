"""Who may use which service."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError

from mcp_client_app import services
from mcp_client_app.exceptions import MCPClientError, PermissionDeniedError
from mcp_client_app.models import ServerConfig
from tests.stored import peer_fields

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]

PERMISSIONS = (
    "view_serverconfig",
    "add_serverconfig",
    "change_serverconfig",
    "delete_serverconfig",
    "connect_serverconfig",
    "run_code_serverconfig",
    "reference_environment",
    "call_tool",
    "view_agentconfig",
    "add_agentconfig",
    "change_agentconfig",
    "delete_agentconfig",
    "run_agentconfig",
    "view_agentrun",
    "change_agentrun",
    "decide_approval",
)
URL = "http://127.0.0.1:1/mcp"


def http(**fields: Any) -> dict[str, Any]:
    return {"transport": "streamable_http", "url": URL, **fields}


VERBS: dict[str, tuple[Any, set[str]]] = {
    "call_tool": (lambda user: services.call_tool("nothing", user=user), {"call_tool"}),
    "read_resource": (lambda user: services.read_resource("nobody", "x://y", user=user), {"call_tool"}),
    "get_prompt": (lambda user: services.get_prompt("nobody", "x", user=user), {"call_tool"}),
    "complete": (
        lambda user: services.complete("nobody", {"type": "ref/prompt", "name": "x"}, "a", user=user),
        {"call_tool"},
    ),
    "last_known": (
        lambda user: services.last_known("tools", "x", user=user),
        {"view_serverconfig", "call_tool"},
    ),
    "find_tool": (lambda user: services.find_tool("x", user=user), {"view_serverconfig", "call_tool"}),
    "list_tools": (lambda user: services.list_tools(wait=0, user=user), {"view_serverconfig", "call_tool"}),
    "list_resources": (
        lambda user: services.list_resources(wait=0, user=user),
        {"view_serverconfig", "call_tool"},
    ),
    "list_resource_templates": (
        lambda user: services.list_resource_templates(wait=0, user=user),
        {"view_serverconfig", "call_tool"},
    ),
    "list_prompts": (
        lambda user: services.list_prompts(wait=0, user=user),
        {"view_serverconfig", "call_tool"},
    ),
    "list_servers": (lambda user: services.list_servers(user=user), {"view_serverconfig"}),
    "get_server": (lambda user: services.get_server("web", user=user), {"view_serverconfig"}),
    "server_status": (lambda user: services.server_status("web", user=user), {"view_serverconfig"}),
    "server_statuses": (lambda user: services.server_statuses(user=user), {"view_serverconfig"}),
    "server_logs": (lambda user: services.server_logs("web", user=user), {"view_serverconfig"}),
    "server_stderr": (lambda user: services.server_stderr("web", user=user), {"view_serverconfig"}),
    "worker_states": (lambda user: services.worker_states(user=user), {"view_serverconfig"}),
    "export_servers": (lambda user: services.export_servers(user=user), {"view_serverconfig"}),
    "add_server": (lambda user: services.add_server("new", user=user, **http()), {"add_serverconfig"}),
    "update_server": (
        lambda user: services.update_server("web", user=user, label="changed"),
        {"change_serverconfig"},
    ),
    "enable_server": (lambda user: services.enable_server("web", user=user), {"change_serverconfig"}),
    "disable_server": (lambda user: services.disable_server("web", user=user), {"change_serverconfig"}),
    "remove_server": (lambda user: services.remove_server("web", user=user), {"delete_serverconfig"}),
    "connect": (lambda user: services.connect("nobody", user=user), {"connect_serverconfig"}),
    "connect_all": (lambda user: services.connect_all([], user=user), {"connect_serverconfig"}),
    "disconnect": (lambda user: services.disconnect("nobody", user=user), {"connect_serverconfig"}),
    "refresh": (lambda user: services.refresh("nobody", user=user), {"connect_serverconfig"}),
    "test_server": (lambda user: services.test_server("nobody", user=user), {"connect_serverconfig"}),
    "list_agents": (lambda user: services.list_agents(user=user), {"view_agentconfig"}),
    "get_agent": (lambda user: services.get_agent("nobody", user=user), {"view_agentconfig"}),
    "add_agent": (lambda user: services.add_agent("new", user=user), {"add_agentconfig"}),
    "update_agent": (lambda user: services.update_agent("nobody", user=user), {"change_agentconfig"}),
    "remove_agent": (lambda user: services.remove_agent("nobody", user=user), {"delete_agentconfig"}),
    "agent_spec": (lambda user: services.agent_spec("nobody", user=user), {"run_agentconfig"}),
    "usable_agents": (lambda user: services.usable_agents(user=user), {"run_agentconfig"}),
    "get_toolset": (lambda user: services.get_toolset("nobody", user), {"run_agentconfig"}),
    "create_run": (lambda user: services.create_run("nobody", "x", user=user), {"run_agentconfig"}),
}
OWN_ROWS = {
    "answer_input",
    "approve",
    "cancel_run",
    "deny",
    "get_approval",
    "get_run",
    "list_approvals",
    "list_runs",
}
"""What users do with what is theirs; who may do it with others' is told by the tests of these services."""


def is_allowed(verb: Any, user: Any) -> bool:
    """Say whether the user gets beyond the permission; that nothing is there is another matter."""
    try:
        verb(user)
    except PermissionDeniedError:
        return False
    except MCPClientError:
        return True
    return True


@pytest.fixture(autouse=True)
def _web():
    ServerConfig.objects.create(name="web", **http())


@pytest.mark.parametrize("name", VERBS)
def test_each_service_asks_for_its_permission_and_no_other(name, make_user):
    verb, enough = VERBS[name]

    allowed = {permission for permission in PERMISSIONS if is_allowed(verb, make_user(permission))}

    assert allowed == enough


def test_every_service_is_in_the_table():
    not_for_users = {
        "append_events",
        "approval_state",
        "checkpoint",
        "claim",
        "events_after",
        "expire_approvals",
        "finish",
        "pause",
        "reap",
        "recorded_call",
        "renew",
        "request_approval",
        "request_input",
        "requeue",
        "save_agent",
        "submit",
        "use_approval",
        "save_server",
        "sync_servers",
        "import_servers",
        "call_limit",
        "claim_key",
        "flush_audit",
    }
    sync = {
        name
        for name in services.__all__
        if name[0].islower() and f"a{name}" in services.__all__ and callable(getattr(services, name))
    }

    assert sync - not_for_users - OWN_ROWS - set(VERBS) == set()


@pytest.mark.parametrize("name", VERBS)
def test_nobody_and_former_users_may_do_nothing(name, make_user):
    verb, _ = VERBS[name]

    assert not is_allowed(verb, AnonymousUser())
    assert not is_allowed(verb, make_user())
    assert not is_allowed(verb, make_user(*PERMISSIONS, is_active=False))
    assert not is_allowed(verb, make_user(is_superuser=True, is_active=False))


@pytest.mark.parametrize("name", VERBS)
def test_superusers_and_trusted_code_may_do_everything(name, make_user):
    verb, _ = VERBS[name]

    assert is_allowed(verb, make_user(is_superuser=True))
    ServerConfig.objects.all().delete()
    ServerConfig.objects.create(name="web", **http())
    assert is_allowed(verb, None)


def test_the_missing_permission_is_named(make_user):
    with pytest.raises(PermissionDeniedError) as caught:
        services.get_server("web", user=make_user())

    assert caught.value.permission == "mcp_client_app.view_serverconfig"
    assert caught.value.server == "web"


# Code on this machine -----------------------------------------------------------------------


@pytest.fixture
def editor(make_user):
    """May do everything but have code run and refer to any variable."""
    return make_user(*set(PERMISSIONS) - {"run_code_serverconfig", "reference_environment"})


@pytest.fixture
def admin(make_user):
    """May do everything."""
    return make_user(*PERMISSIONS)


def test_a_server_that_runs_code_is_added_only_with_the_permission(editor, admin, settings):
    settings.MCP_CLIENT_IN_PROCESS_SERVERS = {"mine": "some.module.server"}
    for fields in (peer_fields(), {"transport": "in_process", "in_process": "mine"}):
        with pytest.raises(PermissionDeniedError) as caught:
            services.add_server("local", user=editor, **fields)
        assert caught.value.permission == "mcp_client_app.run_code_serverconfig"
        services.add_server("local", user=admin, **fields)
        services.remove_server("local", user=admin)


def test_a_server_is_turned_into_code_only_with_the_permission(editor, admin):
    fields = {**peer_fields(), "url": ""}
    with pytest.raises(PermissionDeniedError):
        services.update_server("web", user=editor, **fields)

    assert services.update_server("web", user=admin, **fields).runs_code


@pytest.mark.parametrize(
    "change", [{"args": ["-c", "evil"]}, {"label": "x"}, {**http(), "command": "", "args": []}]
)
def test_a_server_that_runs_code_is_changed_only_with_the_permission(editor, admin, change):
    row = services.add_server("local", user=admin, **peer_fields())

    with pytest.raises(PermissionDeniedError):
        services.update_server("local", user=editor, **change)
    for name, value in change.items():
        setattr(row, name, value)
    with pytest.raises(PermissionDeniedError):
        services.save_server(row, user=editor)

    assert ServerConfig.objects.get(name="local").args == peer_fields()["args"]


def test_a_server_that_runs_code_is_enabled_only_with_the_permission(editor, admin):
    services.add_server("local", user=admin, enabled=False, **peer_fields())

    with pytest.raises(PermissionDeniedError):
        services.enable_server("local", user=editor)

    assert services.enable_server("local", user=admin).enabled
    assert not services.disable_server("local", user=editor).enabled


def test_saving_a_row_asks_for_the_permission_to_add_or_to_change(make_user):
    adder, changer = make_user("add_serverconfig"), make_user("change_serverconfig")
    row = ServerConfig(name="new", **http())

    with pytest.raises(PermissionDeniedError):
        services.save_server(row, user=changer)
    services.save_server(row, user=adder)
    with pytest.raises(PermissionDeniedError):
        services.save_server(row, user=adder)
    services.save_server(row, user=changer)


def test_an_import_needs_the_permissions_to_add_and_to_change(make_user):
    document = {"mcpServers": {"new": {"url": URL}}}
    for permission in ("add_serverconfig", "change_serverconfig"):
        with pytest.raises(PermissionDeniedError):
            services.import_servers(document, user=make_user(permission))

    user = make_user("add_serverconfig", "change_serverconfig")
    assert services.import_servers(document, user=user).created == ("new",)


# Variables of the process ----------------------------------------------------------------


def test_variables_are_referred_to_only_with_the_permission(editor, admin):
    fields = http(headers={"Authorization": "Bearer ${SOME_TOKEN}"})
    with pytest.raises(ValidationError) as caught:
        services.add_server("api", user=editor, **fields)
    assert set(caught.value.message_dict) == {"headers"}

    row = services.add_server("api", user=admin, **fields)

    assert row.may_reference_environment
    assert services.update_server("api", user=editor, label="changed").may_reference_environment
    with pytest.raises(ValidationError):
        services.update_server("api", user=editor, url="http://thief.example/")


@pytest.mark.parametrize(
    "url", ["http://thief.example/", "https://api.example.com:8443/mcp", "http://api.example.com/mcp"]
)
def test_secrets_of_a_server_go_to_no_other_host_without_the_permission(editor, admin, url):
    known = {"Authorization": "Bearer s3cret-4711", "X-Team": "${TEAM:-a}"}
    services.add_server("api", user=admin, **http(url="https://api.example.com/mcp", headers=known))
    kept = {"mcpServers": {"api": {"type": "http", "url": url, "headers": {"Authorization": None}}}}

    for headers in (
        {},
        {"headers": {"Authorization": None}},
        {"headers": {"Authorization": "Bearer s3cret-4711"}},
    ):
        with pytest.raises(ValidationError) as caught:
            services.update_server("api", user=editor, url=url, **headers)
        assert "elsewhere" in {error.code for error in caught.value.error_dict["headers"]}
        assert "4711" not in str(caught.value)
    assert services.import_servers(kept, user=editor).failed == ("api",)

    services.update_server(
        "api", user=editor, headers={"Authorization": None}, url="https://api.example.com/v2"
    )
    assert services.update_server("api", user=editor, headers={"Authorization": "mine"}, url=url).url == url
    services.update_server("api", user=admin, url="https://api.example.com/mcp")
    assert ServerConfig.objects.get(name="api").headers["Authorization"] == "mine"


def test_variables_that_all_may_read_need_no_permission(editor, settings):
    settings.MCP_CLIENT_ENV_ALLOW = ["SOME_*"]

    row = services.add_server("api", user=editor, **http(headers={"Authorization": "${SOME_TOKEN}"}))

    assert not row.may_reference_environment
