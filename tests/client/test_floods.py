"""Servers that send far more than anybody can use: bounded, counted, and no reason to lose what matters."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcp_client_app.client.leniency import Repairer
from mcp_client_app.client.stock_transport import MOST_WAITING, StockTransport
from mcp_client_app.datatypes import ConnectionState
from mcp_client_app.exceptions import ConnectionLostError, RequestTimeoutError
from tests.client.conftest import MakeManager, MakePeer
from tests.client.linking import LINKS
from tests.client.peers import PATIENCE, Recorder
from tests.servers import payloads

ERAS = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
KINDS = pytest.mark.parametrize("kind", LINKS)

RESULT = {"resultType": "complete", "content": [{"type": "text", "text": "hi"}]}
ANSWER = '{"jsonrpc":"2.0","id":<id>,"result":' + json.dumps(RESULT) + "}"


def notice(method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params})


CHANGED = notice("notifications/tools/list_changed")
LOG = notice("notifications/message", level="info", data="x" * 50)


@ERAS
@KINDS
def test_ten_thousand_changes_are_read_a_few_times(
    manage: MakeManager, peer: MakePeer, recorder: Recorder, kind: str, modern: bool
):
    # T27
    server = peer("srv", "as_told", modern=modern)
    manager = manage(server, default_link=kind, observers=[recorder])
    manager.connect("srv")
    assert manager.call_tool("srv__echo", {"lines": [[CHANGED, 10_000], ANSWER]}).text == "hi"
    recorder.wait_for(lambda: len(recorder.catalogues) == 2)
    assert manager.call_tool("srv__echo", {"text": "after"}).text == "after"
    assert server.methods().count("tools/list") <= 3
    assert manager.status("srv").dropped_events == 0


@ERAS
@KINDS
def test_a_change_is_not_lost_among_log_messages(
    manage: MakeManager, peer: MakePeer, recorder: Recorder, kind: str, modern: bool
):
    # T27
    server = peer("srv", "as_told", modern=modern)
    manager = manage(server, default_link=kind, observers=[recorder], queue_size=10)
    manager.connect("srv")
    lines = [[LOG, 3000], CHANGED, [LOG, 3000], ANSWER]
    assert manager.call_tool("srv__echo", {"lines": lines}).text == "hi"
    server.wait_for("tools/list", 2)
    assert len(manager.server_logs("srv")) == 200


def test_of_a_burst_of_log_messages_none_is_lost_that_the_callbacks_have_room_for(
    manage: MakeManager, peer: MakePeer, recorder: Recorder
):
    server = peer("srv", "as_told")
    manager = manage(server, observers=[recorder], queue_size=10_000)
    manager.connect("srv")
    log = notice("notifications/message", level="info", data="<n>")
    manager.call_tool("srv__echo", {"lines": [[log, 5000], ANSWER]})
    recorder.wait_for(lambda: len(recorder.logs) == 5000)
    assert [message.data for message in recorder.logs] == [str(number) for number in range(5000)]
    assert manager.status("srv").dropped_events == 0


@KINDS
def test_noise_without_end_is_counted_and_the_answer_behind_it_is_found(
    manage: MakeManager, peer: MakePeer, kind: str
):
    # P01
    manager = manage(peer("srv", "as_told"), default_link=kind)
    result = manager.call_tool("srv__echo", {"lines": [["loading\n", 10_000], ANSWER]})
    assert result.text == "hi"
    status = manager.status("srv")
    assert (status.noise_count, status.noise_last) == (20_000, "")


@KINDS
def test_a_server_that_asks_without_end_and_reads_no_answer_is_given_up(
    manage: MakeManager, peer: MakePeer, kind: str
):
    # P16: it has read initialize, initialized, tools/list and the call: nothing more.
    server = peer("srv", "as_told", "stop_reading=4", once=True, mode="legacy", shutdown_timeout=0.5)
    manager = manage(server, default_link=kind)
    manager.connect("srv")
    ping = json.dumps({"jsonrpc": "2.0", "id": "p<n>", "method": "ping"})
    with pytest.raises(ConnectionLostError, match="does not read its input"):
        manager.call_tool("srv__echo", {"lines": [[ping, 15_000]]})
    assert manager.call_tool("srv__echo", {"text": "anew"}).text == "anew"
    assert len(server.pids) == 2


@ERAS
@KINDS
def test_a_server_that_has_stopped_reading_is_started_anew_when_its_pipe_is_full(
    manage: MakeManager, peer: MakePeer, recorder: Recorder, kind: str, modern: bool
):
    # P16. A request of nearly a page fits in whole or not at all; that a call was given up fits in beside it.
    server = peer(
        "srv",
        "stop_reading=3",
        once=True,
        modern=modern,
        mode="auto" if modern else "legacy",
        call_timeout=0.05,
    )
    manager = manage(server, default_link=kind, observers=[recorder])
    manager.connect("srv")
    server.wait_for("subscriptions/listen" if modern else "tools/list")
    outcome = ""
    while outcome != "not_sent":
        with pytest.raises(RequestTimeoutError) as caught:
            manager.call_tool("srv__echo", {"text": "x" * 3500})
        outcome = caught.value.details()["outcome"]
    lost = recorder.wait_for_state("srv", ConnectionState.LOST)
    assert "does not read its input" in lost.reason
    assert manager.call_tool("srv__echo", {"text": "anew"}, timeout=PATIENCE).text == "anew"
    assert len(server.pids) == 2


@KINDS
def test_a_burst_of_questions_is_answered_or_refused_one_by_one(
    manage: MakeManager, peer: MakePeer, kind: str
):
    # T24
    manager = manage(peer("srv", "as_told"), default_link=kind)
    asked = [
        [json.dumps({"jsonrpc": "2.0", "id": f"{request['method']} <n>", **request}), 60]
        for request in payloads.SERVER_REQUESTS
    ]
    assert manager.call_tool("srv__echo", {"lines": [*asked, ANSWER]}).text == "hi"
    assert manager.call_tool("srv__echo", {"text": "after"}).text == "after"
    assert manager.status("srv").is_ready


@pytest.mark.anyio
async def test_what_waits_for_the_sdk_is_bounded_and_tells_every_change_once():
    transport = StockTransport(server="srv", repairer=Repairer("srv"), redact=str)
    for _ in range(5000):
        transport._receive(json.loads(LOG))
        transport._receive(json.loads(CHANGED))
    async with transport_closed(transport) as messages:
        methods = [item.message.method for item in messages]
    assert methods.count("notifications/tools/list_changed") == 1
    assert len(methods) == MOST_WAITING
    assert transport.dropped_notifications == 5000 - (MOST_WAITING - 1)


@asynccontextmanager
async def transport_closed(transport: StockTransport) -> AsyncIterator[list[Any]]:
    """Give what waits in the transport, and close it."""
    messages = []
    while transport._messages.statistics().current_buffer_used:
        messages.append(transport._messages.receive_nowait())
    yield messages
    transport._inbox.close()
    transport._messages.close()
