"""The SDK's and other code's HTTP through our module."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from mcp_client_app.client.exchange import Exchange, recorded
from mcp_client_app.client.failures import from_foreign
from mcp_client_app.client.http import HttpClient
from mcp_client_app.client.httpx_adapter import HttpxAdapter, httpx_client
from mcp_client_app.datatypes import UrlPolicy
from mcp_client_app.exceptions import ConfigurationError, ServerUnavailableError, TransportError
from tests.servers.faulty_http import FaultyHttp

pytestmark = pytest.mark.anyio

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {"a": 1}}}
SECRET = "secret-4711"


@asynccontextmanager
async def adapted(url: str, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    client = HttpClient(url, server="docs", headers={"Authorization": SECRET}, **options)
    try:
        async with httpx_client(HttpxAdapter(client)) as http:
            yield http
    finally:
        await client.aclose()


async def test_a_request_goes_out_with_our_headers_and_its_answer_comes_back_decoded():
    async with FaultyHttp("gzip") as peer, adapted(peer.url) as http:
        answer = await http.post(peer.url, json=CALL, headers={"x-mine": "yes"})

    assert answer.json()["result"]["content"][0]["text"] == "packed"
    assert "content-encoding" not in answer.headers
    sent = peer.requests[0].headers
    assert (sent["x-mine"], sent["authorization"], sent["user-agent"]) == (
        "yes",
        SECRET,
        "django-mcp-client-app",
    )
    assert sent["content-type"] == "application/json"


async def test_paths_of_the_same_server_can_be_asked_and_other_servers_not():
    async with FaultyHttp() as peer, adapted(peer.url) as http:
        await http.get(peer.url.replace("/mcp", "/.well-known/oauth-protected-resource?x=1"))
        with pytest.raises(httpx2.TransportError, match="another server"):
            await http.get("http://127.0.0.2:9/elsewhere")

    assert [item.path for item in peer.requests] == ["/.well-known/oauth-protected-resource?x=1"]


async def test_the_cookies_of_the_connection_are_ours_alone():
    async with FaultyHttp("cookie") as peer, adapted(peer.url) as http:
        first = await http.post(peer.url, json=CALL)
        second = await http.post(peer.url, json=CALL)

    assert "set-cookie" not in first.headers
    assert second.json()["result"]["content"][0]["text"] == "node=a=b"


async def test_statuses_and_their_headers_are_passed_on():
    headers = {"www-authenticate": "Bearer x=y"}
    async with FaultyHttp("status", status=401, headers=headers) as peer, adapted(peer.url) as http:
        answer = await http.post(peer.url, json=CALL)

    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer x=y")


async def test_event_streams_come_as_they_are_sent_and_can_be_left():
    async with FaultyHttp("sse_kept_open") as peer, adapted(peer.url) as http:
        async with http.stream("POST", peer.url, json=CALL) as answer:
            async for chunk in answer.aiter_bytes():
                assert b"answered" in chunk
                break
        await peer.left.wait()


async def test_a_fault_of_the_network_is_httpxs_outside_and_ours_inside():
    async with adapted("http://127.0.0.1:9/mcp") as http:
        with pytest.raises(httpx2.TransportError) as caught:
            await http.post("http://127.0.0.1:9/mcp", json=CALL)

    assert isinstance(caught.value.__cause__, ServerUnavailableError)
    assert from_foreign(caught.value, server="docs", method="x") is caught.value.__cause__


async def test_a_body_that_breaks_off_is_a_read_error_with_our_reason():
    async with FaultyHttp("truncated") as peer, adapted(peer.url) as http:
        with pytest.raises(httpx2.ReadError) as caught:
            await http.post(peer.url, json=CALL)

    assert isinstance(caught.value.__cause__, TransportError)


async def test_the_exchange_of_the_caller_learns_whether_anything_was_sent():
    async with FaultyHttp("reset") as peer, adapted(peer.url) as http:
        with recorded(Exchange()) as exchange, pytest.raises(httpx2.TransportError):
            await http.post(peer.url, json=CALL)

    assert exchange.sent


async def test_the_url_policy_holds():
    async with FaultyHttp() as peer:
        policy = UrlPolicy(blocked_networks=("127.0.0.0/8",))
        with pytest.raises(ConfigurationError):
            async with adapted(peer.url, policy=policy):
                pass
        async with adapted(peer.url.replace("127.0.0.1", "localhost"), policy=policy) as http:
            with pytest.raises(httpx2.TransportError, match="URL policy"):
                await http.post(peer.url.replace("127.0.0.1", "localhost"), json=CALL)

    assert peer.requests == []
