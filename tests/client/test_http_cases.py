"""What callers of the manager see of an HTTP server that misbehaves: own and stock link, both eras."""

from __future__ import annotations

import gzip
import re
import threading
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from mcp_client_app.client import convert
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.datatypes import ConnectionState, ToolResult, UrlPolicy
from mcp_client_app.exceptions import (
    AuthRequiredError,
    ConfigurationError,
    MCPClientError,
    RequestTimeoutError,
    ResultTooLargeError,
    ServerUnavailableError,
    ThrottledError,
    TransportError,
)
from tests.client.conftest import MakeHttpPeer, MakeManager
from tests.client.http_peers import HttpPeer
from tests.client.linking import LINKS
from tests.client.peers import Recorder
from tests.servers import http_faults

pytestmark = [
    pytest.mark.parametrize("link", LINKS),
    pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"]),
]

TAKES = 20.0
Connect = Callable[..., tuple[MCPClientManager, HttpPeer]]


@pytest.fixture
def connect(manage: MakeManager, http_peer: MakeHttpPeer, link: str, modern: bool) -> Connect:
    """Connect to a peer with a scenario: ``connect("status", {"call_timeout": 1}, status=503)``."""

    def connect(
        scenario: str, spec: dict[str, Any] | None = None, **options: Any
    ) -> tuple[MCPClientManager, HttpPeer]:
        limit = options.pop("max_frame_size", 1_000_000)
        peer = http_peer(**(spec or {})).start(scenario, modern=modern, **options)
        manager = manage(peer.spec, default_link=link, max_frame_size=limit)
        manager.connect("srv")
        return manager, peer

    return connect


def failure(manager: MCPClientManager) -> MCPClientError:
    """Return how a call fails, having made sure that it costs nothing but itself."""
    with pytest.raises(MCPClientError) as caught:
        manager.call_tool("srv__echo", {})
    assert manager.status("srv").is_ready
    assert manager.status("srv").connects == 1
    manager.ping("srv")
    return caught.value


# Refusals ----------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ["status", "slow_refusal"])
@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_of_a_call_are_told_at_once_with_the_challenge(
    connect: Connect, scenario: str, status: int
):
    """H07: also where the server never ends the page that goes with it."""
    challenge = {"www-authenticate": 'Bearer realm="x"'}
    manager, _ = connect(scenario, {"call_timeout": 8}, status=status, headers=challenge)

    error = failure(manager)

    assert isinstance(error, AuthRequiredError)
    assert (error.status, error.challenge) == (status, 'Bearer realm="x"')


@pytest.mark.parametrize("slow", ["", "_slow"])
def test_refused_credentials_when_connecting_are_a_state_of_their_own(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, modern: bool, slow: str
):
    """H07, H09: nothing else is tried instead, neither another era nor another transport."""
    scenario = "probe_slow_refusal" if slow else "probe_status"
    peer = http_peer().start(scenario, modern=modern, status=401, headers={"www-authenticate": "Bearer"})
    manager = manage(peer.spec, default_link=link)

    with pytest.raises(AuthRequiredError) as caught:
        manager.call_tool("srv__echo", {})

    assert caught.value.challenge == "Bearer"
    assert manager.status("srv").state is ConnectionState.NEEDS_AUTH
    assert [item.rpc_method for item in peer.received("POST")] == ["server/discover"]
    assert peer.received("GET") == []


def test_a_server_that_asks_to_slow_down_is_believed(connect: Connect):
    """H08: the seconds stay with the call, which is not sent again."""
    manager, peer = connect("status", status=429, headers={"retry-after": "7"})

    error = failure(manager)

    assert isinstance(error, ThrottledError)
    assert error.retry_after == 7
    assert len(peer.received("tools/call")) == 1


