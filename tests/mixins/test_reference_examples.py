"""The usage examples of GAIA's reference, with our import paths and servers of the example project."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mcp_client_app.mixins import MCPClient, MCPClientManager, MCPClientMixin, MCPConfig, MCPTransport
from mcp_client_app.mixins.tools import MCPTool
from tests.mixins.conftest import NOWHERE, WORKSHOP, Agent, files_config

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]


def test_an_agent_with_one_server(folder):
    class MyAgent(Agent, MCPClientMixin):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.connect_mcp_server("filesystem", files_config(folder))

    agent = MyAgent()

    entry = agent._TOOL_REGISTRY["mcp_filesystem_read_file"]
    function = entry.pop("function")
    assert entry == {
        "name": "mcp_filesystem_read_file",
        "description": "[MCP:filesystem] Return the text of one file.",
        "parameters": {
            "path": {
                "type": "string",
                "required": True,
                "description": entry["parameters"]["path"]["description"],
            }
        },
        "atomic": True,
        "_mcp_server": "filesystem",
        "_mcp_tool_name": "read_file",
    }
    assert function(path="example.txt") == {
        "status": "success",
        "message": "Tool 'read_file' returned data",
        "data": {"content": [{"type": "text", "text": "Hello from a file."}]},
        "instruction": "Parse this JSON data and provide a human-readable summary. "
        "Your answer must be a plain text string, not a JSON object.",
    }
    assert agent.prompts == 1


def test_an_agent_with_several_servers(folder):
    class MultiToolAgent(Agent, MCPClientMixin):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.connect_mcp_server("filesystem", files_config(folder))
            self.connect_mcp_server("workshop", {**WORKSHOP, "env": {"WORKSHOP_TOKEN": "ghp_xxx"}})

    agent = MultiToolAgent()

    assert agent.list_mcp_servers() == ["filesystem", "workshop"]
    assert {"mcp_filesystem_read_file", "mcp_workshop_add"} <= set(agent._TOOL_REGISTRY)
    answer = agent._TOOL_REGISTRY["mcp_workshop_add"]["function"](a=1, b=2)
    assert answer["status"] == "success"
    assert agent.prompts == 2


def test_servers_from_the_configuration(folder, tmp_path):
    config = MCPConfig(tmp_path / "gaia" / "mcp_servers.json")
    for name, entry in {"filesystem": files_config(folder), "gone": NOWHERE, "workshop": WORKSHOP}.items():
        config.add_server(name, entry)

    class ConfigAgent(Agent, MCPClientMixin):
        mcp_config = config

        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.count = self.load_mcp_servers_from_config()

    agent = ConfigAgent()

    assert agent.count == 2
    assert agent.list_mcp_servers() == ["filesystem", "workshop"]
    assert "mcp_workshop_add" in agent._TOOL_REGISTRY
    assert agent.prompts == 1  # for all servers together


def test_a_client_without_an_agent(folder):
    client = MCPClient.from_config(name="filesystem", config=files_config(folder), timeout=30, debug=False)

    assert not client.is_connected()
    assert client.connect()
    assert client.is_connected()
    assert client.server_info["name"] == "files"
    assert "read_file" in [tool.name for tool in client.list_tools()]
    result = client.call_tool("read_file", {"path": "example.txt"})
    assert result["content"][0]["text"] == "Hello from a file."
    client.disconnect()
    assert not client.is_connected()


def test_a_manager_with_a_file(folder, tmp_path):
    path = tmp_path / "mcp_servers.json"
    MCPConfig(path).add_server("workshop", WORKSHOP)
    config = MCPConfig(str(path))
    manager = MCPClientManager(config=config)

    client = manager.add_server("filesystem", files_config(folder))

    assert manager.list_servers() == ["filesystem"]
    assert config.get_server("filesystem") == files_config(folder)
    assert manager.get_client("filesystem") is client
    assert client.is_connected()
    assert len(client.list_tools()) > 2
    manager.load_from_config()
    assert sorted(manager.list_servers()) == ["filesystem", "workshop"]
    manager.disconnect_all()
    assert manager.list_servers() == []
    assert set(config.get_servers()) == {"filesystem", "workshop"}


def test_errors_of_tools_are_in_the_result(folder):
    class SafeAgent(Agent, MCPClientMixin):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.success = self.connect_mcp_server("filesystem", files_config(folder))
            self.failure = self.connect_mcp_server("gone", NOWHERE)

    agent = SafeAgent()

    assert (agent.success, agent.failure) == (True, False)
    assert agent.get_mcp_client("gone") is None
    client = agent.get_mcp_client("filesystem")
    assert client is not None
    result = client.call_tool("read_file", {"path": "nonexistent"})
    assert "nonexistent" in result["error"]
    assert "content" not in result
    wrapped = agent._TOOL_REGISTRY["mcp_filesystem_read_file"]["function"](path="nonexistent")
    assert wrapped == {"status": "error", "error": result["error"], "data": result}


def test_debug_is_taken_from_the_agent_and_logs_no_values(folder, caplog):
    class DebugAgent(Agent, MCPClientMixin):
        def __init__(self, **kwargs: Any) -> None:
            kwargs["debug"] = True
            super().__init__(**kwargs)
            self.connect_mcp_server("filesystem", files_config(folder))

    with caplog.at_level(logging.DEBUG, logger="mcp_client_app.mixins"):
        agent = DebugAgent()
        agent._TOOL_REGISTRY["mcp_filesystem_read_file"]["function"](path="example.txt")

    lines = [record.getMessage() for record in caplog.records if record.name.endswith("mixins.client")]
    assert "filesystem: tools/call read_file gave a result" in lines
    assert "example.txt" not in caplog.text.partition("filesystem: tools/call")[2]


class HttpTransport(MCPTransport):
    """A transport of somebody else's."""

    def __init__(self, url: str, timeout: int = 30) -> None:
        self.url = url
        self.timeout = timeout
        self._connected = False
        self.requests: list[str] = []

    def connect(self) -> bool:
        self._connected = True
        return True

    def disconnect(self) -> None:
        self._connected = False

    def send_request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.requests.append(method)
        if method == "tools/call":
            return {"error": {"code": -32602, "message": "Invalid params: path is required"}}
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        return {"result": {"tools": [{"name": "test_tool", "description": "Test", "inputSchema": schema}]}}

    def is_connected(self) -> bool:
        return self._connected


