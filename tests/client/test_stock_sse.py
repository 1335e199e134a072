"""The HTTP transport of 2024-11-05, which only the link ``stock`` speaks."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from mcp_client_app.client.link import Link
from mcp_client_app.datatypes import ConnectionState, ManagerOptions, ServerSpec, Transport, UrlPolicy
from tests.client.conftest import MakeManager
from tests.client.linking import call, http_spec, linked, make, outcome, sdk_over_http
from tests.client.peers import Recorder
from tests.servers.faulty_sse import ENDPOINT, FaultySse

SECRET = "secret-4711"


def spec_for(peer: FaultySse, **fields: Any) -> ServerSpec:
    headers = {"Authorization": f"Bearer {SECRET}"}
    return http_spec(peer.url, transport=Transport.SSE, headers=headers, **fields)


def opened(peer: FaultySse, **fields: Any) -> AbstractAsyncContextManager[Link]:
    # ``own`` is asked for, and hands this transport over.
    return linked("own", spec_for(peer, **fields))


async def failure_of_opening(peer: FaultySse, **fields: Any) -> Any:
    link = make("own", spec_for(peer, **fields))
    try:
        return await outcome(link.open())
    finally:
        await link.close()


# Against the SDK's server --------------------------------------------------------------


def test_the_sdks_server_is_used_like_any_other(manage: MakeManager, recorder: Recorder):
    with sdk_over_http("--sse") as url:
        spec = ServerSpec(name="old", transport=Transport.SSE, url=url)
        manager = manage(spec, observers=[recorder])
        status = manager.connect("old")
        progress: list[Any] = []

        assert (status.protocol_version, status.server_name, status.link) == ("2025-11-25", "peer", "stock")
        assert manager.call_tool("old__add", {"a": 1, "b": 2}).structured == {"result": 3.0}
        assert manager.call_tool("old__slow", {"steps": 3}, on_progress=progress.append).text == "3 steps"
        assert [report.progress for report in progress] == [1, 2, 3]
        assert manager.call_tool("old__big", {"size": 3_000_000}).text == "x" * 3_000_000
        manager.call_tool("old__log", {"messages": ["one", "two"]})
        recorder.wait_for(lambda: len(recorder.logs) == 2)
        manager.call_tool("old__grow")
        recorder.wait_for(lambda: len(recorder.catalogues) >= 2)
        assert manager.call_tool("old__added").text == "here"
        cancelled: list[str] = []
        while not cancelled:
            with pytest.raises(TimeoutError):
                manager.call_tool("old__hang", {"label": "a"}, timeout=0.3)
            cancelled = manager.call_tool("old__cancellations").structured["result"]

    recorder.wait_for_state("old", ConnectionState.LOST)


def test_a_server_that_dies_in_a_call_loses_the_connection_at_once(manage: MakeManager, recorder: Recorder):
    with sdk_over_http("--sse") as url:
        manager = manage(ServerSpec(name="old", transport=Transport.SSE, url=url), observers=[recorder])
        manager.connect("old")
        with pytest.raises(Exception, match="event stream") as caught:
            manager.call_tool("old__crash")

    assert getattr(caught.value, "code", None) == "connection_lost"
    recorder.wait_for_state("old", ConnectionState.LOST)


# Against a faulty one ------------------------------------------------------------------

in_a_loop = pytest.mark.anyio


@in_a_loop
async def test_messages_go_where_the_server_says_with_the_headers_of_the_row():
    async with FaultySse() as peer, opened(peer) as link:
        assert (await call(link))["result"] == {"content": [{"type": "text", "text": "called"}]}

    methods = [item.rpc_method for item in peer.received("POST")]
    assert methods == ["initialize", "notifications/initialized", "tools/call"]
    assert {item.path for item in peer.received("POST")} == {ENDPOINT}
    assert {item.headers["authorization"] for item in peer.requests} == {f"Bearer {SECRET}"}


@in_a_loop
async def test_results_are_repaired_and_measured():
    async with FaultySse(size=2_000_000) as peer, opened(peer) as link:
        called = await call(link)
        listed = await outcome(link.request("tools/list", {}))

    assert called["size"] > 2_000_000
    assert [tool["name"] for tool in listed["tools"]] == ["echo"]


@in_a_loop
async def test_an_answer_counts_that_comes_before_the_post_is_done_with():
    async with FaultySse(late=True) as peer, opened(peer) as link:
        assert "content" in (await call(link))["result"]


@in_a_loop
@pytest.mark.parametrize(
    ("fault", "code", "outcome_of_call"),
    [
        (500, "server_unavailable", None),
        (400, "transport_error", "not_sent"),
        (401, "auth_required", None),
        (429, "throttled", None),
        ("reset", "transport_error", "unknown"),
    ],
)
async def test_a_post_that_fails_costs_its_own_call_only_and_at_once(
    fault: int | str, code: str, outcome_of_call: str | None
):
    async with FaultySse(fault=fault, body=f"no {SECRET}") as peer, opened(peer) as link:
        failure = (await call(link))["result"]

        assert failure[1] == code
        assert failure[3].get("outcome") == outcome_of_call
        assert SECRET not in failure[2]
        assert await outcome(link.request("ping", {})) == {}
        assert link.failure is None


@in_a_loop
async def test_a_json_rpc_error_in_the_refusal_is_the_answer():
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "out of order"}}
    async with FaultySse(fault=400, body=error) as peer, opened(peer) as link:
        failure = (await call(link))["result"]

    assert failure[:3] == ("ProtocolError", "protocol_error", "out of order")


@in_a_loop
async def test_a_server_that_has_forgotten_the_stream_ends_the_link():
    async with FaultySse(fault=404) as peer, opened(peer) as link:
        failure = (await call(link))["result"]
        await link.closed

    assert failure[1] == "connection_lost"
    assert failure[3]["outcome"] == "not_sent"


@in_a_loop
async def test_the_end_of_the_stream_fails_what_waits_and_what_comes_later():
    async with FaultySse(fault="drop") as peer, opened(peer) as link:
        first = (await call(link))["result"]
        later = await call(link)

    assert (first[1], first[3]["outcome"]) == ("connection_lost", "unknown")
    assert (later["result"][1], later["result"][3]["outcome"]) == ("connection_lost", "not_sent")


@in_a_loop
async def test_an_idle_server_that_goes_away_is_noticed():
    async with FaultySse() as peer, opened(peer) as link:
        await peer.drop_stream()
        await link.closed

        assert "event stream" in str(link.failure)


@in_a_loop
async def test_noise_on_the_stream_is_counted():
    async with FaultySse(noise=True) as peer, opened(peer) as link:
        assert link.diagnostics().noise_count == 1
        assert "not json" in link.diagnostics().noise_last


@in_a_loop
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"get": 401}, "auth_required"),
        ({"get": 404}, "transport_error"),
        ({"get": 503}, "server_unavailable"),
        ({"get": 200, "body": "<html>", "type": "text/html"}, "transport_error"),
        ({"endpoint": "http://127.0.0.2/messages"}, "transport_error"),
        ({"endpoint": "http://[half"}, "transport_error"),
    ],
)
async def test_opening_fails_with_the_reason(options: dict[str, Any], code: str):
    async with FaultySse(**options) as peer:
        assert (await failure_of_opening(peer))[1] == code
        assert peer.received("POST") == []


def test_a_server_that_names_no_endpoint_meets_the_time_limit(manage: MakeManager):
    async def play() -> tuple[Any, int]:
        async with FaultySse(endpoint=None) as peer:
            manager = manage(spec_for(peer, connect_timeout=0.3))
            failure = await outcome(manager.aconnect("docs"))
            await peer.left.wait()
            return failure, len(peer.received("POST"))

    failure, posts = asyncio.run(play())

    assert failure[1] == "timeout"
    assert posts == 0


@in_a_loop
async def test_a_cancelled_call_tells_the_server():
    async with FaultySse(fault=None) as peer, opened(peer) as link:
        peer.options["fault"] = 202  # accepted, and never answered
        calling = asyncio.create_task(link.request("tools/call", {"name": "echo"}))
        request = await peer.seen("tools/call")
        calling.cancel()
        await asyncio.wait({calling})
        cancelled = await peer.seen("notifications/cancelled")

    assert cancelled.rpc["params"]["requestId"] == request.rpc["id"]


@in_a_loop
async def test_an_event_over_the_limit_ends_the_link_and_says_so():
    async with FaultySse(size=300_000) as peer:
        options = ManagerOptions(max_frame_size=100_000)
        async with linked("own", spec_for(peer), options=options) as link:
            failure = (await call(link))["result"]

    assert failure[1] == "connection_lost"
    assert "larger than 100000 bytes" in failure[2]


@in_a_loop
async def test_the_url_policy_holds():
    async with FaultySse() as peer:
        options = ManagerOptions(url_policy=UrlPolicy(blocked_networks=("127.0.0.0/8",)))
        link = make("own", spec_for(peer), options)
        failure = await outcome(link.open())
        await link.close()

    assert failure[1] == "configuration"
    assert peer.requests == []
