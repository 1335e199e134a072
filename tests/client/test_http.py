from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_client_app.client.exchange import Exchange
from mcp_client_app.client.http import HttpClient
from mcp_client_app.client.http_setup import shared_tls_context
from mcp_client_app.datatypes import UrlPolicy
from mcp_client_app.exceptions import (
    AuthRequiredError,
    ConfigurationError,
    ConnectionLostError,
    ResultTooLargeError,
    ServerUnavailableError,
    TransportError,
)
from tests.servers.faulty_http import FaultyHttp
from tests.servers.tls import make_tls

SECRET = "secret-4711"
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}'
HEADERS = {"content-type": "application/json"}
LIMIT = 1_000_000


@asynccontextmanager
async def client_for(url: str, **options: Any) -> AsyncIterator[HttpClient]:
    client = HttpClient(url, server="docs", **options)
    try:
        async with asyncio.timeout(20):
            yield client
    finally:
        await client.aclose()


async def post(client: HttpClient, exchange: Exchange | None = None) -> bytes:
    async with client.request("POST", headers=HEADERS, body=CALL, exchange=exchange) as response:
        return await response.read(LIMIT)


async def test_a_request_carries_the_clients_headers_and_its_own() -> None:
    async with (
        FaultyHttp() as peer,
        client_for(peer.url, headers={"X-Key": SECRET, "accept": "x"}) as client,
        client.request("POST", headers={"Accept": "application/json"}, body=CALL) as response,
    ):
        assert response.status == 200
        assert response.content_type == "application/json"
        assert response.header("Content-Length") == response.header("content-length")

    assert peer.requests[0].headers["x-key"] == SECRET
    assert peer.requests[0].headers["accept"] == "application/json"
    assert peer.requests[0].body == CALL
    assert "python" not in peer.requests[0].headers["user-agent"].lower()


async def test_white_space_around_the_url_is_dropped_and_its_path_kept() -> None:
    async with FaultyHttp() as peer, client_for(f" {peer.url}/a%2Fb/?q=1 \n") as client:
        await post(client)

    assert peer.requests[0].path == "/mcp/a%2Fb/?q=1"


async def test_connections_are_kept_for_the_next_request() -> None:
    async with FaultyHttp() as peer, client_for(peer.url) as client:
        for _ in range(3):
            await post(client)

    assert peer.connections == 1


async def test_many_requests_run_at_once() -> None:
    async with FaultyHttp("hang") as peer, client_for(peer.url) as client:
        tasks = [asyncio.create_task(post(client)) for _ in range(150)]
        await peer.seen("tools/call", 150)
        peer.go_on.set()
        assert len(await asyncio.gather(*tasks)) == 150


async def test_cookies_stay_with_the_connection_and_go_back_verbatim() -> None:
    async with FaultyHttp("cookie") as peer, client_for(peer.url) as client, client_for(peer.url) as other:
        await post(client)
        await post(client)
        await post(other)

    assert [request.headers.get("cookie") for request in peer.requests] == [None, "node=a=b", None]


async def test_leaving_a_response_unread_closes_its_connection() -> None:
    async with FaultyHttp("sse_silent") as peer, client_for(peer.url) as client:
        async with client.request("POST", body=CALL) as response:
            assert await response.read_chunk() == b": working\n\n"
        async with asyncio.timeout(5):
            await peer.left.wait()


async def test_a_finished_response_gives_its_connection_back_once_the_server_has_ended_it() -> None:
    async with FaultyHttp("sse_kept_open") as peer, client_for(peer.url) as client:
        async with client.request("POST", body=CALL) as response:
            await response.read_chunk()
            response.finish()
        assert not peer.left.is_set()
        async with client.request("POST", body=CALL) as response:
            await response.read_chunk()

    assert peer.connections == 2


