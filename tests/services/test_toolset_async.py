"""The async twins of a toolset: the same, on any loop."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest
from asgiref.sync import sync_to_async

from mcp_client_app import services
from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.exceptions import (
    InvalidArgumentsError,
    MCPClientError,
    NotConnectedError,
    ToolBlockedError,
)
from mcp_client_app.models import AgentServer, ToolCall
from mcp_client_app.services.toolset import Toolset
from tests.services.toolsets import agent, calls_seen, logging_peer
from tests.stored import close_connections, peer_entry, stored

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mcp_manager")]


@pytest.fixture(autouse=True)
async def _close(anyio_backend):
    yield
    await close_connections()


def test_every_verb_has_a_twin_that_takes_the_same_parameters():
    verbs = [
        name
        for name, value in inspect.getmembers(Toolset, inspect.isfunction)
        if not name.startswith("_") and inspect.iscoroutinefunction(getattr(Toolset, f"a{name}", None))
    ]
    assert len(verbs) == 12
    for name in verbs:
        ours, theirs = (inspect.signature(getattr(Toolset, each)) for each in (name, f"a{name}"))
        assert ours == theirs
    assert inspect.signature(services.get_toolset) == inspect.signature(services.aget_toolset)


@pytest.mark.anyio
async def test_the_verbs_work_on_a_loop(tmp_path, make_user):
    user = await sync_to_async(make_user)("run_agentconfig", "view_serverconfig")
    server = await sync_to_async(logging_peer)(tmp_path)
    row = await sync_to_async(agent)("clerk", server, allowed_tools=["echo", "slow", "pid"])
    toolset = await services.aget_toolset("clerk", user)

    assert (await toolset.aselection()).names == ("peer__echo", "peer__pid")
    assert [tool.name for tool in await toolset.alist_tools()] == ["echo", "pid"]
    assert len((await toolset.afor_openai()).tools) == 2
    assert len((await toolset.afor_anthropic()).tools) == 2
    assert len((await toolset.afor_mcp()).tools) == 2
    outcome = await toolset.acall_tool("peer__echo", {"text": "hello"})
    assert (outcome.text, outcome.name) == ("hello", "peer__echo")
    assert (await toolset.aanswer("nope")).is_error
    assert [status.state for status in await toolset.astatus()] == [ConnectionState.READY]
    with pytest.raises(InvalidArgumentsError):
        await toolset.acall_tool("echo", {})
    await sync_to_async(AgentServer.objects.filter(agent=row).delete)()
    await sync_to_async(row.save)()
    assert (await toolset.aselection()).names == ()

    told = await sync_to_async(lambda: list(ToolCall.objects.order_by("pk").values_list("code", "agent")))()
    assert told == [("ok", "clerk"), ("unknown_tool", "clerk"), ("invalid_arguments", "clerk")]
    assert len(calls_seen(tmp_path)) == 1


@pytest.mark.anyio
async def test_own_servers_live_in_an_async_block():
    async with Toolset([{"name": "files", **peer_entry()}]) as toolset:
        await toolset.aadd_server("more", peer_entry())
        assert [status.is_ready for status in await toolset.astatus()] == [True, True]
        assert (await toolset.acall_tool("more__echo", {"text": "x"})).text == "x"
        await toolset.aremove_server("more")
        assert toolset.server_names == ("files",)
    with pytest.raises(NotConnectedError):
        await toolset.acall_tool("files__pid")


@pytest.mark.anyio
async def test_parallel_calls_come_to_their_own_results(tmp_path):
    await sync_to_async(logging_peer)(tmp_path)
    toolset = Toolset(["peer"])

    outcomes = await asyncio.gather(
        toolset.aanswer("echo", {"text": "one"}),
        toolset.aanswer("fail", {"message": "two"}),
        toolset.aanswer("echo", "{bad"),
        *(toolset.aanswer("meet", {"count": 2}) for _ in range(2)),
    )

    assert [outcome.is_error for outcome in outcomes] == [False, True, True, False, False]  # L08
    assert [outcome.text for outcome in outcomes[3:]] == ["met 2", "met 2"]


@pytest.mark.anyio
async def test_the_journal_is_told_in_a_thread_also_of_a_cancelled_call(tmp_path):
    await sync_to_async(logging_peer)(tmp_path)
    toolset = Toolset(["peer"])
    loop_thread, told, begun = threading.get_ident(), [], asyncio.Event()
    loop = asyncio.get_running_loop()

    class Journal:
        def begin(self, call, *, is_safe):
            told.append(("begin", threading.get_ident() == loop_thread))
            loop.call_soon_threadsafe(begun.set)

        def end(self, call, result, error):
            told.append((type(error).__name__, threading.get_ident() == loop_thread))

    task = asyncio.create_task(toolset.acall_tool("hang", journal=Journal()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert told == [("begin", False), ("CancelledError", False)]
    codes = await sync_to_async(lambda: list(ToolCall.objects.values_list("code", flat=True)))()
    assert codes == ["cancelled"]


@pytest.mark.anyio
async def test_a_hanging_server_costs_only_its_own_calls():
    await sync_to_async(stored)("peer")
    await sync_to_async(stored)("mute", "--scenario", "mute", connect_timeout=0)
    toolset = Toolset(["peer", "mute"])
    await services.aconnect("peer")

    answer = await toolset.aanswer("mute__echo", {"text": "x"}, timeout=0.1)
    assert answer.is_error
    assert (await toolset.acall_tool("peer__echo", {"text": "x"})).text == "x"


@pytest.mark.anyio
async def test_what_is_refused_is_refused_on_a_loop_too(tmp_path):
    await sync_to_async(logging_peer)(tmp_path)
    toolset = Toolset(["peer"], blocked_tools=["write"], approval="deny")
    for name in ("write", " PEER__WRITE", "echo"):
        with pytest.raises(ToolBlockedError):
            await toolset.acall_tool(name, {"text": "x", "path": "/nowhere"})
    with pytest.raises(MCPClientError):
        await toolset.acall_tool("nope")
    assert calls_seen(tmp_path) == []
