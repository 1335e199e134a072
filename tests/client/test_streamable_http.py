from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from mcp_client_app.client.exchange import Exchange, recorded
from mcp_client_app.client.http import HttpClient
from mcp_client_app.client.leniency import Repairer
from mcp_client_app.client.redaction import Redactor
from mcp_client_app.client.streamable_http import HttpDispatcher
from mcp_client_app.datatypes import ServerSpec, StrictOptions, Transport
from mcp_client_app.exceptions import (
    AuthRequiredError,
    ConnectionLostError,
    MCPClientError,
    ProtocolError,
    ResultTooLargeError,
    ServerUnavailableError,
    ThrottledError,
    TransportError,
)
from tests.servers.faulty_http import SESSION, FaultyHttp

pytestmark = pytest.mark.anyio

SECRET = "secret-4711"
LEGACY = {"mcp-protocol-version": "2025-11-25"}
MODERN = {"mcp-protocol-version": "2026-07-28"}
ECHO = {"name": "echo", "arguments": {}}
LIMIT = 2_000_000


@asynccontextmanager
async def connected(
    peer: FaultyHttp | str, *, handshake: bool = False, **fields: Any
) -> AsyncIterator[HttpDispatcher]:
    """Give a dispatcher for a peer; with ``handshake`` the legacy session has been opened."""
    url = peer if isinstance(peer, str) else peer.url
    headers = {"Authorization": f"Bearer {SECRET}"}
    fields = {
        "name": "docs",
        "transport": Transport.STREAMABLE_HTTP,
        "url": url,
        "headers": headers,
        **fields,
    }
    spec = ServerSpec(**fields)
    dispatcher = HttpDispatcher(
        spec,
        HttpClient(url, server="docs", headers=headers),
        repairer=Repairer("docs", spec.strict),
        redactor=Redactor(spec),
        max_frame_size=LIMIT,
        resume_delay=0.02,
    )
    try:
        async with asyncio.timeout(20):
            if handshake:
                await shake_hands(dispatcher)
            yield dispatcher
    finally:
        await dispatcher.aclose(5)


async def shake_hands(dispatcher: HttpDispatcher) -> dict[str, Any]:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    result = await dispatcher.send_raw_request("initialize", params, {"cancel_on_abandon": False})
    await dispatcher.notify("notifications/initialized", None, {"headers": LEGACY})
    return result


async def call(dispatcher: HttpDispatcher, **opts: Any) -> str:
    opts = {"headers": LEGACY, **opts}
    result = await dispatcher.send_raw_request("tools/call", ECHO, opts)  # type: ignore[arg-type]
    return str(result["content"][0]["text"]) if result["content"] else ""


async def failure_of(peer: FaultyHttp, **options: Any) -> tuple[MCPClientError, Exchange]:
    """Return how a call fails, having made sure that the link survives it."""
    async with connected(peer, handshake=True, **options) as dispatcher:
        with recorded(Exchange()) as exchange, pytest.raises(MCPClientError) as caught:
            await call(dispatcher)
        assert dispatcher.failure is None
        assert await dispatcher.send_raw_request("ping", None, {"headers": LEGACY}) == {}
    assert SECRET not in str(caught.value)
    assert SESSION not in str(caught.value)
    return caught.value, exchange


# Good answers ------------------------------------------------------------------------


async def test_a_session_is_opened_used_and_ended() -> None:
    async with FaultyHttp() as peer, connected(peer, handshake=True) as dispatcher:
        await call(dispatcher)
        await peer.seen("GET")

    wire = [(item.rpc_method or item.method, item.headers.get("mcp-session-id")) for item in peer.requests]
    assert wire[0] == ("initialize", None)
    assert wire[-1] == ("DELETE", SESSION)
    assert set(wire[1:]) == {
        (name, SESSION) for name in ("notifications/initialized", "tools/call", "GET", "DELETE")
    }
    versions = {item.headers.get("mcp-protocol-version") for item in peer.requests[1:]}
    assert versions == {"2025-11-25"}
    assert {item.headers["authorization"] for item in peer.requests} == {f"Bearer {SECRET}"}


async def test_the_headers_that_the_session_asks_for_are_sent() -> None:
    async with FaultyHttp() as peer, connected(peer) as dispatcher:
        await call(dispatcher, headers={**MODERN, "mcp-method": "tools/call", "Mcp-Param-City": "Ulm"})

    headers = peer.requests[0].headers
    assert headers["accept"] == "application/json, text/event-stream"
    assert headers["content-type"] == "application/json"
    assert (headers["mcp-method"], headers["mcp-param-city"]) == ("tools/call", "Ulm")
    assert headers["mcp-protocol-version"] == "2026-07-28"


