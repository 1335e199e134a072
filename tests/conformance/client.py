"""The client under test: a site of this app that does, through the services, what a scenario asks for.

``python -m tests.conformance.client LINK URL``; the suite tells the scenario, its revision and what else it
wants in the environment. Exit status 0: all was done.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import django
from django.conf import settings

from mcp_client_app.datatypes import InputAnswer, InputRequest

SERVER = "mock"
MODERN = "2026-07-28"

Scenario = Callable[[], None]
SCENARIOS: dict[str, Scenario] = {}
HANDSHAKE_ONLY = {"json-schema-ref-no-deref"}
"""Scenarios whose mock server knows no other era, whatever the revision says."""

HERE = "tests.conformance.client"
HANDLERS = {
    "elicitation-sep1034-client-defaults": {"elicitation": f"{HERE}.accept_defaults"},
    "request-metadata": {
        "elicitation": f"{HERE}.accept_defaults",
        "sampling": f"{HERE}.say_nothing",
        "roots": f"{HERE}.no_roots",
    },
    "sep-2322-client-request-state": {"elicitation": f"{HERE}.confirm"},
}
"""The setting MCP_CLIENT_INPUT_HANDLERS of each scenario; without one, everything is refused."""


def scenario(name: str) -> Callable[[Scenario], Scenario]:
    """Register what is done in a scenario."""

    def register(function: Scenario) -> Scenario:
        SCENARIOS[name] = function
        return function

    return register


# What scenarios ask for --------------------------------------------------------------


@scenario("initialize")
@scenario("json-schema-ref-no-deref")
def list_tools() -> None:
    from mcp_client_app import services

    services.list_tools(SERVER)


@scenario("tools_call")
def add() -> None:
    assert call("add_numbers", {"a": 5, "b": 3}).text, "no result"


@scenario("elicitation-sep1034-client-defaults")
def elicitation_defaults() -> None:
    call("test_client_elicitation_defaults")


@scenario("sse-retry")
def reconnect() -> None:
    call("test_reconnection")


@scenario("request-metadata")
def metadata() -> None:
    from mcp_client_app import services

    for tool in services.list_tools(SERVER).items:
        call(tool.name, least(tool.input_schema))


@scenario("http-standard-headers")
def standard_headers() -> None:
    from mcp_client_app import services

    for tool in services.list_tools(SERVER).items:
        call(tool.name, least(tool.input_schema))
    for resource in services.list_resources(SERVER).items:
        services.read_resource(SERVER, resource.uri)
    for prompt in services.list_prompts(SERVER).items:
        services.get_prompt(SERVER, prompt.name)


@scenario("http-custom-headers")
def custom_headers() -> None:
    from mcp_client_app import services

    offered = {tool.name for tool in services.list_tools(SERVER).items}
    wanted = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]
    for each in wanted:
        if each["name"] in offered:
            call(each["name"], each.get("arguments") or {})


@scenario("http-invalid-tool-headers")
def invalid_headers() -> None:
    from mcp_client_app import services

    for tool in services.list_tools(SERVER).items:
        call(tool.name, least(tool.input_schema))


@scenario("sep-2322-client-request-state")
def request_state() -> None:
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        call(f"test_mrtr_{name}")


@scenario("json-schema-2020-12-preservation")
def preservation() -> None:
    from mcp_client_app import services

    tool = services.find_tool("json_schema_2020_12_tool", server=SERVER)
    assert tool is not None, "the tool is not offered"
    call("json_schema_echo", {"schema": tool.input_schema})


# What servers ask for ----------------------------------------------------------------


def accept_defaults(request: InputRequest) -> InputAnswer:
    return request.accept()


def confirm(request: InputRequest) -> InputAnswer:
    return request.accept({"confirmed": True})


async def say_nothing(request: InputRequest) -> InputAnswer:
    content = {"type": "text", "text": ""}
    return request.accept({"role": "assistant", "content": content, "model": "none"})


async def no_roots(request: InputRequest) -> InputAnswer:
    return request.accept({"roots": []})


# How it is done ----------------------------------------------------------------------


def call(name: str, arguments: dict[str, Any] | None = None) -> Any:
    from mcp_client_app import services

    result = services.call_tool(name, arguments or {}, server=SERVER)
    sys.stderr.write(f"{name}: {result.text[:500]!r} {result.warnings}\n")
    return result


def least(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the smallest arguments that a schema of plain properties lets pass."""
    values = {"string": "x", "integer": 0, "number": 0, "boolean": False, "object": {}, "array": []}
    properties = schema.get("properties", {})
    return {name: values.get(properties[name].get("type")) for name in schema.get("required", [])}


def main() -> None:
    """Set the site up, store the server, do what the scenario asks for."""
    link, url = sys.argv[1:]
    name, revision = os.environ["MCP_CONFORMANCE_SCENARIO"], os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    if name not in SCENARIOS:
        sys.exit(f"The client under test does not know the scenario {name!r}; teach it in {__file__}.")
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.conformance.settings"
    django.setup()
    from mcp_client_app import services
    from mcp_client_app.runtime import close_mcp_manager

    mode = "auto" if revision >= MODERN and name not in HANDSHAKE_ONLY else "legacy"
    if name in HANDLERS:
        settings.MCP_CLIENT_INPUT_HANDLERS = HANDLERS[name]
    services.add_server(SERVER, url=url, transport="streamable_http", mode=mode, link=link)
    try:
        SCENARIOS[name]()
    finally:
        close_mcp_manager()


if __name__ == "__main__":
    main()
