"""What may go wrong within a connection: links that fall apart, breakers, readings that nobody asked for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest

from mcp_client_app.client.keeper import CatalogueKeeper
from mcp_client_app.client.link import Handshake, Link, LinkContext, OnProgress
from mcp_client_app.datatypes import ConnectionState, ManagerOptions, ServerSpec, Transport
from mcp_client_app.exceptions import (
    ConnectionLostError,
    ProtocolError,
    RequestTimeoutError,
    ServerConnectionError,
    ServerCrashedError,
    ServerUnavailableError,
)
from tests import leftovers
from tests.client.conftest import MakeManager, MakePeer
from tests.client.linking import LINKS, make
from tests.client.peers import FAULTY, PATIENCE, Recorder, stdio_spec

# A link that falls apart ---------------------------------------------------------------

TOOLS = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}


class FragileLink(Link):
    """A link with a task group in it, as the SDK's session is one: a failing task cancels the owner."""

    kind = "fragile"
    made: ClassVar[list[FragileLink]] = []
    fails_while: ClassVar[str] = ""
    """``open``: it falls apart before it is open, the first time."""
    gate: ClassVar[threading.Event]
    """While it is not set, lists are not answered a second time."""

    def __init__(self, context: LinkContext) -> None:
        super().__init__(context)
        self._stack = contextlib.AsyncExitStack()
        self._break = anyio.Event()
        self.lists = 0
        self.listened = 0
        self.asked = threading.Event()
        self.made.append(self)

    async def open(self) -> None:
        group = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(group.cancel_scope.cancel)
        group.start_soon(self._fail)
        if self.fails_while == "open" and len(self.made) == 1:
            self._break.set()
            await anyio.sleep_forever()
        self.handshake = Handshake(protocol_version="2025-11-25", capabilities={"tools": {}})

    async def _fail(self) -> None:
        await self._break.wait()
        raise ZeroDivisionError

    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        if method == "tools/call":
            return {"content": [{"type": "text", "text": str(len(self.made))}]}
        self.lists += 1
        if self.lists == 2:
            self.asked.set()
            await asyncio.to_thread(self.gate.wait, PATIENCE)
        return TOOLS

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._break.set()

    async def listen(self) -> None:
        self.listened += 1
        if self.listened == 1:
            raise ProtocolError("Unknown.", server="srv", rpc_code=-32601)

    async def close(self) -> None:
        with contextlib.suppress(BaseExceptionGroup):
            await self._stack.aclose()
        self._down(None)


@pytest.fixture(autouse=True)
def _fresh_links() -> None:
    FragileLink.made, FragileLink.fails_while, FragileLink.gate = [], "", threading.Event()


def fragile(name: str = "srv", **fields: Any) -> ServerSpec:
    return ServerSpec(name=name, transport=Transport.STDIO, link=f"{__name__}.FragileLink", **fields)


def test_a_link_that_falls_apart_is_lost_and_not_stopped(manage: MakeManager, recorder: Recorder):
    manager = manage(fragile(), observers=[recorder])
    assert manager.call_tool("srv__t").text == "1"
    assert manager._engine is not None
    manager._engine.thread.call_soon(FragileLink.made[0]._break.set)
    lost = recorder.wait_for_state("srv", ConnectionState.LOST)
    assert "was lost" in lost.reason
    assert manager.call_tool("srv__t").text == "2"
    recorder.wait_for_state("srv", ConnectionState.READY, count=2)
    assert recorder.path("srv") == ["connecting", "ready", "lost", "connecting", "ready"]


def test_a_link_that_falls_apart_while_it_opens_is_a_failed_attempt(manage: MakeManager):
    FragileLink.fails_while = "open"
    manager = manage(fragile())
    with pytest.raises(ConnectionLostError, match="cut short") as caught:
        manager.call_tool("srv__t")
    assert caught.value.details()["outcome"] == "not_sent"
    assert manager.status("srv").state is ConnectionState.BACKING_OFF
    assert manager.connect("srv").is_ready


# Readings that nobody asked for --------------------------------------------------------


def test_a_reading_that_somebody_waits_for_keeps_the_server_from_being_stopped(
    manage: MakeManager, peer: MakePeer, recorder: Recorder, threads: ThreadPoolExecutor
):
    # The other server is the clock: by the time it is stopped, the first would have been, twice over.
    other = peer("other", idle_timeout=1.0)
    manager = manage(fragile(idle_timeout=0.1), other, observers=[recorder])
    manager.connect("srv")
    reading = threads.submit(manager.refresh, "srv")
    assert FragileLink.made[0].asked.wait(PATIENCE)
    manager.connect("other")
    recorder.wait_for_state("other", ConnectionState.IDLE)
    assert manager.status("srv").is_ready
    FragileLink.gate.set()
    assert reading.result(PATIENCE).tools == 1
    recorder.wait_for_state("srv", ConnectionState.IDLE)
    assert recorder.path("srv") == ["connecting", "ready", "idle"]