async def test_cancelling_a_request_closes_its_connection() -> None:
    async with FaultyHttp("hang") as peer, client_for(peer.url) as client:
        task = asyncio.create_task(post(client))
        await peer.seen("tools/call")
        task.cancel()
        async with asyncio.timeout(5):
            await peer.left.wait()
        with pytest.raises(asyncio.CancelledError):
            await task


# Limits ------------------------------------------------------------------------------


async def test_compressed_bodies_are_decoded() -> None:
    async with FaultyHttp("gzip") as peer, client_for(peer.url) as client:
        assert b"packed" in await post(client)


@pytest.mark.parametrize(("scenario", "options"), [("big_json", {"size": 2 * LIMIT}), ("gzip_bomb", {})])
async def test_a_body_over_the_limit_is_refused_by_its_decoded_size(
    scenario: str, options: dict[str, Any]
) -> None:
    async with FaultyHttp(scenario, **options) as peer, client_for(peer.url) as client:
        with pytest.raises(ResultTooLargeError, match="'docs'") as caught:
            await post(client)

    assert caught.value.limit == LIMIT
    assert caught.value.size is not None
    # It stopped soon after the limit, long before the 50 MB of the bomb were unpacked.
    assert LIMIT < caught.value.size < 2 * LIMIT


async def test_only_the_beginning_of_a_body_is_read_when_that_is_enough() -> None:
    async with (
        FaultyHttp("big_json", size=2 * LIMIT) as peer,
        client_for(peer.url) as client,
        client.request("POST", body=CALL) as response,
    ):
        assert len(await response.read_beginning(1000)) == 1000


# Failures ----------------------------------------------------------------------------


async def test_a_refused_connection_names_the_host_and_nothing_was_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    exchange = Exchange()

    async with client_for(f"http://127.0.0.1:{port}/{SECRET}", headers={"X-Key": SECRET}) as client:
        with pytest.raises(ServerUnavailableError, match="refused the connection") as caught:
            await post(client, exchange)

    assert f"127.0.0.1:{port}" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert not exchange.sent


async def test_a_name_that_does_not_resolve_is_said_to_be_so() -> None:
    async with client_for("http://no-such-host.invalid/mcp") as client:
        with pytest.raises(ServerUnavailableError, match="could not be resolved"):
            await post(client)


async def test_a_server_that_speaks_no_http_is_a_transport_error() -> None:
    async with FaultyHttp("no_http") as peer, client_for(peer.url) as client:
        with pytest.raises(TransportError, match="malformed HTTP") as caught:
            await post(client)

    assert caught.value.sent


async def test_a_reset_before_the_answer_may_have_been_sent_and_is_not_repeated() -> None:
    exchange = Exchange()
    async with FaultyHttp("reset") as peer, client_for(peer.url) as client:
        async with client.request("POST", headers=HEADERS, body=b'{"method": "ping"}') as response:
            await response.read(LIMIT)  # the connection is kept: a stale one is what clients like to retry on
        with pytest.raises(TransportError) as caught:
            await post(client, exchange)

    assert caught.value.sent
    assert exchange.sent
    assert len(peer.received("tools/call")) == 1


async def test_what_a_kept_connection_refuses_because_it_is_just_ending_was_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exchange = Exchange()
    async with FaultyHttp() as peer, client_for(peer.url) as client:
        await post(client)
        connector = client._session.connector
        assert connector is not None
        connect = connector.connect

        async def ending(*args: Any, **options: Any) -> Any:
            connection: Any = await connect(*args, **options)
            connection.transport.close()  # as when the end of the server's half arrives in this very moment
            return connection

        monkeypatch.setattr(connector, "connect", ending)
        with pytest.raises(TransportError, match="the connection") as caught:
            await post(client, exchange)

    assert not caught.value.sent
    assert not exchange.sent
    assert len(peer.received("tools/call")) == 1


async def test_a_body_that_breaks_off_is_a_transport_error() -> None:
    async with FaultyHttp("truncated") as peer, client_for(peer.url) as client:
        with pytest.raises(TransportError, match="middle of its answer") as caught:
            await post(client)

    assert caught.value.sent


