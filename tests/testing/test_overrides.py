"""Servers for tests that need no database."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.test import SimpleTestCase

from mcp_client_app import services
from mcp_client_app.client.in_process import registered_servers
from mcp_client_app.datatypes import ServerSpec, Transport
from mcp_client_app.exceptions import ConfigurationError, UnknownServerError
from mcp_client_app.runtime import get_mcp_manager, started_manager
from mcp_client_app.testing import fake_server, override_servers, serve_asgi
from tests.stored import peer_entry, peer_fields


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


async def halve(number: int) -> float:
    return number / 2


def refuse() -> None:
    raise ValueError("not today")


# Fake servers ----------------------------------------------------------------------------


def test_functions_become_tools_with_schema_and_description():
    with override_servers({"maths": fake_server("Maths", tools=[double, halve], instructions="Count.")}):
        tools = {tool.name: tool for tool in services.list_tools("maths").items}
        status = services.server_status("maths")

        assert services.call_tool("maths__double", {"number": 4}).text == "8"
        assert services.call_tool("maths__halve", {"number": 3}).structured == {"result": 1.5}

    assert tools["double"].description == "Double a number."
    assert tools["double"].input_schema["properties"] == {"number": {"title": "Number", "type": "integer"}}
    assert (status.server_name, status.instructions) == ("Maths", "Count.")


def test_tools_can_be_given_names_and_fail_in_words():
    tools: dict[str, Callable[..., Any]] = {"price": lambda article: 3, "refuse": refuse}
    with override_servers({"shop": fake_server(tools=tools)}):
        assert services.call_tool("price", {"article": "oak"}).text == "3"
        result = services.call_tool("refuse")

    assert result.is_error
    assert "not today" in result.text


def test_resources_and_prompts_are_texts_bytes_and_functions():
    server = fake_server(
        resources={
            "x://text": "hello",
            "x://bytes": b"\x00\x01",
            "x://made": lambda: "made",
            "x://{name}/greeting": lambda name: f"hello {name}",
        },
        prompts={"plain": "Say hello.", "made": lambda name: f"Greet {name}."},
    )
    with override_servers({"one": server}):
        assert services.read_resource("one", "x://text").text == "hello"
        assert services.read_resource("one", "x://bytes").contents[0]["blob"] == "AAE="
        assert services.read_resource("one", "x://made").text == "made"
        assert services.read_resource("one", "x://ada/greeting").text == "hello ada"
        assert services.get_prompt("one", "plain").messages[0]["content"]["text"] == "Say hello."
        assert (
            services.get_prompt("one", "made", {"name": "Ada"}).messages[0]["content"]["text"] == "Greet Ada."
        )


def test_making_a_server_leaves_the_projects_logging_alone():
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers.clear()
    try:
        fake_server()
        assert (root.handlers, root.level) == ([], level)
    finally:
        root.handlers[:] = handlers


# Overriding ------------------------------------------------------------------------------


def test_a_block_has_its_own_servers_and_nothing_is_left():
    before = set(threading.enumerate())
    outer = started_manager()

    with override_servers({"maths": fake_server(tools=[double])}) as manager:
        assert get_mcp_manager() is manager
        assert manager.list_servers() == ["maths"]
        assert manager.call_tool("double", {"number": 4}).text == "8"
        assert len(registered_servers) == 1

    assert started_manager() is outer
    assert manager.is_closed
    assert registered_servers == {}
    assert {thread for thread in threading.enumerate() if thread.name.startswith("mcp-")} <= before


def test_blocks_can_be_nested():
    with override_servers({"outer": fake_server(tools=[double])}) as outer:
        with override_servers({"inner": fake_server(tools=[double])}) as inner:
            assert get_mcp_manager() is inner
            with pytest.raises(UnknownServerError):
                services.call_tool("double", {"number": 1}, server="outer")
        assert get_mcp_manager() is outer
        assert services.call_tool("double", {"number": 1}, server="outer").text == "2"


@override_servers({"maths": fake_server(tools=[double])})
def test_a_function_can_be_decorated():
    assert services.call_tool("double", {"number": 4}).text == "8"


@override_servers({"maths": fake_server(tools=[double])})
def test_so_can_another_with_the_same_server():
    assert services.call_tool("double", {"number": 5}).text == "10"


def test_servers_may_be_entries_and_specs(monkeypatch):
    monkeypatch.setenv("GREETING", "hello")
    fields = peer_fields()
    spec = ServerSpec(
        name="spec", transport=Transport.STDIO, command=fields["command"], args=tuple(fields["args"])
    )
    entry = {**peer_entry(), "env": {"GREETED": "${GREETING}"}}

    with override_servers({"entry": entry, "spec": spec}):
        environment = json.loads(services.call_tool("entry__env").text)
        assert services.call_tool("spec__echo", {"text": "hi"}).text == "hi"

    assert environment["GREETED"] == "hello"


def test_an_entry_that_cannot_be_is_told_at_once():
    with (
        pytest.raises(ConfigurationError, match="transport"),
        override_servers({"one": {"type": "pigeon"}}),
    ):
        pass
    with pytest.raises(ConfigurationError), override_servers({"one": {"command": "${NOT_SET_ANYWHERE}"}}):
        pass


class WithoutDatabaseTests(SimpleTestCase):
    """Django forbids queries here: none is made."""

    def test_calls_need_no_database(self):
        with override_servers({"maths": fake_server(tools=[double])}):
            assert services.call_tool("double", {"number": 4}).text == "8"
            assert len(services.list_tools().items) == 1

    async def test_nor_do_coroutines(self):
        with override_servers({"maths": fake_server(tools=[double])}):
            result = await services.acall_tool("double", {"number": 4})
            assert result.text == "8"


# Over HTTP -------------------------------------------------------------------------------


def test_a_server_can_be_reached_over_http():
    server = fake_server(tools=[double])
    with (
        serve_asgi(server.streamable_http_app()) as url,
        override_servers({"web": {"url": f"{url}/mcp"}}),
    ):
        assert services.call_tool("web__double", {"number": 4}).text == "8"
        assert services.server_status("web").target == url


def test_an_application_that_cannot_start_is_told():
    async def broken(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})

    with pytest.raises(RuntimeError, match="did not start"), serve_asgi(broken):
        pass