@pytest.mark.anyio
async def test_what_the_server_says_by_itself_neither_connects_it_nor_counts_as_use():
    link = FragileLink(LinkContext(spec=fragile(), options=ManagerOptions(), redact=None, starts=None))  # type: ignore[arg-type]
    link.handshake = Handshake(protocol_version="2025-11-25", capabilities={"tools": {}})
    live: list[Link | None] = [link]
    told = asyncio.Event()

    async def ready() -> Link:
        raise AssertionError("it was connected")

    keeper = CatalogueKeeper(fragile(), ManagerOptions(), ready, lambda: live[0], told.set)
    keeper.refresh_soon()
    async with asyncio.timeout(PATIENCE):
        await told.wait()
    assert link.lists == 1
    live[0] = None
    keeper.refresh_soon()
    assert keeper._task is not None
    async with asyncio.timeout(PATIENCE):
        await keeper._task
    assert link.lists == 1


@pytest.mark.anyio
async def test_who_wants_announced_lists_at_once_shares_one_reading_and_makes_the_planned_one_needless():
    link = FragileLink(LinkContext(spec=fragile(), options=ManagerOptions(), redact=None, starts=None))  # type: ignore[arg-type]
    link.handshake = Handshake(protocol_version="2025-11-25", capabilities={"tools": {}})

    async def ready() -> Link:
        raise AssertionError("it was connected")

    keeper = CatalogueKeeper(fragile(), ManagerOptions(), ready, lambda: link, lambda: None)
    await keeper.catch_up()
    assert (keeper.is_behind, link.lists) == (False, 0)
    keeper.refresh_soon()
    planned = keeper._task
    assert planned is not None
    assert keeper.is_behind
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(keeper.catch_up(), keeper.catch_up())
        assert (keeper.is_behind, link.lists) == (False, 1)
        assert keeper.catalogue is not None
        await planned
    assert link.lists == 1


@pytest.mark.anyio
async def test_news_that_come_during_a_reading_are_read_too():
    link = FragileLink(LinkContext(spec=fragile(), options=ManagerOptions(), redact=None, starts=None))  # type: ignore[arg-type]
    link.handshake = Handshake(protocol_version="2025-11-25", capabilities={"tools": {}})
    keeper = CatalogueKeeper(fragile(), ManagerOptions(), asyncio.Event().wait, lambda: link, lambda: None)  # type: ignore[arg-type]
    link.lists = 1  # so that the next reading waits for the gate
    keeper.refresh_soon()
    async with asyncio.timeout(PATIENCE):
        waiting = asyncio.ensure_future(keeper.catch_up())
        await asyncio.to_thread(link.asked.wait, PATIENCE)
        keeper.refresh_soon()
        FragileLink.gate.set()
        await waiting
    assert (keeper.is_behind, link.lists) == (False, 3)
    keeper.cancel()


@pytest.mark.anyio
async def test_a_server_that_knows_no_subscriptions_is_not_asked_for_one_again():
    link = FragileLink(LinkContext(spec=fragile(), options=ManagerOptions(), redact=None, starts=None))  # type: ignore[arg-type]

    async def ready() -> Link:
        return link

    keeper = CatalogueKeeper(fragile(), ManagerOptions(), ready, lambda: link, lambda: None)
    async with asyncio.timeout(PATIENCE):
        await keeper.listen(link)
    assert link.listened == 1
    assert link.lists == 0


@pytest.mark.parametrize("kind", LINKS)
def test_a_modern_server_without_subscriptions_is_as_good_as_any(
    manage: MakeManager, peer: MakePeer, kind: str
):
    server = peer("srv", "no_listen", modern=True)
    manager = manage(server, default_link=kind)
    manager.connect("srv")
    server.wait_for("subscriptions/listen")
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"
    assert manager.status("srv").is_ready


# The breaker ---------------------------------------------------------------------------


def test_a_breaker_holds_for_every_principal_until_somebody_connects_explicitly(
    manage: MakeManager, peer: MakePeer
):
    server = peer("srv", "exit_at_start=3", until=True, mode="legacy")
    manager = manage(server)
    with pytest.raises(ServerCrashedError):
        manager.call_tool("srv__echo", {"text": "hi"})
    with pytest.raises(ServerUnavailableError, match="exited with code 3"):
        manager.call_tool("srv__echo", {"text": "hi"}, principal="somebody else")
    assert len(server.pids) == 1
    (server.directory / "until").touch()
    with manager.connect_server("srv") as connection:
        assert connection.call_tool("echo", {"text": "scoped"}).text == "scoped"
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"


# Handles -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LINKS)
def test_a_handle_and_its_lists_are_good_for_the_next_process_too(
    manage: MakeManager, peer: MakePeer, recorder: Recorder, kind: str
):
    # P12. The first process offers three tools, the next one all.
    server = peer("srv", "three_pages", once=True)
    manager = manage(server, observers=[recorder], default_link=kind)
    manager.connect("srv")
    handle = manager.get_client("srv")
    assert handle is not None
    assert len(handle.tools) == 3
    os.kill(server.pids[0], signal.SIGKILL)
    recorder.wait_for_state("srv", ConnectionState.LOST)
    assert len(handle.tools) == 3  # as last known
    assert handle.call_tool("echo", {"text": "hi"}).text == "hi"
    assert len(handle.tools) == 13
    assert (handle.status.connects, handle.status.is_ready) == (2, True)


