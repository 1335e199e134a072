"""A stop holds although somebody waits for the old link to be closed, to connect anew after that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from mcp_client_app.client.connection import Connection
from mcp_client_app.client.link import Handshake, Link, LinkContext, OnProgress
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.client.pool import ConnectionPool
from mcp_client_app.client.sources import StaticSource
from mcp_client_app.datatypes import SHARED, ConnectionState, ServerSpec, Transport
from mcp_client_app.exceptions import ConnectionLostError, NotConnectedError
from tests.client.conftest import MakeManager
from tests.client.peers import PATIENCE

Use = Callable[[Connection], Coroutine[Any, Any, Link]]


class LingeringLink(Link):
    """A link that takes its time to close."""

    kind = "lingering"
    made: ClassVar[list[LingeringLink]] = []
    opening: Any = None
    """What happens when it is opened."""

    def __init__(self, context: LinkContext) -> None:
        super().__init__(context)
        self.closing, self.gate = asyncio.Event(), asyncio.Event()
        self.was_closed = False
        self.made.append(self)

    async def open(self) -> None:
        if self.opening is not None:
            await self.opening()
        self.handshake = Handshake(protocol_version="2025-11-25")

    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        return {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Nobody listens."""

    async def close(self) -> None:
        self.closing.set()
        if self is self.made[0]:
            await self.gate.wait()
        self.was_closed = True
        self._down(None)


SPEC = ServerSpec(
    name="srv",
    transport=Transport.STREAMABLE_HTTP,
    url="http://nowhere.invalid/old",
    link=f"{__name__}:LingeringLink",
)


@pytest.fixture
def manager(manage: MakeManager, monkeypatch: pytest.MonkeyPatch) -> MCPClientManager:
    """Return a manager that has connected one server with such a link."""
    monkeypatch.setattr(LingeringLink, "made", [])
    manager = manage(SPEC)
    manager.connect("srv")
    return manager


async def lost_and_stopped(
    pool: ConnectionPool, use: Use, stop: Callable[[ConnectionPool, Connection], Any]
) -> tuple[Connection, BaseException | None]:
    """Lose the link, use the connection, and stop it before the link is closed; return why the use failed."""
    connection, (link,) = pool._connections["srv", SHARED], LingeringLink.made
    link.give_up(ConnectionLostError(server="srv"))
    async with asyncio.timeout(PATIENCE):
        await link.closing.wait()
    waiting = asyncio.ensure_future(use(connection))
    await asyncio.sleep(0)
    stopping = stop(pool, connection)
    async with asyncio.timeout(PATIENCE):
        await connection._stop.wait()
        link.gate.set()
        await asyncio.wait({waiting, stopping})
    return connection, waiting.exception()


@pytest.mark.parametrize("use", [Connection.ready, Connection.connect])
def test_a_connection_that_is_stopped_while_its_link_is_closing_stays_so(manager: MCPClientManager, use: Use):
    connection, error = manager._run(
        "stop",
        lambda pool: lost_and_stopped(pool, use, lambda _, each: asyncio.ensure_future(each.stop())),
    )

    assert isinstance(error, NotConnectedError)
    assert connection.standing.state is ConnectionState.STOPPED
    assert len(LingeringLink.made) == 1


@pytest.mark.parametrize("use", [Connection.ready, Connection.connect])
def test_a_connection_that_is_replaced_while_its_link_is_closing_does_not_come_back(
    manager: MCPClientManager, use: Use
):
    """Nobody would close it ever after."""
    connection, error = manager._run(
        "replace", lambda pool: lost_and_stopped(pool, use, lambda pool, _: pool.retire(("srv", SHARED)))
    )

    assert isinstance(error, NotConnectedError)
    assert connection.retired
    assert connection.standing.state is ConnectionState.STOPPED
    assert len(LingeringLink.made) == 1


def test_who_waited_for_it_is_served_by_its_successor(manager: MCPClientManager):
    source = manager.source
    assert isinstance(source, StaticSource)

    def replaced(pool: ConnectionPool, _: Connection) -> Any:
        source.replace([replace(SPEC, url="http://nowhere.invalid/new")])
        pool.apply(source.current())
        return pool._retiring["srv", SHARED]

    async def connected_again(pool: ConnectionPool) -> None:
        async def use(_: Connection) -> Link:
            return await pool.using("srv", SHARED, Connection.connect)

        _, error = await lost_and_stopped(pool, use, replaced)
        assert error is None

    manager._run("replace", connected_again)

    assert [link.context.spec.url for link in LingeringLink.made] == [
        "http://nowhere.invalid/old",
        "http://nowhere.invalid/new",
    ]