async def test_a_handshake_carries_no_version_of_an_earlier_probe() -> None:
    async with FaultyHttp() as peer, connected(peer) as dispatcher:
        await dispatcher.send_raw_request("server/discover", None, {"headers": MODERN})
        await shake_hands(dispatcher)

    assert peer.requests[0].headers["mcp-protocol-version"] == "2026-07-28"
    assert "mcp-protocol-version" not in peer.received("initialize")[0].headers


async def test_the_modern_era_has_neither_session_nor_stream_of_the_server() -> None:
    async with FaultyHttp() as peer, connected(peer) as dispatcher:
        await call(dispatcher, headers=MODERN)
        await dispatcher.notify("notifications/initialized", None, {"headers": MODERN})

    assert [item.method for item in peer.requests] == ["POST", "POST"]


async def test_an_event_stream_brings_progress_and_then_the_answer() -> None:
    seen: list[tuple[float, float | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    async with FaultyHttp("sse") as peer, connected(peer, handshake=True) as dispatcher:
        assert await call(dispatcher, on_progress=on_progress) == "streamed"
        connections = peer.connections
        await call(dispatcher)

    assert sorted(seen) == [(1, 3), (2, 3), (3, 3)]
    assert peer.connections == connections, "the connection of an event stream was not used again"


@pytest.mark.parametrize(
    ("scenario", "said"), [("gzip", "packed"), ("wrong_id", "mine"), ("batch", "mine"), ("sse_odd", "")]
)
async def test_odd_answers_are_understood(scenario: str, said: str) -> None:
    async with FaultyHttp(scenario) as peer, connected(peer, handshake=True) as dispatcher:
        assert await call(dispatcher) == said


async def test_an_event_that_is_no_json_is_noise() -> None:
    async with FaultyHttp("sse_odd") as peer, connected(peer, handshake=True) as dispatcher:
        await call(dispatcher)

        assert dispatcher.noise_count == 1
        assert "not json" in dispatcher.noise_last


async def test_an_event_that_is_no_json_ends_the_link_where_strictness_asks_for_that() -> None:
    strict = StrictOptions(parse_errors=True)
    async with FaultyHttp("sse_odd") as peer, connected(peer, handshake=True, strict=strict) as dispatcher:
        with pytest.raises(TransportError, match="no JSON"):
            await call(dispatcher)

        assert dispatcher.failure is not None


async def test_an_answer_is_taken_from_a_stream_that_the_server_keeps_open() -> None:
    async with FaultyHttp("sse_kept_open") as peer, connected(peer, handshake=True) as dispatcher:
        assert await call(dispatcher) == "answered"


async def test_a_large_answer_is_decoded_and_its_size_is_noted() -> None:
    size = 1_500_000
    async with FaultyHttp("big_json", size=size) as peer, connected(peer, handshake=True) as dispatcher:
        with recorded(Exchange()) as exchange:
            assert len(await call(dispatcher)) == size

    assert exchange.size > size
    assert exchange.raw is not None


# Refusals ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "sent"),
    [
        ({"status": 401, "headers": {"www-authenticate": "Bearer"}}, AuthRequiredError, False),
        ({"status": 403, "body": "<h1>No</h1>", "type": "text/html"}, AuthRequiredError, False),
        ({"status": 404}, ConnectionLostError, False),
        ({"status": 405}, TransportError, False),
        ({"status": 429, "headers": {"retry-after": "7"}}, ThrottledError, False),
        ({"status": 500, "body": f"boom {SECRET}"}, ServerUnavailableError, True),
        ({"status": 503, "headers": {"retry-after": "7"}}, ServerUnavailableError, True),
        ({"status": 302, "headers": {"location": "/login"}}, AuthRequiredError, False),
        ({"status": 200, "body": "<h1>Hi</h1>", "type": "text/html"}, TransportError, True),
        ({"status": 200}, TransportError, True),
        ({"status": 200, "body": "{}"}, TransportError, True),
        ({"status": 202}, TransportError, True),
        ({"status": 204}, TransportError, True),
        ({"status": 200, "body": "{nope", "type": "application/json"}, TransportError, True),
        ({"status": 200, "body": {"jsonrpc": "2.0"}}, TransportError, True),
        ({"status": 200, "body": []}, TransportError, True),
    ],
)
async def test_an_answer_that_is_none_fails_its_own_call_at_once(
    options: dict[str, Any], kind: type[MCPClientError], sent: bool
) -> None:
    async with FaultyHttp("status", session=False, **options) as peer:
        if kind is ConnectionLostError:
            kind = TransportError  # without a session a 404 is a refusal like others
        error, exchange = await failure_of(peer)

    assert type(error) is kind
    assert exchange.sent is sent
    if isinstance(error, AuthRequiredError) and options["status"] == 401:
        assert error.challenge == "Bearer"
    if "retry-after" in options.get("headers", {}):
        assert error.retry_after == 7.0  # type: ignore[attr-defined]
    if isinstance(error, TransportError):
        assert error.status == options["status"]


async def test_a_quoted_body_hides_the_session_id() -> None:
    async with FaultyHttp("status", status=500, body=f"lost {SESSION}") as peer:
        error, _ = await failure_of(peer)

    assert "lost ***" in str(error)


async def test_an_html_page_is_named_with_status_type_and_first_bytes() -> None:
    async with FaultyHttp("status", body="<h1>Welcome</h1>", type="text/html; charset=utf-8") as peer:
        error, _ = await failure_of(peer)

    assert re.search(r"HTTP 200.*text/html.*<h1>Welcome", str(error))


@pytest.mark.parametrize("status", [400, 404, 405, 422])
@pytest.mark.parametrize("request_id", [None, "other"])
async def test_a_json_rpc_error_in_a_refusal_is_the_servers_answer(
    status: int, request_id: str | None
) -> None:
    error: dict[str, Any] = {"id": request_id, "code": -32020, "message": "header mismatch"}
    async with (
        FaultyHttp("rpc_error", session=False, status=status, **error) as peer,
        connected(peer, handshake=True) as dispatcher,
    ):
        with pytest.raises(MCPError, match="header mismatch") as caught:
            await call(dispatcher)

    assert caught.value.error.code == -32020


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
async def test_a_json_rpc_error_never_hides_refused_credentials_throttling_or_an_outage(status: int) -> None:
    async with FaultyHttp("rpc_error", status=status, message="Method not found") as peer:
        error, _ = await failure_of(peer)

    assert isinstance(error, AuthRequiredError | ThrottledError | ServerUnavailableError)


async def test_an_unknown_method_does_not_end_the_session() -> None:
    async with (
        FaultyHttp("rpc_error", status=404, code=-32601, message="Method not found") as peer,
        connected(peer, handshake=True) as dispatcher,
    ):
        with pytest.raises(MCPError):
            await call(dispatcher)
        assert dispatcher.failure is None


async def test_an_answer_over_the_limit_costs_only_its_call() -> None:
    async with FaultyHttp("big_json", size=LIMIT) as peer:
        error, _ = await failure_of(peer)

    assert isinstance(error, ResultTooLargeError)


# Broken connections ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "options"),
    [("reset", {}), ("truncated", {}), ("sse_cut", {}), ("sse_cut", {"cleanly": True})],
)
async def test_a_connection_that_breaks_costs_only_its_call(scenario: str, options: dict[str, Any]) -> None:
    async with FaultyHttp(scenario, **options) as peer:
        error, exchange = await failure_of(peer)

    assert isinstance(error, TransportError)
    assert error.sent
    assert exchange.sent