def test_a_transport_of_ones_own():
    transport = HttpTransport("http://example.com")
    client = MCPClient("test", transport)

    assert client.connect()
    assert client.list_tools() == [
        MCPTool("test_tool", "Test", {"type": "object", "properties": {"path": {"type": "string"}}})
    ]
    client.list_tools()
    assert transport.requests == ["initialize", "tools/list"]
    client.list_tools(refresh=True)
    assert transport.requests == ["initialize", "tools/list", "tools/list"]
    error = client.call_tool("test_tool", {})["error"]
    assert "Invalid params: path is required" in error
    assert '"path"' in error
    client.disconnect()
    with pytest.raises(RuntimeError, match="Connect"):
        client.call_tool("test_tool", {})


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("the line is down"), "the line is down"),
        (TimeoutError(), "TimeoutError"),
        (LookupError("password for db.internal"), "an unexpected error"),
    ],
)
def test_what_a_transport_may_not_raise_is_for_the_log_and_not_for_a_model(error, told, caplog):
    class Failing(HttpTransport):
        def send_request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
            if method == "tools/call":
                raise error
            return super().send_request(method, params)

    client = MCPClient("test", Failing("http://example.com"))
    client.connect()

    assert client.call_tool("test_tool", {}) == {"error": told}
    assert ("Traceback" in caplog.text) is isinstance(error, LookupError)


def test_a_tool_wrapper_of_ones_own(folder):
    class CustomAgent(Agent, MCPClientMixin):
        def _register_mcp_tools(self, client: MCPClient) -> None:
            for tool in client.list_tools():
                gaia_tool = tool.to_gaia_format(client.name)

                def custom_wrapper(tool: MCPTool = tool, **kwargs: Any) -> Any:
                    return [client.call_tool(tool.name, kwargs)]

                gaia_tool["function"] = custom_wrapper
                self._mcp_registry[gaia_tool["name"]] = gaia_tool

    agent = CustomAgent()
    agent.connect_mcp_server("filesystem", files_config(folder))

    (result,) = agent._TOOL_REGISTRY["mcp_filesystem_read_file"]["function"](path="example.txt")
    assert result["content"][0]["text"] == "Hello from a file."
    agent.disconnect_mcp_server("filesystem")
    assert agent._TOOL_REGISTRY == {}
