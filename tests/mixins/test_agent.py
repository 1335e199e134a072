"""The mixin: what is in the registry when, what the prompt is rebuilt for, and in whose name calls go."""

from __future__ import annotations

import asyncio
import shlex
from typing import Any

import pytest

from mcp_client_app import services
from mcp_client_app.exceptions import AsyncContextError, ConfigurationError
from mcp_client_app.mixins import (
    MCPClient,
    MCPClientManager,
    MCPClientMixin,
    MCPConfig,
    ServerTransport,
    StdioTransport,
)
from mcp_client_app.models import ServerConfig, ToolCall
from mcp_client_app.testing import fake_server
from tests.leftovers import child_pids
from tests.mixins.conftest import NOWHERE, PEER, Agent, MyAgent
from tests.stored import close_connections, peer_entry

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]


def shop(**tools: Any) -> Any:
    def price(article: str, count: int | None = None, strict: bool = True) -> str:
        """Tell a price."""
        return f"{article}: 3"

    return fake_server("shop", tools={"price": price, **tools})


@pytest.fixture
def the_shop(add_mcp_server) -> ServerConfig:
    row: ServerConfig = add_mcp_server("shop", shop())
    return row


# The registry ------------------------------------------------------------------------------


def test_a_server_of_the_site_is_used_by_its_name(the_shop):
    agent = MyAgent()

    assert agent.connect_mcp_server("shop")

    entry = agent._TOOL_REGISTRY["mcp_shop_price"]
    types = {name: (each["type"], each["required"]) for name, each in entry["parameters"].items()}
    assert types == {"article": ("string", True), "count": ("integer", False), "strict": ("boolean", False)}
    assert agent.tool("mcp_shop_price")(article="oak")["status"] == "success"


def test_each_agent_has_a_registry_of_its_own_unless_its_class_says_otherwise(the_shop):
    shared: dict[str, Any] = {"native": {"name": "native"}}

    class Sharing(Agent, MCPClientMixin):
        _TOOL_REGISTRY = shared

    one, other, sharing = MyAgent(), MyAgent(), Sharing()
    one.connect_mcp_server("shop")
    sharing.connect_mcp_server("shop")

    assert getattr(other, "_TOOL_REGISTRY", {}) == {}
    assert set(shared) == {"native", "mcp_shop_price"}
    sharing.disconnect_mcp_server("shop")
    assert set(shared) == {"native"}
    assert set(one._TOOL_REGISTRY) == {"mcp_shop_price"}


def test_tools_whose_names_collide_are_both_kept(add_mcp_server):
    add_mcp_server("a", fake_server("a", tools={"b_c": lambda: "of a"}))
    add_mcp_server("a_b", fake_server("a_b", tools={"c": lambda: "of a_b"}))
    agent = MyAgent()

    assert agent.load_mcp_servers_from_config() == 2

    texts = {
        name: entry["function"]()["data"]["content"][0]["text"]
        for name, entry in agent._TOOL_REGISTRY.items()
    }
    assert texts == {"mcp_a_b_c": "of a", "mcp_a_b__c": "of a_b"}
    agent.disconnect_mcp_server("a_b")
    assert list(agent._TOOL_REGISTRY) == ["mcp_a_b_c"]


def test_leaving_a_server_takes_its_tools_along(the_shop, caplog):
    agent = MyAgent()
    agent.connect_mcp_server("shop")
    function = agent.tool("mcp_shop_price")

    agent.disconnect_mcp_server("shop")

    assert agent._TOOL_REGISTRY == {}
    assert agent.list_mcp_servers() == []
    assert agent.get_mcp_client("shop") is None
    assert agent.prompts == 2
    assert function(article="oak")["status"] == "error"
    agent.disconnect_mcp_server("shop")
    assert "There is no MCP server 'shop'" in caplog.text
    assert agent.prompts == 2


def test_what_a_server_changes_is_followed_on_request(add_mcp_server, the_shop):
    server = shop()
    add_mcp_server("market", server)
    agent = MyAgent()
    agent.load_mcp_servers_from_config()
    before = agent.prompts
    assert not agent.refresh_mcp_tools()
    assert agent.prompts == before

    server.add_tool(lambda: "new", name="extra")
    services.disconnect("shop")

    assert agent.refresh_mcp_tools()
    assert set(agent._TOOL_REGISTRY) == {"mcp_market_price", "mcp_market_extra"}
    assert agent.list_mcp_servers() == ["market"]
    assert agent.prompts == before + 1
    services.connect("shop")
    agent.refresh_mcp_tools()
    assert "mcp_shop_price" in agent._TOOL_REGISTRY