async def test_other_calls_go_on_while_one_breaks() -> None:
    async with FaultyHttp("hang") as peer, connected(peer, handshake=True) as dispatcher:
        waiting = asyncio.create_task(call(dispatcher))
        await peer.seen("tools/call")
        with pytest.raises(MCPClientError):
            await dispatcher.send_raw_request("ping", None, {"headers": {**LEGACY, "x": "\n"}})
        peer.go_on.set()
        assert await waiting == "{}"


async def test_a_server_that_is_down_is_unavailable_and_got_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    async with connected(url) as dispatcher:
        with recorded(Exchange()) as exchange, pytest.raises(ServerUnavailableError):
            await call(dispatcher)

    assert not exchange.sent


@pytest.mark.parametrize("status", [400, 401, 500])
async def test_a_notification_that_is_refused_is_no_error(status: int) -> None:
    async with (
        FaultyHttp("note_status", status=status) as peer,
        connected(peer, handshake=True) as dispatcher,
    ):
        await dispatcher.notify("notifications/roots/list_changed", None, {"headers": LEGACY})
        assert dispatcher.failure is None


async def test_a_notification_notices_that_the_session_is_gone() -> None:
    async with FaultyHttp("note_status", status=404) as peer, connected(peer, handshake=True) as dispatcher:
        await dispatcher.notify("notifications/roots/list_changed", None, {"headers": LEGACY})
        assert isinstance(dispatcher.failure, ConnectionLostError)


