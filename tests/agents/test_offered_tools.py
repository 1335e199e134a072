"""Tools of all kinds, over HTTP: one that a provider would refuse is left out, and takes no other with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp.server.lowlevel import Server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

from mcp_client_app.agents.api import run_agent
from mcp_client_app.models import AgentConfig, AgentServer
from tests.agents.providers import PROVIDERS, WAYS, clerk, told
from tests.servers.model_apis import Call, ModelApi, Turn
from tests.toolsets.sample_arguments import sample

__all__ = ["clerk"]

PUBLISHED = Path(__file__).parents[1] / "data" / "published"

every_api = pytest.mark.parametrize("kind", PROVIDERS)


def listing(tools: Iterable[Mapping[str, Any]]) -> Server[Any]:
    """Return a server that lists these tools as they are, and answers each call with its arguments."""
    known = [Tool.model_validate(tool) for tool in tools]

    async def listed(*_: Any) -> ListToolsResult:
        return ListToolsResult(tools=known)

    async def called(_: Any, params: Any) -> CallToolResult:
        text = json.dumps([params.name, params.arguments])
        return CallToolResult(content=[TextContent(type="text", text=text)])

    return Server("listing", on_list_tools=listed, on_call_tool=called)


def tool(name: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", **schema}}


@pytest.fixture
def only(clerk: Callable[..., AgentConfig], add_mcp_server: Callable[..., Any]) -> Callable[..., AgentConfig]:
    """Store the agent with these servers and no others."""

    def make(kind: str, api: ModelApi, **servers: Iterable[Mapping[str, Any]]) -> AgentConfig:
        row = clerk(kind, api)
        AgentServer.objects.filter(agent=row).delete()
        for name, tools in servers.items():
            AgentServer.objects.create(agent=row, server=add_mcp_server(name, listing(tools)))
        return row

    return make


ODD = [
    tool("plain", properties={"a": {"type": "string"}}),
    tool("bare"),
    tool("lists", properties={"a": {"type": "array"}, "b": {"type": ["object", "null"]}}),
    tool("choice", anyOf=[{"properties": {"a": {}}, "required": ["a"]}, {"required": ["b"]}]),
    tool("keys", properties={"$top": {"type": "integer"}, "with space": {"type": "string"}}),
    tool("tuple", properties={"a": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]}}),
    tool("itself", properties={"a": {"$ref": "#"}}),
    # These two are mended where they come in.
    tool("listed", properties=[]),
    tool("required", required=True),
]
BAD = [
    tool("dangling", properties={"a": {"$ref": "#/$defs/none"}}),
    tool("abroad", properties={"a": {"$ref": "https://example.org/schema.json"}}),
    tool("kind", properties={"a": {"type": "any"}}),
]


@every_api
@pytest.mark.parametrize("way", WAYS)
def test_tools_that_cannot_be_said_are_left_out_alone(only, caplog, kind, way):
    calls = (
        Call("odd__choice", {"tool_arguments": {"a": 1}}),
        Call("odd__lists", {"a": [1], "b": None}),
        Call("odd__bare", {}),
        Call("odd__kind", {}),
    )
    with ModelApi([Turn("", calls), Turn("done")]) as api:
        only(kind, api, odd=[*ODD, *BAD])
        assert WAYS[way]("clerk", "go").text == "done"
    assert api.refusals == []
    assert set(api.asked[0].tools) == {f"odd__{each['name']}" for each in ODD}
    for each in BAD:
        assert f"'odd__{each['name']}' is left out" in caplog.text
    answers = told(api.asked[1])
    assert answers[:3] == ['["choice", {"a": 1}]', '["lists", {"a": [1], "b": null}]', '["bare", {}]']
    assert len(answers) == 4


@every_api
def test_arguments_as_a_provider_needs_them_named_reach_the_server_as_it_names_them(only, kind):
    arguments = {"$top": 3, "with space": "x"}
    given = {"tool_arguments": arguments} if kind == "anthropic" else arguments
    with ModelApi([Turn("", (Call("odd__keys", given),)), Turn("done")]) as api:
        only(kind, api, odd=ODD)
        run_agent("clerk", "go")
    assert told(api.asked[1]) == [json.dumps(["keys", arguments])]


def published(name: str) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = json.loads((PUBLISHED / f"{name}.json").read_text(encoding="utf-8"))[
        "tools"
    ]
    return tools


@every_api
def test_tools_of_published_servers_are_offered_together_and_called(only, kind):
    names = ("everything", "filesystem", "git", "memory", "notion", "playwright", "sequential_thinking")
    servers = {name: published(name.replace("_", "-")) for name in names}
    first = {name: tools[-1] for name, tools in servers.items()}
    calls = tuple(
        Call(f"{name}__{each['name']}", sample(each["inputSchema"], each["inputSchema"], full=True))
        for name, each in first.items()
    )
    with ModelApi([Turn("", calls), Turn("done")]) as api:
        only(kind, api, **servers)
        assert run_agent("clerk", "go").text == "done"
    assert api.refusals == []
    assert set(api.asked[0].tools) == {
        f"{n}__{each['name']}" for n, tools in servers.items() for each in tools
    }
    assert told(api.asked[1]) == [
        json.dumps([each["name"], call.arguments]) for each, call in zip(first.values(), calls, strict=True)
    ]


@every_api
def test_of_more_tools_than_openai_takes_the_first_are_offered(only, caplog, kind):
    atlassian, excel = published("atlassian"), published("excel")
    with ModelApi([Turn("done")]) as api:
        only(kind, api, atlassian=atlassian, excel=excel)
        assert run_agent("clerk", "go").text == "done"
    assert api.refusals == []
    count = len(atlassian) + len(excel)
    assert len(api.asked[0].tools) == (count if kind == "anthropic" else 128)
    assert (f"{count - 128} are left out" in caplog.text) == (kind != "anthropic")