@pytest.mark.parametrize("gone", ["deleted", "disabled"])
def test_a_server_that_is_gone_loses_its_tools(the_shop, gone):
    agent = MyAgent()
    agent.connect_mcp_server("shop")
    services.remove_server("shop") if gone == "deleted" else services.disable_server("shop")

    assert agent.list_mcp_servers() == []
    answer = agent.tool("mcp_shop_price")(article="oak")
    assert answer["status"] == "error"
    agent.refresh_mcp_tools()
    assert agent._TOOL_REGISTRY == {}


def test_tools_that_cannot_be_listed_any_more_go_and_come_back(the_shop, django_user_model):
    agent = MyAgent()
    agent.connect_mcp_server("shop")
    agent.mcp_user = django_user_model.objects.create_user("ada")

    assert agent.refresh_mcp_tools()
    assert (agent._TOOL_REGISTRY, agent.list_mcp_servers()) == ({}, ["shop"])

    agent.mcp_user = None
    assert agent.refresh_mcp_tools()
    assert set(agent._TOOL_REGISTRY) == {"mcp_shop_price"}


# Agents of all kinds -----------------------------------------------------------------------


def test_an_agent_needs_neither_a_prompt_nor_other_bases(the_shop):
    class Plain(MCPClientMixin):
        pass

    agent = Plain(debug=True)

    assert agent.connect_mcp_server("shop")
    assert agent._mcp_manager.debug


def test_arguments_reach_a_base_behind_the_mixin():
    class First(MCPClientMixin, Agent):
        pass

    assert First(debug=True).debug


# Results -----------------------------------------------------------------------------------


def test_wrapping_can_be_switched_off(the_shop):
    class Bare(MyAgent):
        mcp_wrap_responses = False

    agent = Bare()
    agent.connect_mcp_server("shop")

    assert agent.tool("mcp_shop_price")(article="oak")["content"] == [{"type": "text", "text": "oak: 3"}]


def test_what_is_no_object_is_not_wrapped(the_shop):
    class Texts(MyAgent):
        def _mcp_function(self, client: MCPClient, tool: Any) -> Any:
            client.create_tool_wrapper = lambda tool: lambda **kwargs: "a text"  # type: ignore[assignment,method-assign,return-value]
            return super()._mcp_function(client, tool)

    agent = Texts()
    agent.connect_mcp_server("shop")

    assert agent.tool("mcp_shop_price")() == "a text"


def test_wrong_arguments_are_explained_and_not_sent(the_shop):
    agent = MyAgent()
    agent.connect_mcp_server("shop")

    error = agent.tool("mcp_shop_price")(number=3)["error"]

    assert error.startswith("MCP tool 'price' input validation failed.\n\nError details:\n")
    assert "article" in error.partition("Error details:")[2].partition("Expected tool schema:")[0]
    assert '"properties": {' in error
    assert error.endswith('Your arguments:\n{\n  "number": 3\n}')
    assert not ToolCall.objects.exists()


# Who may -----------------------------------------------------------------------------------


def test_calls_are_made_in_the_users_name_and_written_down(the_shop, django_user_model):
    user = django_user_model.objects.create_user("ada")
    agent = MyAgent()
    agent.connect_mcp_server("shop")
    agent.mcp_user = user

    answer = agent.tool("mcp_shop_price")(article="oak")
    assert "permission" in answer["error"] or "may not" in answer["error"]
    agent.mcp_user = None
    agent.tool("mcp_shop_price")(article="oak")

    rows = [(row.username, row.agent, row.code) for row in ToolCall.objects.order_by("pk")]
    assert rows == [("ada", "MyAgent", "permission_denied"), ("", "MyAgent", "ok")]


def test_a_blocked_tool_is_not_there(add_mcp_server):
    add_mcp_server("shop", shop(), blocked_tools=["price"])
    agent = MyAgent()

    assert agent.connect_mcp_server("shop")

    assert agent._TOOL_REGISTRY == {}
    client = agent.get_mcp_client("shop")
    assert client is not None
    assert "error" in client.call_tool("price", {"article": "oak"})


