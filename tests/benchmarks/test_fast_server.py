"""The fast servers, in C and in Python: the same answers, over each transport and in both eras."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers import fast
from benchmarks.servers.fast import PYTHON_SOURCE, FastServer, compiler, fast_server, listening
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.datatypes import ProtocolMode, ServerSpec, Transport
from tests.client.conftest import MakeManager, manage

__all__ = ["manage"]

PYTHON = FastServer((sys.executable, "-I", str(PYTHON_SOURCE)), "Python")
TOOLS, PAGE = 7, 3
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
REQUESTS: list[dict[str, Any]] = [
    {"method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
    {"method": "server/discover", "params": {"_meta": META}},
    {"method": "ping"},
    {"method": "tools/list"},
    {"method": "tools/list", "params": {"cursor": "1"}},
    {"method": "tools/list", "params": {"cursor": "2", "_meta": META}},
    {"method": "tools/call", "params": {"name": "echo", "arguments": {"text": 'ein "Wört" \\ \n'}}},
    {"method": "tools/call", "params": {"arguments": {"bytes": 200}, "name": "big"}},
    {"method": "tools/call", "params": {"name": "wait", "arguments": {"ms": 1.5}}},
    {"method": "nothing/known"},
]

# Nothing is lost by it: without a compiler the benchmarks run against the server in Python, too, and say so.
needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler (package gcc), or no Linux")
KINDS = [pytest.param("C", marks=needs_compiler), "Python"]


def server(kind: str) -> FastServer:
    return fast_server() if kind == "C" else PYTHON


def answers(fast: FastServer) -> dict[int, Any]:
    messages = [{"jsonrpc": "2.0", "id": number, **request} for number, request in enumerate(REQUESTS)]
    messages.insert(1, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    command = fast.over("stdio", tools=TOOLS, page=PAGE)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines)
        process.stdin.flush()
        # Before the input ends: that ends the server, too, and what it was to answer later is lost.
        found = [json.loads(process.stdout.readline()) for _ in REQUESTS]
        process.stdin.close()
        assert process.wait(30) == 0
    return {answer["id"]: answer for answer in found}


@needs_compiler
def test_several_may_compile_it_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(fast, "BINARIES", tmp_path)
    with ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda _: fast_server.__wrapped__(), range(3)))
    (command,) = {server.command for server in made}
    assert list(tmp_path.iterdir()) == [Path(command[0])]


@needs_compiler
def test_both_servers_answer_the_same():
    in_c, in_python = answers(fast_server()), answers(PYTHON)
    big = in_c.pop(7), in_python.pop(7)
    assert in_c == in_python
    assert [len(answer["result"]["content"][0]["text"]) > 150 for answer in big] == [True, True]


@pytest.mark.parametrize("kind", KINDS)
def test_the_answers_are_those_of_a_server(kind: str):
    found = answers(server(kind))
    assert found[0]["result"]["protocolVersion"] == "2025-11-25"
    assert found[1]["result"]["supportedVersions"] == ["2026-07-28"]
    names = [tool["name"] for number in (3, 4, 5) for tool in found[number]["result"]["tools"]]
    assert names == ["echo", "wait", "big", *(f"search_records_{number}" for number in range(3, TOOLS))]
    assert "nextCursor" not in found[5]["result"]
    assert found[6]["result"]["content"][0]["text"] == 'ein "Wört" \\ \n'
    assert found[8]["result"]["content"][0]["text"] == "done"
    assert found[9]["error"]["code"] == -32601


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def mode(request: pytest.FixtureRequest) -> ProtocolMode:
    return ProtocolMode.LEGACY if request.param == "2025-11-25" else ProtocolMode.MODERN


@pytest.fixture(params=["stdio", "http-json", "http-sse"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=KINDS)
def manager(
    request: pytest.FixtureRequest, transport: str, mode: ProtocolMode, manage: MakeManager
) -> Iterator[MCPClientManager]:
    command = server(request.param).over(transport, tools=TOOLS, page=PAGE)
    with ExitStack() as stack:
        if transport == "stdio":
            spec = ServerSpec(
                name="fast", transport=Transport.STDIO, command=command[0], args=command[1:], mode=mode
            )
        else:
            url = stack.enter_context(listening(command))
            spec = ServerSpec(name="fast", transport=Transport.STREAMABLE_HTTP, url=url, mode=mode)
        manager = manage(spec)
        yield manager
        manager.close()


def test_our_client_lists_and_calls_it(manager: MCPClientManager):
    assert len(manager.list_tools("fast")) == TOOLS
    assert manager.call_tool("echo", {"text": "hello"}).text == "hello"
    assert manager.call_tool("wait", {"ms": 1}).text == "done"
    assert 190 <= len(manager.call_tool("big", {"bytes": 200}).text) <= 200