@pytest.mark.parametrize("verb", ["call_tool", "read_resource"])
def test_an_overloaded_server_is_not_asked_again_before_its_time(connect: Connect, verb: str):
    """H08: not even for a read, which would be repeated after any other loss."""
    manager, peer = connect("overloaded", status=503, headers={"retry-after": "7"})

    with pytest.raises(ServerUnavailableError) as caught:
        getattr(manager, verb)(*{"call_tool": ("srv__echo", {}), "read_resource": ("srv", "a://b")}[verb])

    assert caught.value.retry_after == 7
    assert len(peer.received("tools/call")) + len(peer.received("resources/read")) == 1
    assert manager.status("srv").is_ready


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_an_outage_when_connecting_is_waited_for_and_leads_to_nothing_else(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, modern: bool, status: int
):
    """H08, H09: 429 and 5xx say nothing about eras and transports."""
    peer = http_peer().start("probe_status", modern=modern, status=status, headers={"retry-after": "40"})
    manager = manage(peer.spec, default_link=link)

    with pytest.raises(ThrottledError if status == 429 else ServerUnavailableError):
        manager.connect("srv")
    with pytest.raises(ServerUnavailableError, match="next try in") as caught:
        manager.call_tool("srv__echo", {})

    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 30
    assert [item.rpc_method for item in peer.received("POST")] == ["server/discover"]
    assert peer.received("GET") == []


# Answers that are none ---------------------------------------------------------------