def test_a_wish_to_connect_that_comes_after_the_stop_counts(manager: MCPClientManager):
    async def stopped_and_connected(pool: ConnectionPool) -> Connection:
        connection, (link,) = pool._connections["srv", SHARED], LingeringLink.made
        stopping = asyncio.ensure_future(connection.stop())
        await asyncio.sleep(0)
        connecting = asyncio.ensure_future(connection.connect())
        await asyncio.sleep(0)
        link.gate.set()
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait({stopping, connecting})
        return connection

    connection = manager._run("connect", stopped_and_connected)

    assert connection.standing.state is ConnectionState.READY
    assert len(LingeringLink.made) == 2


def test_a_stop_that_is_taken_back_while_the_link_is_closing_leaves_nothing(manager: MCPClientManager):
    source = manager.source
    assert isinstance(source, StaticSource)

    async def stopped_and_unstopped(pool: ConnectionPool) -> Connection:
        connection, (link,) = pool._connections["srv", SHARED], LingeringLink.made
        source.replace([SPEC], stopped=["srv"])
        pool.apply(source.current())
        (stopping,) = (task for task in asyncio.all_tasks() if task.get_name() == "Stopping a connection")
        async with asyncio.timeout(PATIENCE):
            await link.closing.wait()
            source.replace([SPEC])
            pool.apply(source.current())
            link.gate.set()
            await stopping
        return connection

    connection = manager._run("stop", stopped_and_unstopped)

    assert connection.standing.state is ConnectionState.IDLE
    assert manager.refresh("srv").is_ready


def test_a_stop_at_the_moment_at_which_connecting_fails_does_not_cut_the_closing_short(
    manager: MCPClientManager, monkeypatch: pytest.MonkeyPatch
):
    manager.connect("srv")

    async def stopped_as_it_fails(pool: ConnectionPool) -> None:
        connection = pool.connection("srv")

        async def opening() -> None:
            await connection._stop.wait()
            await asyncio.sleep(0)  # by now the stop is noticed, and about to be told
            raise ConnectionLostError(server="srv")

        LingeringLink.made[0].gate.set()
        await connection.stop()
        LingeringLink.made.clear()
        monkeypatch.setattr(LingeringLink, "opening", staticmethod(opening))
        connecting = asyncio.ensure_future(connection.connect())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        (link,) = LingeringLink.made
        stopping = asyncio.ensure_future(connection.stop())
        async with asyncio.timeout(PATIENCE):
            await link.closing.wait()
            await asyncio.sleep(0)
            link.gate.set()
            await asyncio.wait({connecting, stopping})
        assert isinstance(connecting.exception(), ConnectionLostError)

    manager._run("stop", stopped_as_it_fails)

    assert [link.was_closed for link in LingeringLink.made] == [True]


@pytest.mark.parametrize(
    ("auto_reconnect", "state"), [(True, ConnectionState.LOST), (False, ConnectionState.FAILED)]
)
def test_a_broken_link_counts_as_lost_at_once_not_only_when_it_is_closed(
    manage: MakeManager, monkeypatch: pytest.MonkeyPatch, auto_reconnect: bool, state: ConnectionState
):
    monkeypatch.setattr(LingeringLink, "made", [])
    manager = manage(replace(SPEC, auto_reconnect=auto_reconnect))
    manager.connect("srv")
    [link] = LingeringLink.made

    async def broken(_: ConnectionPool) -> None:
        link.give_up(ConnectionLostError("The wire was cut.", server="srv"))
        async with asyncio.timeout(PATIENCE):
            await link.closing.wait()

    manager._run("break", broken)

    status = manager.status("srv")
    assert (status.state, status.code, status.reason) == (state, "connection_lost", "The wire was cut.")
    assert manager.connected_servers() == []

    async def let_go(_: ConnectionPool) -> None:
        link.gate.set()

    manager._run("let go", let_go)
    status = manager.connect("srv")
    assert (status.is_ready, status.reason, status.code) == (True, "", "")


def test_a_link_that_is_closed_on_purpose_does_not_count_as_lost(manager: MCPClientManager):
    async def stopping_and_broken(pool: ConnectionPool) -> tuple[Any, Any]:
        connection, (link,) = pool._connections["srv", SHARED], LingeringLink.made
        stopping = asyncio.ensure_future(connection.stop("enough"))
        async with asyncio.timeout(PATIENCE):
            await link.closing.wait()
            link.give_up(ConnectionLostError(server="srv"))
            seen = connection.state, connection.loss
            link.gate.set()
            await stopping
        return seen

    assert manager._run("stop", stopping_and_broken) == (ConnectionState.READY, None)
    assert manager.status("srv").state is ConnectionState.STOPPED
