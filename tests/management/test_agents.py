"""The verb agents."""

from __future__ import annotations

from mcp_client_app import services
from tests.management.conftest import Run

SECRET = "planted-5e2c"


def test_an_empty_list_says_how_to_add_an_agent(run: Run):
    result = run("agents")

    assert result.code == 0
    assert "services.add_agent" in result.out
    assert run("agents", "--json").document == {"agents": []}


def test_agents_are_listed_with_what_is_to_be_looked_at(servers: Run):
    services.add_agent("support", model="openai:gpt-5", approval="writes", servers=["off", "good"])
    services.add_agent("helper", all_servers=True, enabled=False)

    result = servers("agents")

    rows = {line.split()[0]: line for line in result.lines[1:]}
    assert list(rows) == ["helper", "support"]
    assert rows["helper"].split()[1:] == ["disabled", "-", "(all)", "never"]
    assert rows["support"].split()[1:6] == ["enabled", "openai:gpt-5", "good,", "off", "writes"]
    assert "The server 'off' is disabled." in rows["support"]


def test_the_document_tells_all_but_what_is_fixed(servers: Run):
    chosen = {"server": "good", "fixed_arguments": {"echo": {"text": SECRET}}, "approval": "always"}
    row = services.add_agent("support", servers=[chosen, "off"], blocked_tools=["x"])

    result = servers("agents", "--json")

    [agent] = result.document["agents"]
    assert SECRET not in result.out
    assert (agent["name"], agent["revision"], agent["blocked_tools"]) == ("support", row.revision, ["x"])
    assert agent["problems"] == ["The server 'off' is disabled."]
    assert agent["servers"][0] == {
        "server": "good",
        "allowed_tools": None,
        "blocked_tools": [],
        "fixed_arguments": {"echo": {"text": "set"}},
        "approval": "always",
        "tool_approvals": {},
    }


def test_without_the_extra_a_model_is_no_use(servers: Run, monkeypatch):
    services.add_agent("support", model="openai:gpt-5", servers=["good"])
    services.add_agent("shelf", servers=["good"])
    monkeypatch.setattr("mcp_client_app.services.agent_problems.find_spec", lambda name: None)

    shelf, support = servers("agents", "--json").document["agents"]

    assert shelf["problems"] == []
    assert "'agents'" in support["problems"][0]