async def test_a_request_counts_as_sent_as_soon_as_its_body_may_have_left() -> None:
    exchange = Exchange()
    async with FaultyHttp("hang") as peer, client_for(peer.url) as client:
        task = asyncio.create_task(post(client, exchange))
        await peer.seen("tools/call")
        assert exchange.sent
        peer.go_on.set()
        await task


async def test_a_closed_client_says_so_and_may_be_closed_again() -> None:
    async with FaultyHttp() as peer, client_for(peer.url) as client:
        await client.aclose()
        with pytest.raises(ConnectionLostError) as caught:
            await post(client)

    assert not caught.value.sent


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Key": f"{SECRET}\n"},
        {"X-Key": f"{SECRET}\0"},
        {"X-Key": f"{SECRET}\x01"},
        {"X Key": SECRET},
        {"Content-Length": SECRET},
    ],
)
async def test_headers_that_cannot_be_sent_are_refused_at_once(headers: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        HttpClient("http://127.0.0.1/mcp", server="docs", headers=headers)

    assert (caught.value.field or "").startswith("headers")
    assert SECRET not in str(caught.value)


# The start of a connection -----------------------------------------------------------


async def test_the_end_of_the_first_attempt_is_told_before_the_answer_is_there() -> None:
    connected = asyncio.Event()
    async with FaultyHttp("hang") as peer, client_for(peer.url, on_connected=connected.set) as client:
        task = asyncio.create_task(post(client))
        async with asyncio.timeout(5):
            await connected.wait()
        assert not task.done()
        peer.go_on.set()
        await task


async def test_the_end_of_the_first_attempt_is_told_once_and_also_when_it_failed() -> None:
    told: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    async with client_for(f"http://127.0.0.1:{port}/", on_connected=lambda: told.append(1)) as client:
        for _ in range(2):
            with pytest.raises(ServerUnavailableError):
                await post(client)

    assert told == [1]


# TLS ---------------------------------------------------------------------------------


async def test_a_trusted_certificate_is_accepted(tmp_path: Path) -> None:
    server_tls, client_tls = make_tls(tmp_path)
    async with FaultyHttp(tls=server_tls) as peer, client_for(peer.url, tls=client_tls) as client:
        assert b"jsonrpc" in await post(client)


async def test_an_unknown_certificate_is_refused_in_plain_words(tmp_path: Path) -> None:
    server_tls, _ = make_tls(tmp_path)
    exchange = Exchange()
    async with FaultyHttp(tls=server_tls) as peer, client_for(peer.url) as client:
        with pytest.raises(ServerUnavailableError, match="certificate that is not valid"):
            await post(client, exchange)

    assert peer.requests == []
    assert not exchange.sent


async def test_plain_http_behind_an_https_url_is_said_to_be_so() -> None:
    async with FaultyHttp() as peer, client_for(peer.url.replace("http:", "https:")) as client:
        with pytest.raises(ServerUnavailableError, match="TLS"):
            await post(client)


async def test_the_process_has_one_tls_context() -> None:
    assert shared_tls_context() is shared_tls_context()


# Policy ------------------------------------------------------------------------------


async def test_a_name_that_stands_for_a_blocked_address_is_refused_at_the_socket() -> None:
    """D16: whatever its spelling, and whatever DNS answers."""
    policy = UrlPolicy(blocked_networks=("127.0.0.0/8", "::1/128"))
    async with (
        FaultyHttp() as peer,
        client_for(f"http://localhost:{peer.port}/mcp?k={SECRET}", policy=policy) as client,
    ):
        with pytest.raises(ConfigurationError, match="policy blocks") as caught:
            await post(client)

    assert caught.value.field == "url"
    assert SECRET not in str(caught.value)
    assert peer.connections == 0


async def test_an_allowed_host_may_be_reached_at_a_blocked_address() -> None:
    policy = UrlPolicy(blocked_networks=("127.0.0.0/8",), allowed_hosts=("localhost",))
    async with FaultyHttp() as peer, client_for(f"http://localhost:{peer.port}/mcp", policy=policy) as client:
        assert b"jsonrpc" in await post(client)


async def test_proxies_of_the_environment_are_used_only_when_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with FaultyHttp() as peer, FaultyHttp() as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        async with client_for(peer.url) as direct, client_for(peer.url, trust_env=True) as proxied:
            await post(direct)
            await post(proxied)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        async with client_for(peer.url, trust_env=True) as excepted:
            await post(excepted)

    assert len(peer.requests) == 2
    assert [request.path for request in proxy.requests] == [peer.url]


async def test_a_proxy_that_is_down_or_refuses_is_told_apart_from_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
    monkeypatch.delenv("no_proxy", raising=False)
    async with client_for("https://docs.example/mcp", trust_env=True) as client:
        with pytest.raises(ServerUnavailableError, match="proxy that refused the connection"):
            await post(client)

    async with FaultyHttp("proxy_refuses", status=407) as proxy:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        async with client_for("https://docs.example/mcp", trust_env=True) as client:
            with pytest.raises(ServerUnavailableError, match=r"proxy .*\(HTTP 407\)"):
                await post(client)


async def test_a_proxy_that_speaks_no_http_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", f"socks5://user:{SECRET}@127.0.0.1:1080")
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(ConfigurationError, match="TRUST_ENV") as caught:
        HttpClient("https://docs.example/mcp", server="docs", trust_env=True)

    assert SECRET not in str(caught.value)


def test_a_name_cannot_be_looked_up_any_more_while_the_process_ends() -> None:
    async def ask() -> None:
        await asyncio.get_running_loop().shutdown_default_executor()
        async with client_for("http://localhost/mcp") as client:
            with pytest.raises(ServerUnavailableError, match="process is ending"):
                await post(client)

    asyncio.run(ask())


# Redirects ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_at_the_same_server_repeats_the_request_with_body_and_headers(status: int) -> None:
    async with (
        FaultyHttp("redirect", status=status) as peer,
        client_for(peer.url, headers={"X-Key": SECRET}) as client,
    ):
        assert b"jsonrpc" in await post(client)
        await post(client)

    assert [request.path for request in peer.requests] == ["/mcp", "/mcp/", "/mcp", "/mcp/"]
    assert peer.requests[1].body == CALL
    assert peer.requests[1].headers["x-key"] == SECRET


async def test_a_redirect_to_another_server_is_named_and_never_gets_the_request() -> None:
    """H05."""
    exchange = Exchange()
    async with (
        FaultyHttp() as other,
        FaultyHttp("redirect", to=f"{other.url}/{SECRET}") as peer,
        client_for(peer.url) as client,
    ):
        with pytest.raises(TransportError, match="put it into the URL") as caught:
            await post(client, exchange)

    assert f"127.0.0.1:{other.port}" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.status == 307
    assert not exchange.sent
    assert other.requests == []


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_lose_the_body_is_not_followed(status: int) -> None:
    async with FaultyHttp("redirect", status=status) as peer, client_for(peer.url) as client:
        with pytest.raises(TransportError, match="final slash") as caught:
            await post(client)

    assert (caught.value.status, caught.value.sent) == (status, False)
    assert len(peer.requests) == 1


async def test_a_redirect_to_a_login_page_asks_for_credentials() -> None:
    async with (
        FaultyHttp("redirect", status=302, to="/login?next=/mcp") as peer,
        client_for(peer.url) as client,
    ):
        with pytest.raises(AuthRequiredError, match="login") as caught:
            await post(client)

    assert caught.value.status == 302


async def test_a_circle_of_redirects_ends() -> None:
    async with FaultyHttp("redirect", to="/mcp") as peer, client_for(peer.url) as client:
        with pytest.raises(TransportError, match="more than 3 times"):
            await post(client)

    assert len(peer.requests) == 4