# Cancelling --------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ["hang", "sse_silent"])
async def test_giving_up_a_legacy_request_closes_it_and_tells_the_server(scenario: str) -> None:
    async with FaultyHttp(scenario) as peer, connected(peer, handshake=True) as dispatcher:
        task = asyncio.create_task(call(dispatcher))
        request = await peer.seen("tools/call")
        task.cancel()
        notice = await peer.seen("notifications/cancelled")
        await peer.left.wait()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert notice.rpc["params"]["requestId"] == request.rpc["id"]
    assert notice.headers["mcp-session-id"] == SESSION


async def test_a_request_that_timed_out_is_given_up_in_the_same_way() -> None:
    async with FaultyHttp("hang") as peer, connected(peer, handshake=True) as dispatcher:
        with pytest.raises(MCPError):
            await call(dispatcher, timeout=0.05)
        await peer.seen("notifications/cancelled")
        await peer.left.wait()


async def test_giving_up_a_modern_request_just_closes_it() -> None:
    async with FaultyHttp("hang") as peer, connected(peer) as dispatcher:
        task = asyncio.create_task(call(dispatcher, headers=MODERN))
        await peer.seen("tools/call")
        task.cancel()
        await peer.left.wait()
        with pytest.raises(asyncio.CancelledError):
            await task
        await dispatcher.send_raw_request("ping", None, {"headers": MODERN})

    assert [item.rpc_method for item in peer.requests] == ["tools/call", "ping"]


# Resuming ----------------------------------------------------------------------------


async def test_a_stream_that_breaks_off_is_taken_up_again_until_the_answer_is_there() -> None:
    async with FaultyHttp("resume") as peer, connected(peer, handshake=True) as dispatcher:
        assert await call(dispatcher) == "after e2"

    positions = [item.headers.get("last-event-id") for item in peer.received("GET")]
    assert [position for position in positions if position] == ["e1", "e1", "e2"]
    assert len(peer.received("tools/call")) == 1


async def test_a_session_that_is_gone_when_resuming_leaves_the_outcome_unknown() -> None:
    async with FaultyHttp("resume", refuses=404) as peer, connected(peer, handshake=True) as dispatcher:
        with recorded(Exchange()) as exchange, pytest.raises(ConnectionLostError) as caught:
            await call(dispatcher)

    assert caught.value.sent
    assert exchange.sent


@pytest.mark.parametrize(("status", "tries"), [(405, 1), (503, 5)])
async def test_resuming_ends_when_the_server_does_not_offer_it_or_never_comes_back(
    status: int, tries: int
) -> None:
    async with FaultyHttp("resume", refuses=status) as peer:
        error, exchange = await failure_of(peer)

    assert isinstance(error, TransportError)
    assert exchange.sent
    assert len([item for item in peer.received("GET") if "last-event-id" in item.headers]) == tries


async def test_the_modern_era_does_not_resume() -> None:
    async with FaultyHttp("resume") as peer, connected(peer) as dispatcher:
        with pytest.raises(TransportError, match="without an answer"):
            await call(dispatcher, headers=MODERN)

    assert peer.received("GET") == []


# The session -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"bare": True}, {}, {"status": 400}, {"status": 400, "message": "No valid session ID provided"}],
)
async def test_a_lost_session_ends_the_link_and_the_call_was_not_carried_out(options: dict[str, Any]) -> None:
    async with FaultyHttp("session_lost", **options) as peer, connected(peer, handshake=True) as dispatcher:
        with recorded(Exchange()) as exchange, pytest.raises(ConnectionLostError, match="session") as caught:
            await call(dispatcher)

        assert not exchange.sent
        assert not caught.value.sent
        assert dispatcher.closed.done()
        with pytest.raises(ConnectionLostError):
            await call(dispatcher)

    assert len(peer.received("tools/call")) == 1
    assert peer.received("DELETE") == []


async def test_calls_in_flight_fail_with_the_session_and_their_outcome_is_unknown() -> None:
    async with FaultyHttp("hang") as peer, connected(peer, handshake=True) as dispatcher:
        with recorded(Exchange()):
            task = asyncio.create_task(call(dispatcher))
        await peer.seen("tools/call")
        dispatcher._lose_session(404)
        with pytest.raises(ConnectionLostError) as caught:
            await task
        await peer.left.wait()

    assert caught.value.sent


