"""An MCP server over the HTTP transport of 2024-11-05, which misbehaves as its scenario says.

``FaultySse("plain")`` is used like ``FaultyHttp``: one event stream, and a POST for each message.
"""

from __future__ import annotations

from typing import Any

from tests.servers.faulty_http import FaultyHttp, scenario, text
from tests.servers.faulty_http import answer as result_of
from tests.servers.http_wire import Reply, Request

ENDPOINT = "/messages?session_id=4711"
STREAM = "sse_old"
"""The name of the scenario; the options say what it does wrong."""


class FaultySse(FaultyHttp):
    """The server.

    Options: ``endpoint`` (what it names, None for nothing), ``fault`` (status of the POST of a tool call,
    ``reset``, or ``drop`` for the stream's end), ``late`` (answers before the POST is done with),
    ``body`` of that status, ``get`` (status of the stream), ``noise`` (an event that is no JSON).
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(STREAM, **options)

    async def say(self, message: Any) -> None:
        """Send a message on the stream."""
        await self._open[-1].chunk(b"event: message\n")  # the rest of the event follows
        await self.push(message)


@scenario(STREAM, on="GET")
async def stream(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    if (status := peer.options.get("get")) is not None:
        await reply.send(status, peer.options.get("body", b""), peer.options.get("type"))
        return
    await reply.stream()
    endpoint = peer.options.get("endpoint", ENDPOINT)
    if endpoint is None:
        await reply.chunk(b": ping\n\n")
    else:
        await reply.chunk(f"event: endpoint\ndata: {endpoint}\n\n".encode())
    if peer.options.get("noise"):
        await reply.chunk(b"event: message\ndata: not json\n\nevent: ping\ndata: {}\n\n")
    await peer.keep_stream(reply)
    await peer.go_on.wait()


@scenario(STREAM, on="POST")
async def post(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    assert isinstance(peer, FaultySse)
    fault = peer.options.get("fault") if request.rpc_method == "tools/call" else None
    if fault == "reset":
        reply.reset()
    elif fault == "drop":
        await peer.drop_stream()
        await peer.go_on.wait()
    elif fault is not None:
        await reply.send(fault, peer.options.get("body", b""))
    elif peer.options.get("late"):
        await _answer(peer, request)
        await reply.send(202)
    else:
        await reply.send(202)
        await _answer(peer, request)


async def _answer(peer: FaultySse, request: Request) -> None:
    match request.rpc_method:
        case "initialize":
            info = {"name": "faulty-sse", "version": "1"}
            version = request.rpc["params"]["protocolVersion"]
            await peer.say(
                result_of(request, protocolVersion=version, capabilities={"tools": {}}, serverInfo=info)
            )
        case "tools/call":
            size = peer.options.get("size")
            await peer.say(text(request, "x" * size if size else "called"))
        case "tools/list":
            await peer.say(
                result_of(request, tools=[{"name": "echo", "inputSchema": {"type": "object"}}, {}])
            )
        case "ping":
            await peer.say(result_of(request))
