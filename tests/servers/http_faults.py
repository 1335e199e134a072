"""More ways for an HTTP server to misbehave; importing this module adds them to the table of scenarios."""

from __future__ import annotations

import asyncio
import contextlib
import json

from tests.servers.faulty_http import FORGOTTEN, FaultyHttp, answer, forgotten, plain, scenario, text
from tests.servers.http_wire import Reply, Request
from tests.servers.payloads import META_SUBSCRIPTION as SUBSCRIPTION

__all__ = ["SUBSCRIPTION"]


def encoded(peer: FaultyHttp, request: Request) -> bytes:
    """Return the answer of a tool that says ``said``, in the ``encoding`` of the options."""
    body = json.dumps(text(request, peer.options.get("said", "hi")), ensure_ascii=False)
    return body.encode(peer.options.get("encoding", "utf-8"))


@scenario("typed")
async def typed(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Answer with the content type ``type``."""
    await reply.send(200, encoded(peer, request), peer.options["type"])


@scenario("http10")
async def http10(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Answer as HTTP/1.0 does: the end of the connection ends the body."""
    await reply.raw(b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n" + encoded(peer, request))
    reply.closes = True


@scenario("raw")
async def raw(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Send the bytes ``bytes`` and close, or wait with ``waits``."""
    await reply.raw(peer.options["bytes"])
    if peer.options.get("waits"):
        await peer.go_on.wait()
    reply.closes = True


@scenario("slow_refusal")
@scenario("probe_slow_refusal", on="server/discover")
@scenario("handshake_slow_refusal", on="initialize")
async def slow_refusal(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Refuse with ``status``, and never end the body that says why."""
    headers = {"content-length": "1000", **peer.options.get("headers", {})}
    await reply.head(peer.options["status"], headers, "text/plain")
    await reply.raw(b"because")
    await peer.go_on.wait()


@scenario("trickle")
async def trickle(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Begin an answer, byte by byte, that never comes to an end."""
    await reply.head(200, {"content-length": "1000000"}, "application/json")
    while not peer.go_on.is_set():
        await reply.raw(b" ")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(peer.go_on.wait(), 0.02)


@scenario("redirect_calls")
async def redirect_calls(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Send each tool call on to a path of its own."""
    if request.path == "/mcp":
        await reply.send(307, headers={"location": f"/mcp/calls/{request.rpc['id']}"})
    else:
        await plain(peer, request, reply)


@scenario("cookies")
@scenario("cookies", on="initialize")
@scenario("cookies", on="server/discover")
async def cookies(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Set a cookie with each answer; a tool tells the cookies it got."""
    if request.rpc_method == "tools/call":
        await reply.send(200, text(request, request.headers.get("cookie", "none")))
        return
    peer.options["headers"] = {"set-cookie": f"node={peer.options['node']}; Path=/"}
    if request.rpc_method == "initialize":
        await plain(peer, request, reply)
    else:
        await reply.send(404)


@scenario("half_closed")
async def half_closed(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Answer, and close the sending half of the connection without having said so."""
    await plain(peer, request, reply)
    reply.writer.write_eof()
    await peer.go_on.wait()


@scenario("get_refused_for_a_while", on="GET")
async def get_refused_for_a_while(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Refuse the stream with ``status`` and ``headers`` until it is asked for the second time."""
    now = asyncio.get_running_loop().time()
    if len(peer.received("GET")) == 1:
        peer.options["refused_at"] = now
        await reply.send(peer.options["status"], headers=peer.options.get("headers"))
        return
    peer.options["returned_after"] = now - peer.options["refused_at"]
    await reply.stream()
    await peer.keep_stream(reply)
    await peer.go_on.wait()


@scenario("big_events", on="GET")
async def big_events(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Send an event over every limit; whoever has had it gets the ones that follow."""
    await reply.stream()
    if "last-event-id" not in request.headers:
        await reply.event(answer(request, x="x" * peer.options["size"]), event_id="big", retry=20)
    await peer.keep_stream(reply)
    await peer.go_on.wait()


@scenario("overloaded")
@scenario("overloaded", on="resources/read")
async def overloaded(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Refuse calls and reads with ``status`` and ``headers``."""
    await reply.send(peer.options["status"], b"", None, peer.options["headers"])


@scenario("reset_first")
async def reset_first(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Keep all calls waiting, then reset the connection of the first and answer the others."""
    await peer.go_on.wait()
    if peer.received("tools/call")[0] is request:
        reply.reset()
    else:
        await plain(peer, request, reply)


@scenario("packed")
async def packed(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Answer with the bytes ``body``, which are said to be in the content coding ``coding``."""
    headers = {"content-encoding": peer.options["coding"]}
    await reply.send(200, peer.options["body"], "application/json", headers)


@scenario("forgets_together", on=FORGOTTEN)
async def forgets_together(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Refuse the session of an earlier life once ``together`` calls have come."""
    if request.rpc_method == "tools/call":
        await peer.seen("tools/call", peer.options["together"])
    await forgotten(peer, request, reply)


@scenario("first_hangs")
async def first_hangs(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Answer the first call when the test says so, the others at once."""
    if peer.received("tools/call")[0] is request:
        await peer.go_on.wait()
    await plain(peer, request, reply)
