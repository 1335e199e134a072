from __future__ import annotations

from mcp_client_app.agents.api import run_agent
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentEvent, AgentRun
from tests.agents.scripts import asks, call, says, scripted


def test_an_agent_calls_tools_and_answers(agent, calls):
    agent()
    model = scripted(
        asks(call("shop__price", article="tea"), call("shop__price", article="salt"), text="Let me see."),
        says("Both cost 3."),
    )

    result = run_agent("clerk", "What do tea and salt cost?", model=model)

    assert (result.status, result.text, result.code) == (RunStatus.COMPLETED, "Both cost 3.", "")
    assert result.is_complete
    assert result.tool_rounds == 1
    assert sorted(calls) == [("price", "salt"), ("price", "tea")]
    run = AgentRun.objects.get(pk=result.run_id)
    assert run.text == "Both cost 3."
    kinds = list(AgentEvent.objects.filter(run=run).order_by("number").values_list("kind", flat=True))
    assert kinds[:2] == ["run.started", "round"]
    assert sorted(kinds[2:-1]) == ["tool.call", "tool.call", "tool.result", "tool.result"]
    assert kinds[-1] == "run.completed"
