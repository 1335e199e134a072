"""A link that has ended is held by nothing: no task that was cancelled, and no failure that is remembered."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from mcp_client_app.client.exchange import Exchange, current_exchange, recorded
from mcp_client_app.client.keeper import CatalogueKeeper
from mcp_client_app.client.link import Handshake, Link, OnProgress
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.datatypes import SHARED, ManagerOptions, ProtocolMode, ServerSpec, Transport
from mcp_client_app.exceptions import ConnectionLostError, MCPClientError
from tests.client.conftest import MakeHttpPeer, MakeManager
from tests.client.linking import LINKS
from tests.client.peers import PATIENCE, Recorder

TOOLS = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}


class ReadingLink(Link):
    """A link that announces a change of its lists while they are read again, and may not answer."""

    kind = "reading"
    opened = 0
    answers: ClassVar[bool] = False
    """Whether the first link answers when its lists are read for the second time."""
    asked: ClassVar[threading.Event]

    async def open(self) -> None:
        type(self).opened += 1
        self.lists = 0
        self.handshake = Handshake(protocol_version="2025-11-25", capabilities={"tools": {}})

    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        self.lists += 1
        if self.lists > 1:
            self.changed()
            self.asked.set()
            if not self.answers:
                await asyncio.Event().wait()
        return TOOLS

    def changed(self) -> None:
        """Say that the lists have changed."""
        self.context.on_notification("notifications/tools/list_changed", {})

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Nobody listens."""

    async def close(self) -> None:
        self._down(None)


@pytest.fixture
def manager(manage: MakeManager, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> MCPClientManager:
    """Return a manager of one server with such a link."""
    monkeypatch.setattr(ReadingLink, "asked", threading.Event(), raising=False)
    spec = ServerSpec(
        name="srv",
        transport=Transport.STREAMABLE_HTTP,
        url="http://nowhere.invalid",
        link=f"{__name__}:ReadingLink",
    )
    return manage(spec, observers=[recorder])


def live(manager: MCPClientManager) -> ReadingLink:
    """Return the link that is in use."""
    engine = manager._engine
    assert engine is not None
    link = engine.pool._connections["srv", SHARED].link
    assert isinstance(link, ReadingLink)
    return link


def announce(manager: MCPClientManager) -> None:
    """Have the server say that its lists have changed."""
    engine = manager._engine
    assert engine is not None
    engine.thread.call_soon(live(manager).changed)


def disconnect(manager: MCPClientManager) -> None:
    manager.disconnect("srv")


def lose(manager: MCPClientManager) -> None:
    engine = manager._engine
    assert engine is not None
    link = live(manager)
    engine.thread.call_soon(lambda: link.give_up(ConnectionLostError(server="srv")))


@pytest.mark.parametrize("answers", [False, True], ids=["while it is read", "before it is read again"])
@pytest.mark.parametrize("end", [disconnect, lose])
def test_a_reading_that_was_cut_short_holds_no_link(
    manager: MCPClientManager, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, end: Any, answers: bool
):
    monkeypatch.setattr(ReadingLink, "answers", answers)
    manager.connect("srv")
    link = weakref.ref(live(manager))
    announce(manager)
    assert ReadingLink.asked.wait(PATIENCE)
    if answers:
        recorder.wait_for(lambda: len(recorder.catalogues) > 1)

    end(manager)
    manager.connect("srv")
    gc.collect()

    assert link() is None


@pytest.mark.anyio
async def test_a_reading_holds_nothing_of_the_call_that_brought_the_news():
    found: list[Exchange | None] = []
    done = asyncio.Event()

    def live() -> None:
        found.append(current_exchange())
        done.set()

    spec = ServerSpec(name="srv", transport=Transport.STREAMABLE_HTTP, url="http://nowhere.invalid")
    keeper = CatalogueKeeper(spec, ManagerOptions(), asyncio.Event().wait, live, done.set)  # type: ignore[arg-type]
    with recorded(Exchange()):
        keeper.refresh_soon()
    async with asyncio.timeout(PATIENCE):
        await done.wait()

    assert found == [None]


# Failures ----------------------------------------------------------------------------


def behind(error: BaseException) -> list[BaseException]:
    """Return an exception and all that it leads to, by whatever way."""
    found: dict[int, Any] = {}
    looked_at: list[Any] = [error]
    while looked_at:
        each = looked_at.pop()
        if id(each) not in found:
            found[id(each)] = each
            inner = gc.get_referents(each)
            looked_at += [part for part in inner if isinstance(part, BaseException | tuple | list | dict)]
    return [each for each in found.values() if isinstance(each, BaseException)]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
def test_a_refusal_that_is_remembered_holds_nothing_of_the_attempt(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, modern: bool
):
    peer = http_peer().start(modern=modern)
    spec = replace(peer.spec, mode=ProtocolMode.MODERN) if modern else peer.spec
    peer.stop()
    manager = manage(spec, default_link=link)
    with pytest.raises(MCPClientError):
        manager.connect("srv")

    engine = manager._engine
    assert engine is not None
    error = engine.pool._connections["srv", SHARED].standing.error
    assert error is not None
    assert {each.__traceback__ for each in behind(error)} == {None}
