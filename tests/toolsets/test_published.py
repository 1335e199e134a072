"""What published servers list as their tools, as recorded: all of it can be offered and called."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles import InlineDefsJsonSchemaTransformer, JsonSchemaTransformer
from pydantic_ai.profiles.google import GoogleJsonSchemaTransformer
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer
from pydantic_ai.providers.anthropic import AnthropicJsonSchemaTransformer, AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from mcp_client_app.agents.offering import offer
from mcp_client_app.client.convert import tool_info
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.exceptions import InvalidArgumentsError
from mcp_client_app.toolsets import ToolRules, ToolSelection
from tests.servers.model_schemas import ANTHROPIC_NAME, anthropic_schema, openai_function
from tests.toolsets.sample_arguments import sample, spoiled

FOLDER = Path(__file__).parents[1] / "data" / "published"
SERVERS = list(json.loads((FOLDER / "servers.json").read_text(encoding="utf-8")))
REFERENCE = {"everything", "filesystem", "memory", "sequential-thinking", "fetch", "git", "time"}

LEFT_OUT: dict[str, set[str]] = {}
"""Tools that cannot be offered to a provider, and rightly so."""

each_server = pytest.mark.parametrize("server", SERVERS)


@cache
def recorded(server: str) -> Mapping[str, Any]:
    read: dict[str, Any] = json.loads((FOLDER / f"{server}.json").read_text(encoding="utf-8"))
    return read


@cache
def selection(server: str) -> ToolSelection:
    """Read a list as the client reads it from the wire."""
    mended, notes = Repairer(server).repair("tools/list", {"tools": recorded(server)["tools"]})
    assert notes == []
    return ToolSelection((tool_info(server, item) for item in mended["tools"]), ToolRules(all_servers=True))


def test_there_are_the_reference_servers_and_many_more():
    assert set(SERVERS) > REFERENCE
    assert len(set(SERVERS) - REFERENCE) >= 20
    assert {path.stem for path in FOLDER.glob("*.json")} == {*SERVERS, "servers"}


def test_the_readme_names_package_version_and_licence_of_each():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for server in SERVERS:
        about = [recorded(server)[key] for key in ("package", "registry", "version", "licence")]
        assert all(about)
        row = [f"{server}.json", *about, str(len(recorded(server)["tools"]))]
        assert f"| {' | '.join(row)} |" in readme


@each_server
def test_every_tool_is_selected_under_its_name(server: str):
    tools = selection(server)
    assert [shown.tool.name for shown in tools] == [tool["name"] for tool in recorded(server)["tools"]]
    assert tools.warnings == ()
    for shown in tools:
        assert tools.find(shown.name) is shown
        assert tools.find(shown.tool.name.upper()) is shown


# Providers -----------------------------------------------------------------------------


@each_server
def test_openai_takes_every_tool(server: str):
    shown = selection(server)
    chat, responses = shown.for_openai(), shown.for_openai(api="responses")
    names = [openai_function(tool["function"], "tools[0]") for tool in chat.tools]
    assert names == [openai_function(tool, "tools[0]") for tool in responses.tools]
    assert names == [name for name in shown.names if name not in LEFT_OUT.get(server, ())]
    # A long description is cut, and nothing else is wrong.
    long = [each.name for each in shown if len((each.tool.description or "").strip()) > 1024]
    assert list(chat.warnings) == [f"The description of {name!r} is cut for OpenAI." for name in long]


@each_server
def test_anthropic_takes_every_tool(server: str):
    listed = selection(server).for_anthropic()
    for tool in listed.tools:
        assert ANTHROPIC_NAME.match(tool["name"])
        anthropic_schema(tool["input_schema"], tool["name"])
    names = [tool["name"] for tool in listed.tools]
    assert names == [name for name in selection(server).names if name not in LEFT_OUT.get(server, ())]
    assert listed.warnings == ()


@each_server
def test_in_mcps_own_form_schemas_are_as_they_came(server: str):
    listed = selection(server).for_mcp()
    assert [tool["inputSchema"] for tool in listed.tools] == [
        tool["inputSchema"] for tool in recorded(server)["tools"]
    ]
    assert listed.warnings == ()


MODELS: dict[str, Callable[[], Model]] = {
    "chat": lambda: OpenAIChatModel("gpt-5", provider=OpenAIProvider(api_key="k")),
    "responses": lambda: OpenAIResponsesModel("gpt-5", provider=OpenAIProvider(api_key="k")),
    "anthropic": lambda: AnthropicModel("claude-sonnet-5-5", provider=AnthropicProvider(api_key="k")),
}


@cache
def model_of(kind: str) -> Model:
    return MODELS[kind]()


@each_server
@pytest.mark.parametrize("kind", MODELS)
def test_pydantic_ai_makes_requests_of_every_tool_that_providers_take(server: str, kind: str):
    offered = offer(selection(server), model_of(kind))
    assert list(offered.tools) == list(selection(server).names)
    definitions = [
        ToolDefinition(name=name, description=text, parameters_json_schema=schema, strict=False)
        for name, (text, schema) in offered.tools.items()
    ]
    parameters = model_of(kind).customize_request_parameters(
        ModelRequestParameters(function_tools=definitions)
    )
    for tool in parameters.function_tools:
        schema, place = tool.parameters_json_schema, "tools[0]"
        if kind == "anthropic":
            anthropic_schema(schema, place)
        else:
            openai_function({"name": tool.name, "description": tool.description, "parameters": schema}, place)


TRANSFORMERS: list[type[JsonSchemaTransformer]] = [
    AnthropicJsonSchemaTransformer,
    GoogleJsonSchemaTransformer,
    InlineDefsJsonSchemaTransformer,
    OpenAIJsonSchemaTransformer,
]


@each_server
@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("strict", [False, None])
def test_pydantic_ai_transforms_every_schema(
    server: str, transformer: type[JsonSchemaTransformer], strict: bool | None
):
    for listed in (selection(server).for_anthropic(), selection(server).for_openai(api="responses")):
        for tool in listed.tools:
            schema = tool.get("input_schema") or tool["parameters"]
            assert isinstance(transformer(schema, strict=strict).walk(), dict)


def test_all_of_them_together_keep_their_names_and_openais_limit():
    every = ToolSelection(
        (each.tool for server in SERVERS for each in selection(server)), ToolRules(all_servers=True)
    )
    count = sum(len(recorded(server)["tools"]) for server in SERVERS)
    assert len(set(every.names)) == len(every) == count
    assert len(every.for_anthropic().tools) == count
    listed = every.for_openai()
    assert [tool["function"]["name"] for tool in listed.tools] == list(every.names[:128])
    assert f"{count - 128} are left out" in listed.warnings[-1]


# Arguments -----------------------------------------------------------------------------


def accepts(tools: ToolSelection, name: str, arguments: dict[str, Any]) -> bool:
    try:
        call = tools.prepare(name, json.dumps(arguments))
    except InvalidArgumentsError:
        return False
    assert call.warnings == ()
    assert call.arguments == arguments
    return True


@each_server
@pytest.mark.parametrize("full", [False, True])
def test_what_a_tools_own_schema_accepts_is_accepted_and_nothing_else(server: str, full: bool):
    tools = selection(server)
    for shown in tools:
        schema: Any = shown.tool.input_schema
        oracle = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema)
        arguments = sample(schema, schema, full=full)
        assert oracle.is_valid(arguments), (shown.name, arguments)
        assert accepts(tools, shown.name, arguments)
        for changed in spoiled(arguments):
            assert accepts(tools, shown.name, changed) == oracle.is_valid(changed), (shown.name, changed)


@each_server
@pytest.mark.parametrize("full", [False, True])
def test_what_models_read_leads_to_arguments_that_are_accepted(server: str, full: bool):
    tools = selection(server)
    for listed in (tools.for_openai(api="responses"), tools.for_anthropic()):
        for tool in listed.tools:
            schema = tool.get("input_schema") or tool["parameters"]
            arguments = sample(schema, schema, full=full)
            call = tools.prepare(tool["name"], json.dumps(arguments))
            assert call.warnings == ()