NO_ANSWERS: list[tuple[str, dict[str, Any], str]] = [
    ("status", {"body": b"<html>Hello", "type": "text/html"}, r"HTTP 200, text/html\): <html>Hello"),
    ("status", {"body": b"", "type": "application/json"}, "empty body"),
    ("status", {"body": b'{"jsonrpc":"2.0"}'}, "no content type"),
    ("status", {"status": 202}, "HTTP 202"),
    ("status", {"status": 204}, "HTTP 204"),
    ("status", {"body": b"{half", "type": "application/json"}, "half"),
    ("truncated", {}, "broke off in the middle"),
    ("reset", {}, "closed the connection without an answer|reset the connection"),
    ("raw", {"bytes": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"}, "malformed HTTP"),
    ("raw", {"bytes": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab"}, "broke off|no MCP"),
    ("raw", {"bytes": b"HTTP/1.1 000 No\r\ncontent-length: 0\r\n\r\n"}, "malformed HTTP"),
    ("raw", {"bytes": b"HTTP/1.1 101 Switch\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"}, "malformed"),
    ("raw", {"bytes": b"HTTP/1.1 200 OK\r\nx: " + b"a" * 70_000 + b"\r\n\r\n"}, "malformed HTTP"),
    (
        "raw",
        {"bytes": b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 3\r\n\r\nabc"},
        "compressed its answer",
    ),
    ("sse_cut", {}, "ended its event stream without an answer"),
    ("sse_cut", {"cleanly": True}, "ended its event stream without an answer"),
]


@pytest.mark.parametrize(("scenario", "options", "words"), NO_ANSWERS)
def test_an_answer_that_is_none_fails_its_own_call_and_says_what_came(
    connect: Connect, scenario: str, options: dict[str, Any], words: str
):
    """H11, H12, H19: at once, with the outcome unknown, and the session goes on."""
    manager, _ = connect(scenario, **options)

    error = failure(manager)

    assert isinstance(error, TransportError)
    assert re.search(words, str(error))
    assert error.details()["outcome"] == "unknown"


@pytest.mark.parametrize(
    ("scenario", "options"),
    [
        ("typed", {"type": "Application/JSON; Charset=UTF-8"}),
        ("typed", {"type": "application/json;charset=iso-8859-1"}),
        ("typed", {"type": "application/json; charset=iso-8859-1", "encoding": "iso-8859-1"}),
        ("typed", {"type": "application/json; charset=utf-16", "encoding": "utf-16"}),
        ("typed", {"type": "application/json; charset=nonsense"}),
        ("typed", {"type": "application/json", "encoding": "utf-8-sig"}),
        ("typed", {"type": "application/vnd.mcp+json"}),
        ("http10", {}),
    ],
)
def test_odd_spellings_of_a_good_answer_are_understood(
    connect: Connect, scenario: str, options: dict[str, Any]
):
    """H25: a type with parameters, another charset or a wrong one, a byte order mark, HTTP/1.0."""
    manager, _ = connect(scenario, said="Grüße", **options)

    assert manager.call_tool("srv__echo", {}).text == "Grüße"


@pytest.mark.parametrize("scenario", ["gzip", "sse_odd", "sse_kept_open", "half_closed"])
def test_odd_ways_to_send_a_good_answer_are_understood(connect: Connect, scenario: str):
    """H25: compression, comments, CRLF, data of several lines, unknown events, open and closed ends."""
    manager, _ = connect(scenario)

    for _ in range(2):
        assert not manager.call_tool("srv__echo", {}).is_error


# Limits ------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ["big_json", "big_event"])
def test_an_answer_over_the_limit_costs_its_own_call(connect: Connect, scenario: str):
    """H25: a body and an event alike."""
    manager, _ = connect(scenario, size=300_000, max_frame_size=100_000)

    error = failure(manager)

    assert isinstance(error, ResultTooLargeError)
    assert error.limit == 100_000


@pytest.mark.parametrize(
    ("coding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)], ids=["gzip", "deflate"]
)
def test_a_small_body_that_unpacks_to_a_large_one_is_refused(
    connect: Connect, coding: str, pack: Callable[[bytes], bytes]
):
    """H25: the limit is on what comes out."""
    body = pack(b'"' + b"0" * 20_000_000 + b'"')
    manager, _ = connect("packed", body=body, coding=coding)

    error = failure(manager)

    assert isinstance(error, ResultTooLargeError)
    assert error.size is not None
    assert error.size < 5_000_000


# Redirects ---------------------------------------------------------------------------


def test_a_redirect_for_one_call_leaves_the_url_of_the_next_alone(connect: Connect):
    """H04, H27: 307 at the same server is followed, each time anew."""
    manager, peer = connect("redirect_calls")

    assert manager.call_tool("srv__echo", {"n": 1}).text == "{'n': 1}"
    assert manager.call_tool("srv__echo", {"n": 2}).text == "{'n': 2}"

    paths = [item.path.rpartition("/")[0] for item in peer.received("tools/call")]
    assert paths == ["", "/mcp/calls", "", "/mcp/calls"]


def test_a_redirect_to_another_server_is_named_and_gets_nothing(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, modern: bool
):
    """H05: no header leaves, whatever the redirect keeps."""
    elsewhere = http_peer().start(modern=modern)
    target = elsewhere.spec.url.replace("127.0.0.1", "localhost")
    peer = http_peer(headers={"Authorization": "Bearer hunter2"}).start("redirect", to=target, modern=modern)
    manager = manage(peer.spec, default_link=link)

    with pytest.raises(TransportError, match=r"redirects \(HTTP 307\) to http://localhost:\d+, which is not"):
        manager.connect("srv")

    assert elsewhere.server.requests == []


@pytest.mark.parametrize("status", [301, 302, 303])
@pytest.mark.parametrize(("to", "error"), [("/mcp/", TransportError), ("/login", AuthRequiredError)])
def test_a_redirect_that_would_make_a_get_of_it_is_not_followed(
    manage: MakeManager,
    http_peer: MakeHttpPeer,
    link: str,
    modern: bool,
    status: int,
    to: str,
    error: type[MCPClientError],
):
    """H06: the URL is to be mended; a login page asks for credentials."""
    peer = http_peer().start("redirect", to=to, status=status, modern=modern)
    manager = manage(peer.spec, default_link=link)

    with pytest.raises(error, match="final slash" if to == "/mcp/" else "login page"):
        manager.connect("srv")

    assert peer.received("GET") == []


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/a//b/?x=/sse"])
def test_the_url_is_used_as_written(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, modern: bool, path: str
):
    """H20: only outer blanks are dropped."""
    peer = http_peer().start(modern=modern)
    spec = peer.spec
    manager = manage(spec.__class__(name="srv", transport=spec.transport, url=f" {spec.url[:-4]}{path} "))
    manager.call_tool("srv__echo", {})

    assert {item.path for item in peer.server.requests} == {path}


# Time --------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ["hang", "trickle", "sse_silent"])
def test_a_call_ends_at_its_time_and_the_server_is_told(connect: Connect, scenario: str):
    """H26: whether it says nothing, a little at a time, or keeps a stream open."""
    manager, peer = connect(scenario, {"call_timeout": 0.3})

    with pytest.raises(RequestTimeoutError) as caught:
        manager.call_tool("srv__echo", {})

    assert caught.value.details() == {"seconds": 0.3, "outcome": "unknown"}
    peer.do(peer.server.left.wait())
    if peer.server.options["modern"]:
        assert peer.received("notifications/cancelled") == []  # closing the POST says it
    else:
        cancelled = peer.wait_for("notifications/cancelled")
        assert cancelled.rpc["params"]["requestId"] == peer.wait_for("tools/call").rpc["id"]
    assert manager.status("srv").is_ready


def test_a_call_may_take_longer_than_the_servers_limit_if_the_caller_says_so(connect: Connect, threads):
    """H26: the caller's own limit takes the place of the server's; a later call without is the clock."""
    manager, peer = connect("hang", {"call_timeout": 0.1})
    calling = threads.submit(manager.call_tool, "srv__echo", {}, timeout=TAKES)
    peer.wait_for("tools/call")
    with pytest.raises(RequestTimeoutError):
        manager.call_tool("srv__echo", {})
    peer.go_on()

    assert calling.result(TAKES).text == "{}"


def test_a_probe_that_is_never_answered_leaves_time_for_the_handshake(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, modern: bool
):
    """H22: it has two fifths of the time to connect."""
    peer = http_peer(connect_timeout=1.0).start("probe_hang", modern=modern)
    manager = manage(peer.spec, default_link=link)

    assert manager.connect("srv").protocol_version == "2025-11-25"


def test_closing_does_not_wait_for_a_server_that_does_not(connect: Connect, link: str, modern: bool, threads):
    """H14: DELETE is never answered."""
    manager, peer = connect("delete_hangs", {"shutdown_timeout": 0.2})
    closing = threads.submit(manager.close)

    closing.result(TAKES)

    assert len(peer.received("DELETE")) == (0 if modern else 1)


# Connections -------------------------------------------------------------------------


def test_a_call_whose_connection_breaks_costs_no_other(connect: Connect, threads):
    """H11: others go on, on the same session."""
    manager, peer = connect("reset_first")
    broken = threads.submit(manager.call_tool, "srv__echo", {"n": 1})
    peer.wait_for("tools/call")
    others = [threads.submit(manager.call_tool, "srv__echo", {"n": n}) for n in range(2, 6)]
    peer.wait_for("tools/call", 5)
    peer.go_on()

    with pytest.raises(TransportError):
        broken.result(TAKES)
    assert [call.result(TAKES).text for call in others] == [f"{{'n': {n}}}" for n in range(2, 6)]
    assert manager.status("srv").connects == 1


def test_a_closed_port_is_told_with_its_host(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, modern: bool
):
    """H28: a typed error; the state says the same."""
    peer = http_peer().start(modern=modern)
    spec = peer.spec
    peer.stop()
    manager = manage(spec, default_link=link)

    with pytest.raises(ServerUnavailableError, match=r"http://127\.0\.0\.1:\d+ refused the connection"):
        manager.connect("srv")

    assert manager.status("srv").code == "server_unavailable"


def test_cookies_of_one_connection_reach_no_other(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, modern: bool
):
    """H25, D14: two servers of one host, and the same server connected anew."""
    one = http_peer(name="one").start("cookies", node="one")
    two = http_peer(name="two").start("cookies", node="two")
    manager = manage(one.spec, two.spec, default_link=link)

    assert manager.call_tool("one__echo", {}).text == "node=one"
    assert manager.call_tool("two__echo", {}).text == "node=two"
    manager.disconnect("one")
    one.server.options["node"] = "new"
    manager.connect("one")
    assert "cookie" not in one.received("initialize")[-1].headers
    assert manager.call_tool("one__echo", {}).text == "node=new"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"headers": {"X-Key": "a\r\nHost: b"}}, "headers.X-Key"),
        ({"headers": {"X-Key": "a\x01"}}, "headers.X-Key"),
        ({"headers": {"Content-Length": "5"}}, "headers.Content-Length"),
        ({"headers": {"transfer-encoding": "chunked"}}, "headers.transfer-encoding"),
        ({"headers": {"Mcp-Session-Id": "x"}}, "headers.Mcp-Session-Id"),
        ({"headers": {"bad name": "x"}}, "headers"),
        ({"url": "ftp://127.0.0.1/"}, "url"),
        ({"url": "127.0.0.1/mcp"}, "url"),
        ({"url": ""}, "url"),
        ({"url": "http://169.254.169.254/"}, "url"),
        ({"url": "http://[::ffff:169.254.169.254]/"}, "url"),
    ],
)
def test_what_cannot_or_may_not_be_sent_is_a_configuration_error(
    manage: MakeManager,
    http_peer: MakeHttpPeer,
    link: str,
    modern: bool,
    fields: dict[str, Any],
    field: str,
):
    """H23, H24, D16: before anything is sent; no message holds the value."""
    peer = http_peer().start(modern=modern)
    spec = http_peer(**{"url": peer.spec.url, **fields}).start().spec
    policy = UrlPolicy(blocked_networks=("169.254.0.0/16",))
    manager = manage(spec, default_link=link, url_policy=policy)

    with pytest.raises(ConfigurationError) as caught:
        manager.connect("srv")

    assert caught.value.field == field
    assert manager.status("srv").state is ConnectionState.FAILED
    assert peer.server.requests == []


def test_a_stream_of_changes_leads_to_few_readings(
    manage: MakeManager, http_peer: MakeHttpPeer, recorder: Recorder, link: str, modern: bool
):
    """H10, H25: on the GET stream and on ``subscriptions/listen`` alike; the lists are the new ones."""
    peer = http_peer().start("plain" if modern else "get_stream", modern=modern)
    manager = manage(peer.spec, default_link=link, observers=[recorder])
    manager.connect("srv")
    peer.do(peer.server.opened(1))
    peer.server.options["tools"] = ("echo", "added")
    meta: dict[str, Any] = {}
    if modern:
        meta = {"_meta": {http_faults.SUBSCRIPTION: peer.wait_for("subscriptions/listen").rpc["id"]}}
    for _ in range(50):
        change = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": meta}
        peer.do(peer.server.push(change))

    recorder.wait_for(lambda: any(status.tools == 2 for status in recorder.catalogues))

    assert [tool.name for tool in manager.list_tools("srv")] == ["echo", "added"]
    assert len(peer.received("tools/list")) <= 4


def test_a_large_result_is_made_up_on_another_thread(connect: Connect, monkeypatch: pytest.MonkeyPatch):
    """H25: cutting and measuring it takes long enough for calls to other servers to notice."""
    threads: list[str] = []
    real = convert.tool_result

    def watched(*args: Any, **kwargs: Any) -> ToolResult:
        threads.append(threading.current_thread().name)
        return real(*args, **kwargs)

    monkeypatch.setattr(convert, "tool_result", watched)
    manager, peer = connect("big_json", size=1_500_000, max_frame_size=9_000_000)
    assert len(manager.call_tool("srv__echo", {}).text) == 1_500_000
    peer.server.options["size"] = 10
    manager.call_tool("srv__echo", {})

    assert threads[0].startswith("asyncio_")
    assert threads[1] == "mcp-client-loop"
