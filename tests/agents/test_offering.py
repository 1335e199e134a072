from __future__ import annotations

from typing import Any

from pydantic_ai.models.function import FunctionModel
from pydantic_ai.profiles import JsonSchemaTransformer, ModelProfile

from mcp_client_app.agents.api import run_agent
from mcp_client_app.agents.offering import offer
from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.models import AgentServer
from mcp_client_app.testing import fake_server
from mcp_client_app.toolsets import ToolRules, ToolSelection
from tests.agents.scripts import asks, call, says, scripted, tool_results


class Fussy(JsonSchemaTransformer):
    """A provider that cannot be told of arrays."""

    def transform(self, schema: dict[str, Any]) -> dict[str, Any]:
        if schema.get("type") == "array":
            raise ValueError("no arrays, please")
        return schema


def test_a_tool_that_a_provider_cannot_be_told_of_is_left_out_alone(agent, add_mcp_server, caplog):
    def many(articles: list[str]) -> str:
        return "never"

    row = agent()
    AgentServer.objects.create(
        agent=row, server=add_mcp_server("bulk", fake_server("bulk", tools={"many": many}))
    )
    seen: list[Any] = []
    offered: list[str] = []

    def ask(messages, info):
        offered.extend(tool.name for tool in info.function_tools)
        return asks(call("shop__price", article="tea"))

    model = scripted(ask, says("Done."), seen=seen)
    assert model.function is not None
    fussy = FunctionModel(model.function, profile=ModelProfile(json_schema_transformer=Fussy))
    result = run_agent("clerk", "Go.", model=fussy)

    assert result.text == "Done."
    assert "shop__price" in offered
    assert "bulk__many" not in offered
    assert tool_results(seen[-1])[0][2] == "tea costs 3"
    assert "'bulk__many' is left out for this model: no arrays, please" in caplog.text


def test_warnings_are_told_once_while_nothing_changes(agent, add_mcp_server, caplog):
    test_a_tool_that_a_provider_cannot_be_told_of_is_left_out_alone(agent, add_mcp_server, caplog)
    model = scripted(says("Done."))
    assert model.function is not None
    fussy = FunctionModel(model.function, profile=ModelProfile(json_schema_transformer=Fussy))
    run_agent("clerk", "Once more.", model=fussy)

    assert caplog.text.count("'bulk__many' is left out") == 1


def selection(**schema: Any) -> ToolSelection:
    tool = ToolInfo(server="shop", name="find", input_schema={"type": "object", **schema})
    return ToolSelection([tool], ToolRules(all_servers=True))


def test_what_may_not_stand_at_a_root_is_wrapped_for_all_providers():
    either = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}}
    ((_, schema),) = offer(selection(**either), scripted(says("x"))).tools.values()

    assert "anyOf" not in schema
    assert list(schema["properties"]) == ["tool_arguments"]
