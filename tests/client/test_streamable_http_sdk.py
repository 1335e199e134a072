"""The SDK's session on our HTTP dispatcher, against the SDK's server: both eras, both kinds of answers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.session import ClientSession
from mcp.client.subscriptions import ToolsListChanged, listen

from mcp_client_app.client.http import HttpClient
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.client.redaction import Redactor
from mcp_client_app.client.streamable_http import HttpDispatcher
from mcp_client_app.datatypes import ServerSpec, Transport
from tests import servers

pytestmark = pytest.mark.anyio

PEER = Path(servers.__file__).parent / "sdk_http.py"
ERAS = ["legacy", "modern"]


@pytest.fixture(scope="module", params=["--json", "--stateless", "--resumable"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(PEER), request.param],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    yield process.stdout.readline().split()[1]
    process.stdin.close()
    assert process.wait(20) == 0
    process.stdout.close()


def served(*modes: str) -> pytest.MarkDecorator:
    """Run a test against some of the server's modes only."""
    return pytest.mark.parametrize("url", modes, indirect=True)


@asynccontextmanager
async def session_for(url: str, era: str, **callbacks: Any) -> AsyncIterator[ClientSession]:
    spec = ServerSpec(name="docs", transport=Transport.STREAMABLE_HTTP, url=url)
    dispatcher = HttpDispatcher(
        spec,
        HttpClient(url, server="docs"),
        repairer=Repairer("docs", spec.strict),
        redactor=Redactor(spec),
        max_frame_size=64_000_000,
    )
    dispatcher.repairer.modern = era == "modern"
    try:
        async with asyncio.timeout(60), ClientSession(dispatcher=dispatcher, **callbacks) as session:
            if era == "legacy":
                await session.initialize()
            else:
                session.adopt(types.DiscoverResult.model_validate(await session.send_discover("2026-07-28")))
            yield session
    finally:
        await dispatcher.aclose(5)


def text_of(result: Any) -> str:
    return str(result.content[0].text)


@pytest.mark.parametrize("era", ERAS)
async def test_tools_are_listed_and_called(url: str, era: str) -> None:
    async with session_for(url, era) as session:
        names = [tool.name for tool in (await session.list_tools()).tools]
        echoed = await session.call_tool("echo", {"text": "é\u2028🦊"})
        added = await session.call_tool("add", {"a": 1, "b": 2})
        failed = await session.call_tool("fail", {"message": "no"})
        colour = await session.read_resource("peer://colours/red")

    assert "echo" in names
    assert text_of(echoed) == "é\u2028🦊"
    assert added.structured_content == {"result": 3.0}
    assert failed.is_error
    assert colour.contents[0].text == "A fine red."  # type: ignore[union-attr]


@pytest.mark.parametrize("era", ERAS)
async def test_a_large_result_arrives_whole(url: str, era: str) -> None:
    async with session_for(url, era) as session:
        result = await session.call_tool("big", {"size": 3_000_000})

    assert text_of(result) == "x" * 3_000_000


@pytest.mark.parametrize("era", ERAS)
async def test_many_calls_share_the_connection(url: str, era: str) -> None:
    async with session_for(url, era) as session:
        calls = [session.call_tool("meet", {"count": 20}) for _ in range(20)]
        results = await asyncio.gather(*calls)

    assert [text_of(result) for result in results] == ["met 20"] * 20


@served("--stateless", "--resumable")
@pytest.mark.parametrize("era", ERAS)
async def test_progress_is_reported_where_answers_are_streams(url: str, era: str) -> None:
    steps: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with session_for(url, era) as session:
        await session.call_tool("slow", {"steps": 3}, progress_callback=on_progress)

    assert sorted(steps) == [1, 2, 3]


# Left out: without a session the legacy server cannot know which call is meant, and the SDK's modern server
# does not watch a connection on which it owes JSON.
@pytest.mark.parametrize(
    ("url", "era"),
    [("--json", "legacy"), ("--resumable", "legacy"), ("--resumable", "modern"), ("--stateless", "modern")],
    indirect=["url"],
)
async def test_cancelling_a_call_cancels_it_at_the_server(url: str, era: str) -> None:
    label = f"{url} {era}"
    async with session_for(url, era) as session:
        cancelled: list[str] = []
        while label not in cancelled:
            hanging = asyncio.create_task(session.call_tool("hang", {"label": label}))
            # Gives the first call the time to reach the server; if it did not, the next round will do.
            await session.call_tool("echo", {"text": "x"})
            hanging.cancel()
            await asyncio.gather(hanging, return_exceptions=True)
            cancelled = (await session.call_tool("cancellations", {})).structured_content["result"]


@served("--resumable")
async def test_a_call_whose_stream_the_server_drops_is_resumed(url: str) -> None:
    async with session_for(url, "legacy") as session:
        assert text_of(await session.call_tool("interrupted_stream", {})) == "resumed"


@served("--resumable")
async def test_a_legacy_server_asks_back_in_the_middle_of_a_call(url: str) -> None:
    async def answer(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async with session_for(url, "legacy", elicitation_callback=answer) as session:
        assert text_of(await session.call_tool("greet", {})) == "Hello Ada"


@served("--json", "--resumable")
async def test_a_legacy_server_says_that_its_tools_changed(url: str) -> None:
    changed = asyncio.Event()

    async def handle(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    async with session_for(url, "legacy", message_handler=handle) as session:
        while not changed.is_set():
            # The stream of the server's own messages opens behind the scenes: it may miss the first.
            await session.call_tool("grow", {})


async def test_a_modern_server_says_so_to_those_who_listen(url: str) -> None:
    async with session_for(url, "modern") as session:
        async with listen(session, tools_list_changed=True) as subscription:
            await session.call_tool("grow", {})
            async for event in subscription:
                assert isinstance(event, ToolsListChanged)
                break
        assert text_of(await session.call_tool("echo", {"text": "on"})) == "on"
