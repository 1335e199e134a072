"""What a caller is told of a request is true, and stays so: it ran, it may have run, it was never sent."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer

from mcp_client_app.client import in_process
from mcp_client_app.client.exchange import Exchange, current_exchange, recorded
from mcp_client_app.client.http import HttpClient
from mcp_client_app.client.link import Handshake, Link, OnProgress
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.client.sources import StaticSource
from mcp_client_app.datatypes import SHARED, ServerSpec, Transport
from mcp_client_app.exceptions import (
    ConnectionLostError,
    MCPClientError,
    ProtocolError,
    RequestTimeoutError,
    ServerUnavailableError,
)
from tests.client.conftest import MakeManager, MakePeer
from tests.client.linking import call, http_spec, linked
from tests.client.peers import PATIENCE
from tests.servers.faulty_http import FaultyHttp
from tests.servers.faulty_sse import FaultySse

in_a_loop = pytest.mark.anyio


# What has run has run ------------------------------------------------------------------


def test_a_call_that_has_run_is_answered_although_its_server_is_removed_meanwhile(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor
):
    server = peer("srv")
    manager = manage(server)
    source = manager.source
    assert isinstance(source, StaticSource)
    waiting = threads.submit(manager.call_tool, "srv__wait", {"path": str(server.directory / "go")})
    server.wait_for("tools/call")

    source.replace([])
    assert manager.listing("tools", wait=0).items == ()  # from here on the manager knows no such server
    server.let_go()

    assert waiting.result(PATIENCE).text == "there"


@pytest.mark.parametrize(
    "read",
    [
        lambda manager: manager.read_resource("inside", "slow://it").text,
        lambda manager: manager.get_prompt("inside", "slow").messages[0]["content"]["text"],
    ],
    ids=["resource", "prompt"],
)
def test_a_read_is_answered_although_its_server_is_removed_meanwhile(
    manage: MakeManager, threads: ThreadPoolExecutor, read: Any
):
    server: MCPServer[None] = MCPServer("slow")
    reading, go = threading.Event(), threading.Event()

    @server.resource("slow://it")
    @server.prompt("slow")
    async def slow() -> str:
        reading.set()
        await asyncio.to_thread(go.wait, PATIENCE)
        return "there"

    in_process.registered_servers["slow"] = server
    try:
        manager = manage(ServerSpec(name="inside", transport=Transport.IN_PROCESS, in_process="slow"))
        source = manager.source
        assert isinstance(source, StaticSource)
        waiting = threads.submit(read, manager)
        assert reading.wait(PATIENCE)

        source.replace([])
        assert manager.listing("tools", wait=0).items == ()
        go.set()

        assert waiting.result(PATIENCE) == "there"
    finally:
        go.set()
        del in_process.registered_servers["slow"]


# What may have run is not said to be unsent --------------------------------------------


class BreakingLink(Link):
    """A link that loses what it was sending, as far as it knows before the first byte left."""

    kind = "breaking"
    opened = 0
    second: Any = None
    """What happens when it is opened for the second time."""

    async def open(self) -> None:
        type(self).opened += 1
        if self.opened > 1 and self.second is not None:
            await self.second()
        self.handshake = Handshake(protocol_version="2025-11-25", capabilities={"tools": {}})

    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        if method == "tools/list":
            schema = {"type": "object"}
            hints = {"readOnlyHint": True, "idempotentHint": True}
            return {"tools": [{"name": "read", "inputSchema": schema, "annotations": hints}]}
        if method != "tools/call":
            raise ProtocolError("No such method.", rpc_code=-32601)
        error = ConnectionLostError(server=self.context.spec.name, sent=False)
        exchange = current_exchange()
        assert exchange is not None
        exchange.sent = True  # between the loss and its being told
        self._down(error)
        raise error

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Nobody listens."""

    async def close(self) -> None:
        self._down(None)