@pytest.mark.parametrize("kind", LINKS)
def test_a_scoped_connection_goes_on_with_a_new_process_after_a_death_in_mid_call(
    manage: MakeManager, peer: MakePeer, kind: str
):
    server = peer("srv", "die_on_call=7", once=True)
    manager = manage(server, default_link=kind)
    with manager.connect_server("srv") as connection:
        with pytest.raises(ServerConnectionError) as caught:
            connection.call_tool("echo", {"text": "hi"})
        assert caught.value.details()["outcome"] == "unknown"
        assert connection.call_tool("echo", {"text": "again"}).text == "again"
        assert len(connection.tools) == 13
    assert leftovers.survivors(set(server.pids)) == []
    assert manager.status("srv").state is ConnectionState.IDLE  # the shared connection had no part in it


# Dying at the start --------------------------------------------------------------------


@pytest.mark.parametrize("kind", LINKS)
def test_a_server_that_dies_before_it_has_read_anything_is_started_once(
    manage: MakeManager, peer: MakePeer, kind: str
):
    # P30 the other way round: only one that may have died of the probe is given a second chance.
    server = peer("srv", "exit_at_start=3")
    manager = manage(server, default_link=kind)
    with pytest.raises(ServerCrashedError, match="exited with code 3"):
        manager.connect("srv")
    assert len(server.pids) == 1


@pytest.mark.parametrize("kind", LINKS)
def test_a_server_that_dies_of_the_probe_is_started_once_more(manage: MakeManager, peer: MakePeer, kind: str):
    # P30
    server = peer("srv", "exit_unless_initialize_first")
    manager = manage(server, default_link=kind)
    assert manager.call_tool("srv__echo", {"text": "hi"}).text == "hi"
    assert len(server.pids) == 2


@pytest.mark.parametrize("kind", LINKS)
def test_a_slow_start_is_waited_for_and_delays_nobody_else(
    manage: MakeManager,
    peer: MakePeer,
    recorder: Recorder,
    threads: ThreadPoolExecutor,
    tmp_path: Path,
    kind: str,
):
    # P25: each has its own limit; what the slow one is waiting for is told meanwhile.
    gate = tmp_path / "gate"
    slow = peer("slow", f"slow_start={gate}", connect_timeout=PATIENCE)
    hasty = peer("hasty", f"slow_start={gate}", connect_timeout=0.3)
    quick = peer("quick")
    manager = manage(slow, hasty, quick, default_link=kind, observers=[recorder])
    waiting = threads.submit(manager.call_tool, "slow__echo", {"text": "at last"})
    recorder.wait_for_state("slow", ConnectionState.CONNECTING)
    assert manager.call_tool("quick__echo", {"text": "hi"}).text == "hi"
    with pytest.raises(RequestTimeoutError, match=r"'hasty' was not ready within 0\.3 s"):
        manager.connect("hasty")
    assert manager.status("slow").state is ConnectionState.CONNECTING
    assert leftovers.survivors(set(hasty.pids)) == []
    gate.touch()
    assert waiting.result(PATIENCE).text == "at last"
    assert len(slow.pids) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("kind", LINKS)
async def test_a_link_that_is_not_open_refuses_and_has_sent_nothing(kind: str):
    # P28
    link = make(kind, stdio_spec("srv", FAULTY))
    with pytest.raises(ConnectionLostError, match="is closed") as caught:
        await link.request("tools/list", {})
    assert caught.value.details()["outcome"] == "not_sent"
    await link.close()


# The end of processes, through both links -----------------------------------------------


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("end", ["idle", "disconnect", "close", "lost"])
def test_nothing_of_a_stubborn_group_survives_whatever_ends_the_connection(
    manage: MakeManager, peer: MakePeer, recorder: Recorder, tmp_path: Path, kind: str, end: str
):
    # P13, P14: neither the end of the input nor SIGTERM ends the leader, and it has a child.
    child = tmp_path / "child"
    server = peer(
        "srv",
        "ignore_eof_and_term",
        f"grandchild={child}",
        shutdown_timeout=0.5,
        idle_timeout=0.2 if end == "idle" else 0,
    )
    manager = manage(server, default_link=kind, observers=[recorder])
    manager.connect("srv")
    group = {*server.pids, int(child.read_text())}
    match end:
        case "idle":
            recorder.wait_for_state("srv", ConnectionState.IDLE)
        case "disconnect":
            manager.disconnect("srv")
        case "close":
            manager.close()
        case "lost":
            os.kill(server.pids[0], signal.SIGKILL)
            recorder.wait_for_state("srv", ConnectionState.LOST)
    assert leftovers.survivors(group) == []
    if end != "close":
        status = manager.connect("srv")
        assert status.is_ready
        assert status.pid == server.pids[1]
