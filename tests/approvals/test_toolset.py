"""Approvals as a toolset uses them: against a real server, which says what has reached it."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_client_app import services
from mcp_client_app.exceptions import ApprovalError, ApprovalRequiredError, InvalidArgumentsError
from mcp_client_app.models import AgentConfig, AgentServer
from mcp_client_app.testing import fake_server
from mcp_client_app.testing.fixtures import add_mcp_server, mcp_manager

__all__ = ["add_mcp_server", "mcp_manager"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def reached() -> list[Any]:
    """What has reached the server."""
    return []


@pytest.fixture
def toolset(add_mcp_server, reached) -> Any:
    """The toolset of an agent whose calls a person has to approve, and whose token is fixed."""

    def keep(value: Any, token: str = "") -> str:
        reached.append((value, token))
        return "kept"

    server = add_mcp_server("box", fake_server("box", tools={"keep": keep}))
    agent = AgentConfig.objects.create(name="clerk", approval="always")
    AgentServer.objects.create(agent=agent, server=server, fixed_arguments={"keep": {"token": "planted"}})
    return services.get_toolset("clerk")


def asked_for(toolset: Any, value: Any) -> str:
    with pytest.raises(ApprovalRequiredError) as caught:
        toolset.call_tool("box__keep", {"value": value})
    return str(caught.value.approval)


def test_an_approved_call_is_made_once(toolset, reached):
    approval = asked_for(toolset, 1)
    services.approve(approval)
    assert toolset.call_tool("box__keep", {"value": 1}, approval=approval).text == "kept"
    with pytest.raises(ApprovalError) as caught:
        toolset.call_tool("box__keep", {"value": 1}, approval=approval)
    assert caught.value.reason == "used"
    assert reached == [(1, "planted")]


@pytest.mark.parametrize(("given", "edited"), [(1, 2), (1, True), ({"a": 0}, {"a": False})])
def test_what_a_person_has_edited_is_what_is_sent(toolset, reached, given, edited):
    approval = asked_for(toolset, given)
    services.approve(approval, arguments={"value": edited})
    toolset.call_tool("box__keep", {"value": given}, approval=approval)
    assert repr(reached) == repr([(edited, "planted")])


def test_fixed_arguments_are_neither_shown_nor_edited(toolset, reached):
    row = services.get_approval(asked_for(toolset, 1))
    assert "planted" not in str(vars(row))
    assert row.schema is not None
    assert set(row.schema["properties"]) == {"value"}
    with pytest.raises(InvalidArgumentsError, match="is fixed for this tool"):
        services.approve(row.pk, arguments={"value": 1, "token": "mine"})


def test_a_model_reads_why_a_call_was_not_made(toolset, reached):
    approval = asked_for(toolset, 1)
    services.deny(approval, reason="Too dear.")
    answer = toolset.answer("box__keep", {"value": 1}, approval=approval)
    assert answer.is_error
    assert "denied by a person: Too dear." in answer.text
    assert reached == []