def test_what_an_operator_has_stopped_stays_stopped(the_shop, caplog):
    services.disconnect("shop")
    agent = MyAgent()

    assert not agent.connect_mcp_server("shop")
    assert agent.load_mcp_servers_from_config() == 0

    assert "stopped" in caplog.text
    assert ServerConfig.objects.get().stopped


# Errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "field"),
    [("npx", None), ({}, "command"), ({"args": ["x"]}, "command"), ({"command": ""}, "command")],
)
def test_a_configuration_that_cannot_be_is_refused(config, field):
    for use in (MyAgent().connect_mcp_server, MCPClient.from_config, MCPClientManager().add_server):
        with pytest.raises(ValueError, match="configuration of 'one'") as caught:
            use("one", config)
        assert isinstance(caught.value, ConfigurationError)
        assert caught.value.field == field
    assert not ServerConfig.objects.exists()


@pytest.mark.parametrize("command", ["", "  ", "npx 'a"])
def test_a_command_line_that_cannot_be_is_refused(command):
    with pytest.raises(ConfigurationError) as caught:
        MCPClient.from_command("one", command)
    assert caught.value.field == "command"


def test_a_failure_to_connect_is_told(caplog):
    agent = MyAgent()

    assert not agent.connect_mcp_server("gone", NOWHERE)

    assert "'gone' could not be connected" in caplog.text
    assert (agent.prompts, agent.list_mcp_servers()) == (0, [])
    with pytest.raises(RuntimeError):
        MCPClientManager().add_server("gone", NOWHERE)


def test_a_name_is_taken_while_its_client_is_connected(the_shop):
    agent = MyAgent()
    agent.connect_mcp_server("shop")

    assert not agent.connect_mcp_server("shop")
    with pytest.raises(ValueError, match="already"):
        agent._mcp_manager.add_server("shop")

    assert agent.prompts == 1
    services.disconnect("shop")
    services.connect("shop")
    assert agent.list_mcp_servers() == ["shop"]


def test_on_an_event_loop_the_verbs_refuse(the_shop):
    agent = MyAgent()
    agent.connect_mcp_server("shop")

    async def use() -> None:
        for verb in (
            lambda: agent.tool("mcp_shop_price")(article="oak"),
            lambda: agent.connect_mcp_server("other", PEER),
            lambda: agent.disconnect_mcp_server("shop"),
            agent.list_mcp_servers,
            agent.load_mcp_servers_from_config,
            agent.refresh_mcp_tools,
            agent._mcp_manager.disconnect_all,
        ):
            with pytest.raises(AsyncContextError):
                verb()
        await close_connections()

    asyncio.run(use())
    assert not ToolCall.objects.exists()
    assert agent.list_mcp_servers() == ["shop"]
    assert "mcp_shop_price" in agent._TOOL_REGISTRY


# Connections -------------------------------------------------------------------------------


def test_the_last_client_of_a_server_has_it_closed_and_others_are_not_disturbed():
    one, other = (MCPClient.from_config("peer", PEER) for _ in range(2))
    before = set(child_pids())
    assert one.connect()
    assert other.connect()
    (pid,) = set(child_pids()) - before

    one.disconnect()
    one.disconnect()
    assert other.call_tool("pid")["content"][0]["text"] == str(pid)

    other.disconnect()
    assert pid not in child_pids()
    assert services.call_tool("echo", {"text": "x"}, server="peer").text == "x"  # anybody may use it again


def test_a_server_that_died_is_there_again_at_the_next_call():
    client = MCPClient.from_config("peer", PEER)
    client.connect()
    client.list_tools()

    assert "error" in client.call_tool("crash")
    assert not client.is_connected()

    assert client.call_tool("echo", {"text": "x"}) == {"content": [{"type": "text", "text": "x"}]}
    assert client.is_connected()


def test_a_name_that_no_server_can_have_is_kept_for_the_tools():
    agent = MyAgent()

    assert agent.connect_mcp_server("My peer", PEER)

    assert agent.list_mcp_servers() == ["My peer"]
    assert ServerConfig.objects.get().name == "My-peer"
    assert "mcp_My peer_echo" in agent._TOOL_REGISTRY
    assert agent.tool("mcp_My peer_echo")(text="x")["status"] == "success"