async def test_closing_fails_what_waits_and_is_bounded_when_the_server_does_not_answer() -> None:
    async with FaultyHttp("delete_hangs") as peer, connected(peer, handshake=True) as dispatcher:
        await dispatcher.aclose(0.05)

        assert len(peer.received("DELETE")) == 1
        assert dispatcher.closed.done()
        with pytest.raises(ConnectionLostError, match="closed"):
            await call(dispatcher)


async def test_closing_ends_calls_in_flight() -> None:
    async with FaultyHttp("hang") as peer, connected(peer, handshake=True) as dispatcher:
        task = asyncio.create_task(call(dispatcher))
        await peer.seen("tools/call")
        await dispatcher.aclose(5)
        with pytest.raises(ConnectionLostError):
            await task


async def test_the_session_is_left_to_the_server_where_the_row_says_so() -> None:
    async with FaultyHttp() as peer, connected(peer, handshake=True, terminate_on_close=False):
        pass

    assert peer.received("DELETE") == []


# The server's own stream -------------------------------------------------------------

NOTE = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


@asynccontextmanager
async def listening(peer: FaultyHttp) -> AsyncIterator[asyncio.Queue[str]]:
    """Give the notifications that arrive on the open GET stream."""
    heard: asyncio.Queue[str] = asyncio.Queue()

    def intercept(method: str, params: Any) -> bool:
        heard.put_nowait(method)
        return True

    async def ignore(*_: Any) -> Any:
        return {}

    async with connected(peer, handshake=True) as dispatcher:
        running = asyncio.create_task(dispatcher.run(ignore, ignore, intercept))
        try:
            await peer.seen("GET")
            yield heard
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_the_server_speaks_on_its_own_stream_and_is_heard_again_after_a_break() -> None:
    async with FaultyHttp("get_stream") as peer, listening(peer) as heard:
        for connection in (1, 2, 3):
            await peer.opened(connection)
            await peer.push(NOTE)
            assert await heard.get() == "notifications/tools/list_changed"
            await peer.drop_stream()

    positions = [item.headers.get("last-event-id") for item in peer.received("GET")]
    assert positions[:3] == [None, "g1", "g2"]


@pytest.mark.parametrize("status", [400, 403, 404, 405, 501])
async def test_a_server_without_a_stream_of_its_own_is_asked_once(status: int) -> None:
    async with (
        FaultyHttp("get_status", status=status) as peer,
        connected(peer, handshake=True) as dispatcher,
    ):
        await peer.seen("GET")
        while dispatcher._tasks:
            await asyncio.gather(*dispatcher._tasks)
        assert dispatcher.failure is None

    assert len(peer.received("GET")) == 1


async def test_an_outage_of_the_servers_stream_is_waited_for() -> None:
    async with FaultyHttp("get_status", status=503) as peer, connected(peer, handshake=True):
        await peer.seen("GET", 4)


async def test_a_session_that_is_gone_is_noticed_while_nothing_is_called() -> None:
    async with FaultyHttp("get_stream", gone=404) as peer, connected(peer, handshake=True) as dispatcher:
        await peer.opened(1)
        await peer.drop_stream()
        await dispatcher.closed

        assert isinstance(dispatcher.failure, ConnectionLostError)


# Strictness --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strict", "options"),
    [
        (StrictOptions(session_header=True), {"session": False}),
        (StrictOptions(version_consistency=True), {"headers": {"mcp-protocol-version": "2025-06-18"}}),
    ],
)
async def test_a_handshake_that_breaks_a_strict_rule_is_refused_and_else_accepted(
    strict: StrictOptions, options: dict[str, Any]
) -> None:
    async with FaultyHttp(**options) as peer:
        async with connected(peer) as lenient:
            await shake_hands(lenient)
        async with connected(peer, strict=strict) as dispatcher:
            with pytest.raises(ProtocolError):
                await shake_hands(dispatcher)


async def test_an_answer_in_another_version_is_refused_only_when_strict() -> None:
    options: dict[str, Any] = {"headers": {"mcp-protocol-version": "2025-06-18"}, "body": {}}
    strict = StrictOptions(protocol_header=True)
    async with FaultyHttp("status", **options) as peer, connected(peer, strict=strict) as dispatcher:
        with pytest.raises(ProtocolError, match="2025-06-18"):
            await call(dispatcher)
