"""The well-behaved peers, driven by the SDK's own client: what a differential test may rely on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.types import ElicitResult

HERE = Path(__file__).parent
HTTP_FLAGS = [["--json"], [], ["--resumable"], ["--sse"]]


@pytest.fixture(params=HTTP_FLAGS, ids=lambda flags: "".join(flags) or "streams")
def endpoint(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Start the HTTP peer in each of its modes; give what the SDK's client connects to."""
    command = [sys.executable, str(HERE / "sdk_http.py"), *request.param]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin
    assert process.stdout
    url = process.stdout.readline().split()[1]
    yield sse_client(url) if "--sse" in request.param else url
    process.stdin.close()
    assert process.wait() == 0
    process.stdout.close()


async def drive(endpoint: Any, mode: str) -> Any:
    """Use a little of everything."""

    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": "Ada"})

    async with Client(endpoint, mode=mode, elicitation_callback=answer) as client:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(client.call_tool, "meet", {"count": 3})
            results = [
                await client.call_tool("echo", {"text": "é"}),
                await client.call_tool("fail", {"message": "no"}),
                await client.call_tool("interrupted_stream", {}),
            ]
            total = await client.call_tool("add", {"a": 1, "b": 2})
            colour = await client.read_resource("peer://colours/red")
        return (
            [result.content[0].text for result in results],  # type: ignore[union-attr]
            total.structured_content,
            colour.contents[0].text,  # type: ignore[union-attr]
            (await client.list_tools()).tools[0].name,
        )


EXPECTED = (["é", "Error executing tool fail: no", "resumed"], {"result": 3.0}, "A fine red.", "echo")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_stdio_peer_answers_in_both_eras(mode: str, tmp_path: Path) -> None:
    parameters = StdioServerParameters(command=sys.executable, args=[str(HERE / "sdk_stdio.py")])
    with (tmp_path / "stderr").open("w") as stderr:
        assert await drive(stdio_client(parameters, errlog=stderr), mode) == EXPECTED


async def test_the_http_peer_answers_in_all_its_modes(endpoint: Any) -> None:
    # The SSE transport has no other era, and its connection serves once.
    for mode in ("legacy", "auto") if isinstance(endpoint, str) else ("legacy",):
        assert await drive(endpoint, mode) == EXPECTED


async def test_the_fast_peer_answers_in_both_eras(tmp_path: Path) -> None:
    parameters = StdioServerParameters(command=sys.executable, args=[str(HERE / "fast_stdio.py")])
    for mode in ("legacy", "auto"):
        with (tmp_path / "stderr").open("w") as stderr:
            async with Client(stdio_client(parameters, errlog=stderr), mode=mode) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["echo", "pid"]
                result = await client.call_tool("echo", {"text": "é"})
                assert result.content[0].text == "é"  # type: ignore[union-attr]