def test_a_changed_configuration_counts_and_an_equal_one_changes_nothing():
    first = MCPClient.from_config("peer", PEER)
    first.connect()
    revision = ServerConfig.objects.get().revision

    again = MCPClient.from_config("peer", PEER)
    again.connect()
    assert ServerConfig.objects.get().revision == revision
    changed = MCPClient.from_config("peer", {**PEER, "env": {"A": "1"}})
    changed.connect()
    assert ServerConfig.objects.get().revision > revision


def test_a_server_of_the_settings_counts_as_it_stands_there(settings):
    settings.MCP_CLIENT_SERVERS = {"peer": PEER}
    agent = MyAgent()

    assert agent.connect_mcp_server("peer", NOWHERE)

    assert ServerConfig.objects.get().command == PEER["command"]


def test_entries_of_a_file_whose_names_become_one_do_not_overwrite_each_other(tmp_path, caplog):
    config = MCPConfig(tmp_path / "mcp_servers.json")
    config.add_server("the peer", PEER)
    config.add_server("the-peer", NOWHERE)
    config.add_server("peer", {"args": ["without a command"]})
    manager = MCPClientManager(config)

    (client,) = manager.load_from_config()

    assert client.name == "the peer"
    assert "'the peer' has taken its name" in caplog.text
    assert "lacks 'command'" in caplog.text
    assert ServerConfig.objects.get().command == PEER["command"]
    assert manager.load_from_config() == []  # connected already


def test_removing_a_server_removes_it_from_the_file_and_keeps_its_row(tmp_path):
    config = MCPConfig(tmp_path / "mcp_servers.json")

    class Keeping(MyAgent):
        mcp_config = config

    agent = Keeping()
    agent.connect_mcp_server("peer", PEER)
    assert config.get_server("peer") == PEER

    agent.disconnect_mcp_server("peer")

    assert not config.server_exists("peer")
    assert ServerConfig.objects.get().name == "peer"


def test_a_command_line_starts_a_server():
    client = MCPClient.from_command("peer", shlex.join([PEER["command"], *PEER["args"]]), timeout=30)
    bare = StdioTransport(shlex.join([PEER["command"], *PEER["args"]]))

    assert client.connect()
    assert client.create_tool_wrapper(client.list_tools()[0])(text="x")["content"][0]["text"] == "x"
    assert bare.connect()
    assert bare.send_request("resources/list")["error"]["code"] == -32601
    bare.disconnect()
    with pytest.raises(RuntimeError):
        bare.send_request("tools/list")
    client.disconnect()


def test_arguments_that_the_server_refuses_are_explained_with_the_schema():
    client = MCPClient.from_config("peer", peer_entry("--scenario", "error_on_call=-32602"))
    assert client.connect()

    error = client.call_tool("echo", {"text": "x"})["error"]

    assert "Error details:\nfaulty peer refuses with -32602" in error
    assert '"properties": {' in error
    assert error.endswith('Your arguments:\n{\n  "text": "x"\n}')
    assert ToolCall.objects.get().code == "invalid_arguments"


def test_a_schema_that_has_changed_since_is_looked_at_before_arguments_are_refused(add_mcp_server):
    server = fake_server("shop", tools={"price": lambda article: "old"})
    add_mcp_server("shop", server)
    agent = MyAgent()
    agent.connect_mcp_server("shop")
    server.remove_tool("price")
    server.add_tool(lambda number: "new", name="price")

    answer = agent.tool("mcp_shop_price")(number="7")

    assert answer["data"]["content"][0]["text"] == "new"


def test_checking_arguments_can_be_left_to_the_server(the_shop):
    client = MCPClient("shop", ServerTransport())
    client.validate_arguments = False
    client.connect()
    client.list_tools()

    assert "error" in client.call_tool("price", {"number": 3})
    assert ToolCall.objects.count() == 1


def test_a_file_that_cannot_be_written_leaves_no_half_connected_server(tmp_path, caplog):
    config = MCPConfig(tmp_path / "mcp_servers.json")

    class Keeping(MyAgent):
        mcp_config = config

    agent = Keeping()
    agent.connect_mcp_server("one", PEER)
    config.config_file.write_text("{")

    assert not agent.connect_mcp_server("two", PEER)
    assert "mcp_servers.json" in caplog.text
    assert agent.list_mcp_servers() == ["one"]
    with pytest.raises(ConfigurationError):
        agent.disconnect_mcp_server("one")

    assert (agent.list_mcp_servers(), agent._TOOL_REGISTRY, agent.prompts) == ([], {}, 2)
