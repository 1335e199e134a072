"""The toolset of a stored agent: for whom, and how it follows changes."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcp_client_app import services
from mcp_client_app.datatypes import AgentSpec
from mcp_client_app.exceptions import (
    PermissionDeniedError,
    ToolBlockedError,
    UnknownAgentError,
    UnknownToolError,
)
from mcp_client_app.models import AgentConfig, AgentServer, ServerConfig, ToolCall
from mcp_client_app.services.toolset import Toolset
from tests.services.toolsets import agent, calls_seen, code_of, logging_peer
from tests.stored import stored

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]


def test_the_right_to_use_agents_is_enough_for_their_tools(tmp_path, make_user):
    agent("clerk", logging_peer(tmp_path), allowed_tools=["echo"])
    user = make_user("run_agentconfig")

    toolset = services.get_toolset("Clerk", user)

    assert (toolset.name, toolset.user, toolset.spec.name) == ("clerk", user, "clerk")
    assert toolset.call_tool("peer__echo", {"text": "x"}).text == "x"
    row = ToolCall.objects.get()
    assert (row.user, row.agent, row.server_name) == (user, "clerk", "peer")
    with pytest.raises(PermissionDeniedError):
        services.call_tool("peer__pid", user=user)
    with pytest.raises(ToolBlockedError):
        toolset.call_tool("pid")
    assert len(calls_seen(tmp_path)) == 1


def test_others_may_not_use_it(make_user):
    row = agent("clerk", stored("peer"))
    with pytest.raises(PermissionDeniedError) as caught:
        services.get_toolset("clerk", make_user("call_tool", "view_agentconfig"))
    assert caught.value.permission == "mcp_client_app.run_agentconfig"

    group = Group.objects.create(name="staff")
    row.groups.add(group)
    user = make_user("run_agentconfig")
    with pytest.raises(UnknownAgentError):
        services.get_toolset("clerk", user)
    user.groups.add(group)
    assert not services.get_toolset("clerk", user).call_tool("pid").is_error
    with pytest.raises(UnknownAgentError):
        services.get_toolset("nobody")


def test_what_is_taken_away_is_gone_at_the_next_use(make_user):
    row = agent("clerk", stored("peer"))
    group = Group.objects.create(name="staff")
    row.groups.add(group)
    user = make_user("run_agentconfig")
    user.groups.add(group)
    toolset = services.get_toolset("clerk", user)
    assert not toolset.call_tool("pid").is_error

    user.groups.clear()
    with pytest.raises(UnknownAgentError):
        toolset.call_tool("pid")
    user.groups.add(group)
    assert not toolset.call_tool("pid").is_error
    AgentConfig.objects.update(enabled=False)
    for use in (toolset.selection, toolset.connect, lambda: toolset.call_tool("pid")):
        with pytest.raises(UnknownAgentError):
            use()
    assert code_of(toolset.answer("pid")) == "unknown_agent"
    AgentConfig.objects.all().delete()
    with pytest.raises(UnknownAgentError):
        toolset.selection()


def test_edits_count_in_the_next_selection():
    row = agent("clerk", stored("one"), allowed_tools=["echo"])
    toolset = services.get_toolset("clerk")
    assert toolset.selection().names == ("one__echo",)

    row.allowed_tools = ["pid"]
    row.save()
    assert toolset.selection().names == ("one__pid",)
    AgentServer.objects.create(agent=row, server=stored("two"))
    assert toolset.selection().names == ("one__pid", "two__pid")
    assert toolset.server_names == ("one", "two")
    ServerConfig.objects.filter(name="two").update(name="three")
    assert toolset.selection().names == ("one__pid", "three__pid")
    ServerConfig.objects.filter(name="one").delete()
    assert toolset.selection().names == ("three__pid",)
    with pytest.raises(UnknownToolError):
        toolset.call_tool("one__pid")


def test_looking_for_changes_is_one_query_within_the_interval(settings):
    agent("clerk", stored("peer"))
    toolset = services.get_toolset("clerk")
    first = toolset.selection()

    with CaptureQueriesContext(
        connection,
    ) as seen:
        assert toolset.selection() is first
    # One for the agent, one for all servers.
    assert len(seen.captured_queries) == 2
    settings.MCP_CLIENT_REVISION_INTERVAL = 3600
    toolset.selection()
    with CaptureQueriesContext(connection) as seen:
        assert toolset.selection() is first
    assert seen.captured_queries == []


def test_a_spec_is_used_as_it_stands(make_user):
    row = agent("clerk", stored("peer"), allowed_tools=["echo"])
    toolset = Toolset.from_spec(row.to_spec(), make_user("run_agentconfig"))
    row.allowed_tools = []
    row.save()

    assert toolset.selection().names == ("peer__echo",)
    with pytest.raises(PermissionDeniedError):  # one that code has made up is no agent
        Toolset.from_spec(AgentSpec(name="x"), make_user("run_agentconfig")).selection()


def test_a_stored_agent_names_no_code(tmp_path, settings):
    row, path = agent("clerk", logging_peer(tmp_path)), "tests.services.test_toolset.shorten"
    AgentServer.objects.filter(agent=row).update(output_filters={"echo": [path]})

    outcome = services.get_toolset("clerk").call_tool("echo", {"text": "planted"})
    assert "planted" not in outcome.text
    assert "MCP_CLIENT_OUTPUT_FILTERS" in outcome.text

    settings.MCP_CLIENT_OUTPUT_FILTERS = {"short": path}
    AgentServer.objects.filter(agent=row).update(output_filters={"echo": ["short"]})
    assert services.get_toolset("clerk").call_tool("echo", {"text": "abcdef"}).text == "echo: abc"


def test_an_agents_servers_may_be_added_to_by_code(tmp_path):
    agent("clerk", stored("peer"), allowed_tools=["pid"])
    logging_peer(tmp_path, name="other")
    toolset = services.get_toolset("clerk")
    toolset.add_server("other")
    assert toolset.selection().names == ("peer__pid", "other__pid")

    toolset.remove_server("peer")
    AgentConfig.objects.update(allowed_tools=["echo"])
    assert toolset.selection().names == ("other__echo",)