@pytest.fixture
def breaking(manage: MakeManager, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a manager of one server with such a link."""

    def make(second: Any = None, **fields: Any) -> Any:
        monkeypatch.setattr(BreakingLink, "opened", 0)
        monkeypatch.setattr(BreakingLink, "second", staticmethod(second) if second else None)
        spec = ServerSpec(
            name="srv", transport=Transport.STREAMABLE_HTTP, url="http://nowhere.invalid", **fields
        )
        return manage(spec, default_link=f"{__name__}:BreakingLink")

    return make


def test_a_request_of_which_a_byte_left_after_the_loss_may_have_run(breaking: Any):
    with pytest.raises(ConnectionLostError) as caught:
        breaking().call_tool("srv__read")

    assert caught.value.details()["outcome"] == "unknown"


def test_a_second_try_that_cannot_be_made_leaves_the_outcome_of_the_first(breaking: Any):
    async def refuse() -> None:
        raise ServerUnavailableError(server="srv")

    with pytest.raises(ConnectionLostError) as caught:
        breaking(refuse, trust_annotations=True).call_tool("srv__read")

    assert caught.value.details()["outcome"] == "unknown"
    assert isinstance(caught.value.__cause__, ServerUnavailableError)


def test_a_second_try_that_takes_too_long_leaves_the_outcome_of_the_first(breaking: Any):
    with pytest.raises(RequestTimeoutError) as caught:
        breaking(asyncio.Event().wait, trust_annotations=True).call_tool("srv__read", timeout=0.3)

    assert caught.value.details()["outcome"] == "unknown"


# Who waits for a connection is served by the next one ----------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda manager: manager.call_tool("echo", {"text": "hi"}, server="srv").text == "hi",
        lambda manager: manager.connect("srv").is_ready,
        lambda manager: manager.refresh("srv").is_ready,
        lambda manager: len(manager.list_tools("srv")) > 0,
        lambda manager: len(manager.list_tools("srv", refresh=True)) > 0,
        lambda manager: len(manager.list_tools()) > 0,
        lambda manager: manager.ping("srv") is None,
    ],
    ids=["call", "connect", "refresh", "list", "list anew", "list all", "ping"],
)
def test_who_waits_for_a_server_that_is_edited_gets_the_new_one(
    manage: MakeManager, peer: MakePeer, threads: ThreadPoolExecutor, use: Any
):
    server = peer("srv", "mute", mode="legacy")
    manager = manage(server)
    source = manager.source
    assert isinstance(source, StaticSource)
    using = threads.submit(use, manager)
    server.wait_for("initialize")

    # More than once: a row may be saved again at once.
    for edited in (peer("second", "mute", mode="legacy"), peer("third", mode="legacy")):
        source.replace([replace(edited.spec, name="srv")])
        manager.follow_soon()
        edited.wait_for("initialize")

    assert using.result(PATIENCE) is True


# What was said to be unsent is not sent afterwards -------------------------------------


@in_a_loop
async def test_a_request_that_was_withdrawn_is_not_sent_any_more():
    exchange = Exchange(withdrawn=True)
    async with FaultyHttp() as peer:
        client = HttpClient(peer.url, server="docs")
        try:
            with pytest.raises(MCPClientError) as caught:
                async with client.request("POST", body=b"{}", exchange=exchange):
                    pass
        finally:
            await client.aclose()

    assert caught.value.details()["outcome"] == "not_sent"
    assert exchange.sent is False
    assert peer.requests == []


@in_a_loop
async def test_the_post_of_a_request_is_given_up_as_soon_as_its_link_is_down():
    async with (
        FaultySse(fault="drop") as peer,
        linked("own", http_spec(peer.url, transport=Transport.SSE)) as link,
    ):
        calling = asyncio.create_task(call(link))
        await peer.seen("tools/call")
        posts = set(link._wire._posts.values())  # type: ignore[attr-defined]
        failure = (await calling)["result"]
        _, pending = await asyncio.wait(posts, timeout=PATIENCE)

    assert pending == set()
    assert (failure[1], failure[3]["outcome"]) == ("connection_lost", "unknown")


@in_a_loop
@pytest.mark.parametrize("transport", [Transport.STREAMABLE_HTTP, Transport.SSE])
async def test_a_request_whose_call_has_ended_is_withdrawn_from_tasks_that_still_hold_it(
    transport: Transport,
):
    exchanges: list[Exchange] = []

    async def cancelled(link: Link) -> None:
        task = asyncio.create_task(_recorded_call(link, exchanges))
        await asyncio.sleep(0)  # one step: it is with the SDK's tasks now, and not on the wire
        task.cancel()
        await asyncio.wait({task})

    async with (
        FaultySse() if transport is Transport.SSE else FaultyHttp() as peer,
        linked("stock", http_spec(peer.url, transport=transport)) as link,
    ):
        await cancelled(link)
        assert (await call(link))["sent"] is True  # by now the first would have been sent

    assert [exchange.withdrawn for exchange in exchanges] == [True]
    assert len(peer.received("tools/call")) == 1


async def _recorded_call(link: Link, exchanges: list[Exchange]) -> None:
    with recorded(Exchange()) as exchange:
        exchanges.append(exchange)
        await link.request("tools/call", {"name": "echo", "arguments": {"text": "hi"}})


# Nothing is kept of what is gone -------------------------------------------------------


@pytest.mark.parametrize("link", ["own", "stock"])
def test_nothing_holds_a_connection_that_was_replaced(manage: MakeManager, peer: MakePeer, link: str):
    manager = manage(peer("srv", link=link))
    source = manager.source
    assert isinstance(source, StaticSource)
    manager.connect("srv")
    engine = manager._engine
    assert engine is not None
    connection = weakref.ref(engine.pool._connections["srv", SHARED])

    source.replace([])
    manager.listing("tools", wait=0)
    manager.release("srv", SHARED)  # waits for its end
    gc.collect()

    assert connection() is None


def remembered(manager: MCPClientManager) -> list[BaseException]:
    """Return the failure that ``srv`` is remembered to have had, and all that lies behind it."""
    engine = manager._engine
    assert engine is not None
    connection = engine.pool._connections["srv", SHARED]
    manager._run("rest", lambda _: connection._rest())
    found: list[BaseException] = []
    failure: BaseException | None = connection.standing.error
    while failure is not None and failure not in found:
        found.append(failure)
        failure = failure.__cause__ or failure.__context__
    return found


def test_a_failure_that_is_remembered_holds_nothing_of_the_attempt(manage: MakeManager, peer: MakePeer):
    manager = manage(peer("srv", "exit_at_start=3"))
    with pytest.raises(MCPClientError):
        manager.connect("srv")

    assert {each.__traceback__ for each in remembered(manager)} == {None}


class RefusedLink(BreakingLink):
    """A link that finds nobody at the other end any more."""

    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        if method == "tools/call":
            raise ServerUnavailableError(server=self.context.spec.name)
        return await super().request(method, params, on_progress=on_progress)


def test_a_failure_that_a_call_has_shown_is_remembered_without_the_call(breaking: Any):
    manager = breaking(link=f"{__name__}:RefusedLink")
    with pytest.raises(ServerUnavailableError) as caught:
        manager.call_tool("srv__read")

    failures = remembered(manager)
    assert caught.value not in failures
    assert {each.__traceback__ for each in failures} == {None}
