"""The server's own stream over HTTP (handshake eras) and the transport of 2024-11-05, misbehaving."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mcp_client_app.client import http_streams
from mcp_client_app.datatypes import ConnectionState, Transport
from mcp_client_app.exceptions import (
    ConnectionLostError,
    MCPClientError,
    RequestTimeoutError,
    ServerUnavailableError,
    TransportError,
)
from tests.client.conftest import MakeHttpPeer, MakeManager
from tests.client.http_peers import HttpPeer
from tests.client.linking import LINKS
from tests.client.peers import PATIENCE, Recorder
from tests.servers import http_faults
from tests.servers.faulty_sse import FaultySse

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
SCENARIOS = http_faults  # importing them has put them into the table

links = pytest.mark.parametrize("link", LINKS)


class Log(logging.Handler):
    """Waits for a message of the reader of streams."""

    def __init__(self, words: str) -> None:
        super().__init__(logging.DEBUG)
        self._words = words
        self._came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if self._words in record.getMessage():
            self._came.set()

    def wait(self) -> None:
        """Return once it was logged."""
        assert self._came.wait(PATIENCE)


@links
@pytest.mark.parametrize("status", [404, 405, 406, 501])
def test_a_server_without_a_stream_of_its_own_is_used_without(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, status: int
):
    """H10: it is asked once, and connecting does not depend on it."""
    peer = http_peer().start("get_status", status=status)
    manager = manage(peer.spec, default_link=link)
    manager.connect("srv")
    peer.wait_for("GET")

    for _ in range(3):
        manager.call_tool("srv__echo", {})

    assert len(peer.received("GET")) == 1


@links
def test_a_stream_that_is_refused_for_a_while_is_asked_for_when_the_server_said(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str
):
    """H08, H10: ``Retry-After`` holds for the stream, too."""
    peer = http_peer().start("get_refused_for_a_while", status=503, headers={"retry-after": "2"})
    manager = manage(peer.spec, default_link=link)
    manager.connect("srv")
    peer.do(peer.server.opened(1))

    assert peer.server.options["returned_after"] >= 2


@links
def test_an_event_over_the_limit_is_left_out_and_the_next_ones_are_heard(
    manage: MakeManager,
    http_peer: MakeHttpPeer,
    recorder: Recorder,
    caplog: pytest.LogCaptureFixture,
    link: str,
):
    """H25: it is not asked for again and again."""
    peer = http_peer().start("big_events", size=300_000)
    manager = manage(peer.spec, default_link=link, max_frame_size=100_000, observers=[recorder])
    manager.connect("srv")
    peer.do(peer.server.opened(2))
    peer.server.options["tools"] = ("echo", "added")
    peer.do(peer.server.push(CHANGED))

    recorder.wait_for(lambda: any(status.tools == 2 for status in recorder.catalogues))

    assert peer.received("GET")[-1].headers["last-event-id"] == "big"
    assert "was left out: An event of 'srv' is larger than 100000 bytes" in caplog.text


@links
def test_a_server_that_was_away_has_its_lists_read_anew(
    manage: MakeManager,
    http_peer: MakeHttpPeer,
    recorder: Recorder,
    caplog: pytest.LogCaptureFixture,
    link: str,
):
    """H01: without sessions nothing else says that it is another one now."""
    peer = http_peer().start("get_stream", session=False)
    manager = manage(peer.spec, default_link=link, observers=[recorder])
    manager.connect("srv")
    peer.do(peer.server.opened(1))
    caplog.set_level("DEBUG", http_streams.logger.name)
    refused = Log("refused the connection")
    http_streams.logger.addHandler(refused)
    try:
        peer.stop()
        refused.wait()
    finally:
        http_streams.logger.removeHandler(refused)
    peer.start("get_stream", session=False, tools=("echo", "added"))

    recorder.wait_for(lambda: any(status.tools == 2 for status in recorder.catalogues))

    assert manager.status("srv").connects == 1


# The transport of 2024-11-05 ---------------------------------------------------------


@pytest.fixture
def sse_peer() -> Iterator[MakeHttpPeer]:
    """Make peers that speak it: ``sse_peer(call_timeout=1).start(fault=500)``."""
    made: list[HttpPeer] = []

    def make(**spec: Any) -> HttpPeer:
        made.append(HttpPeer(FaultySse, transport=Transport.SSE, **spec))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize(
    ("fault", "error"), [(500, ServerUnavailableError), (403, MCPClientError), ("reset", TransportError)]
)
def test_a_post_that_fails_fails_its_call_at_once(
    manage: MakeManager, sse_peer: MakeHttpPeer, fault: Any, error: type[MCPClientError]
):
    """H15: and no other call, nor the session."""
    peer = sse_peer().start(fault=fault)
    manager = manage(peer.spec)
    manager.connect("srv")

    with pytest.raises(error):
        manager.call_tool("srv__echo", {})

    manager.ping("srv")
    assert manager.status("srv").connects == 1


def test_a_post_to_a_stream_that_the_server_forgot_is_sent_once_more_on_a_new_one(
    manage: MakeManager, sse_peer: MakeHttpPeer
):
    """H15, H01: 404 says that the call was not carried out."""
    peer = sse_peer().start(fault=404)
    manager = manage(peer.spec)
    manager.connect("srv")

    with pytest.raises(ConnectionLostError, match="ended the session"):
        manager.call_tool("srv__echo", {})

    assert len(peer.received("tools/call")) == 2
    assert len(peer.received("GET")) == 2


def test_a_restarted_server_is_connected_anew(
    manage: MakeManager, sse_peer: MakeHttpPeer, recorder: Recorder
):
    """H15: the end of its stream is the end of the connection; the next call makes another."""
    peer = sse_peer().start()
    manager = manage(peer.spec, observers=[recorder])
    assert manager.call_tool("srv__echo", {}).text == "called"
    peer.restart()

    lost = recorder.wait_for_state("srv", ConnectionState.LOST)

    assert lost.code == "connection_lost"
    assert manager.call_tool("srv__echo", {}).text == "called"


def test_a_server_restarted_in_mid_call_leaves_the_outcome_unknown(
    manage: MakeManager, sse_peer: MakeHttpPeer
):
    """H15: such a call is not sent again."""
    peer = sse_peer().start(fault="drop")
    manager = manage(peer.spec)
    manager.connect("srv")

    with pytest.raises(ConnectionLostError) as caught:
        manager.call_tool("srv__echo", {})

    assert caught.value.details() == {"outcome": "unknown"}
    assert len(peer.received("tools/call")) == 1


def test_a_stream_that_names_no_address_meets_the_time_limit(manage: MakeManager, sse_peer: MakeHttpPeer):
    """H16: pings do not prolong it."""
    peer = sse_peer(connect_timeout=0.3).start(endpoint=None)
    manager = manage(peer.spec)

    with pytest.raises(RequestTimeoutError, match=r"not ready within 0\.3 s"):
        manager.connect("srv")


@pytest.mark.parametrize("endpoint", ["http://127.0.0.2/messages", "//evil.example/x", "https://127.0.0.1/x"])
def test_an_address_at_another_server_gets_no_message(
    manage: MakeManager, sse_peer: MakeHttpPeer, endpoint: str
):
    """H05, D16: headers stay at the server that they are for."""
    peer = sse_peer().start(endpoint=endpoint)
    manager = manage(peer.spec)

    with pytest.raises(TransportError, match="another server"):
        manager.connect("srv")

    assert peer.received("POST") == []
