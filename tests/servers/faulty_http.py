"""An MCP server over HTTP that misbehaves as its scenario says; everything else it does well.

In a test's own loop::

    async with FaultyHttp("status", status=503) as peer:
        ...  # talk to peer.url; peer.requests is what came in

or as a process of its own, which says where it is: ``python -m tests.servers.faulty_http SCENARIO``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import json
import ssl
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Self

from tests.servers import payloads
from tests.servers.http_wire import Reply, Request, read_request

Handler = Callable[["FaultyHttp", Request, Reply], Awaitable[None]]

SESSION = "session-7f3a91c2"
INFO = {"name": "faulty-http", "version": "1"}
LISTEN = "subscriptions/listen"
FORGOTTEN = "a request of an earlier session"
CALL = "tools/call"

_SCENARIOS: dict[str, dict[str, Handler]] = {"plain": {}}


def scenario(name: str, on: str = CALL) -> Callable[[Handler], Handler]:
    """Register a handler for requests of one JSON-RPC method or one HTTP method."""

    def register(handler: Handler) -> Handler:
        _SCENARIOS.setdefault(name, {})[on] = handler
        return handler

    return register


class FaultyHttp:
    """The server: a scenario, options that the scenario reads, and a log of all requests.

    Whatever the scenario, ``modern`` makes it a server of 2026-07-28, and ``sessions`` one that knows
    only the session (of this name) that it gave itself: others get a 404, or the status ``forgets``.
    """

    def __init__(
        self,
        scenario: str = "plain",
        *,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
        **options: Any,
    ) -> None:
        self._handlers = _SCENARIOS[scenario]
        self._tls = tls
        self.port = port
        self.options = options
        self.requests: list[Request] = []
        self.connections = 0
        self.go_on = asyncio.Event()
        """Set by the test when a waiting handler may go on."""
        self.hang_up = asyncio.Event()
        """Set by the test when a subscription is to end in good order."""
        self.left = asyncio.Event()
        """Set when a client has closed a connection while it was being answered."""
        self._news = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: list[Reply] = []
        self._streams = 0
        self._ended = False

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self._ended = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}/mcp"

    async def seen(self, wanted: str, count: int = 1) -> Request:
        """Wait until ``count`` requests of a JSON-RPC or HTTP method came in; return the last of them."""
        return await self.seen_where(lambda item: wanted in (item.rpc_method, item.method), count)

    async def seen_where(self, wanted: Callable[[Request], bool], count: int = 1) -> Request:
        """Wait until ``count`` requests that are ``wanted`` came in; return the last of them."""
        async with asyncio.timeout(10), self._news:
            await self._news.wait_for(lambda: len(list(filter(wanted, self.requests))) >= count)
        return list(filter(wanted, self.requests))[count - 1]

    def received(self, wanted: str) -> list[Request]:
        return [item for item in self.requests if wanted in (item.rpc_method, item.method)]

    async def opened(self, count: int) -> None:
        """Wait until the client has opened the GET stream so many times."""
        async with asyncio.timeout(10), self._news:
            await self._news.wait_for(lambda: self._streams >= count)

    async def push(self, message: Any, **options: Any) -> None:
        """Send an event on the open GET stream."""
        await self._open[-1].event(message, **options)

    async def drop_stream(self) -> None:
        """Break the open GET stream off."""
        self._open.pop().reset()

    async def keep_stream(self, reply: Reply) -> None:
        self._open.append(reply)
        self._streams += 1
        async with self._news:
            self._news.notify_all()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._ended:  # accepted in the very moment of the end
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        try:
            await self._serve(reader, writer, self.connections)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client went away, or the test is over
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        early = b""
        while (request := await read_request(reader, number, early)) is not None:
            self.requests.append(request)
            async with self._news:
                self._news.notify_all()
            reply = Reply(writer)
            handler = self._handler_for(request)
            handling = asyncio.ensure_future(handler(self, request, reply))
            reading = asyncio.ensure_future(reader.read(1))
            try:
                await asyncio.wait({handling, reading}, return_when=asyncio.FIRST_COMPLETED)
                if not handling.done() and not _came_early(reading):
                    self.left.set()
                    return
                await handling
            except ConnectionError:
                return
            finally:
                for task in (handling, reading):
                    task.cancel()
                await asyncio.gather(handling, reading, return_exceptions=True)
            early = _came_early(reading)
            if reply.closes:
                return
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")  # for those who sent no HTTP, such as TLS

    def _handler_for(self, request: Request) -> Handler:
        session = self.options.get("sessions")
        opens = request.rpc_method in ("initialize", "server/discover")
        if session and not opens and request.headers.get("mcp-session-id") != session:
            return self._handlers.get(FORGOTTEN, forgotten)
        return self._handlers.get(request.rpc_method) or self._handlers.get(request.method) or plain


def _came_early(reading: asyncio.Future[bytes]) -> bytes:
    """Return what the client sent before it had its answer; nothing if it has gone."""
    if reading.cancelled() or reading.exception() is not None:
        return b""
    return reading.result()


def answer(request: Request, **result: Any) -> dict[str, Any]:
    """Build the answer to a request, in the envelope of its era."""
    if request.is_modern:
        envelope: dict[str, Any] = {"resultType": "complete", "_meta": {payloads.META_SERVER: INFO}}
        if request.rpc_method in ("tools/list", "server/discover"):
            envelope |= {"ttlMs": 0, "cacheScope": "private"}
        result = envelope | result
    return {"jsonrpc": "2.0", "id": request.rpc.get("id"), "result": result}


def note(method: str, meta: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    """Build a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params | ({"_meta": meta} if meta else {})}


def text(request: Request, said: str) -> dict[str, Any]:
    """Build the answer to a tool call."""
    return answer(request, content=[{"type": "text", "text": said}])


async def plain(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Do what a good server of the handshake era with JSON answers does."""
    match request.rpc_method:
        case "initialize":
            version = request.rpc["params"]["protocolVersion"]
            name = peer.options.get("sessions", SESSION)
            session = {"mcp-session-id": name} if peer.options.get("session", True) else {}
            body = answer(request, protocolVersion=version, capabilities={"tools": {}}, serverInfo=INFO)
            await reply.send(200, body, headers={**session, **peer.options.get("headers", {})})
        case "server/discover" if peer.options.get("modern"):
            offers = {"tools": {"listChanged": True}}
            await reply.send(200, answer(request, supportedVersions=[payloads.MODERN], capabilities=offers))
        case method if method == LISTEN and peer.options.get("modern"):
            about = {payloads.META_SUBSCRIPTION: request.rpc["id"]}
            wanted = request.rpc["params"].get("notifications", {})
            await reply.stream()
            await reply.event(note("notifications/subscriptions/acknowledged", about, notifications=wanted))
            await peer.keep_stream(reply)
            await peer.hang_up.wait()
            peer.hang_up.clear()
            await reply.event(answer(request))
            await reply.end()
        case "tools/list":
            names = peer.options.get("tools", ("echo",))
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
            await reply.send(200, answer(request, tools=tools))
        case "tools/call":
            await reply.send(200, text(request, str(request.rpc["params"].get("arguments", {}))))
        case "":
            await reply.send({"GET": 405, "DELETE": 200}.get(request.method, 202))
        case method if method.startswith("notifications/"):
            await reply.send(202)
        case _:
            await reply.send(200, answer(request))


# Statuses and bodies -----------------------------------------------------------------


@scenario("status")
@scenario("probe_status", on="server/discover")
@scenario("get_status", on="GET")
@scenario("note_status", on="notifications/roots/list_changed")
@scenario("proxy_refuses", on="CONNECT")
async def status(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    options = peer.options
    await reply.send(
        options.get("status", 200), options.get("body", b""), options.get("type"), options.get("headers")
    )


@scenario("rpc_error")
@scenario("probe_rpc_error", on="server/discover")
async def rpc_error(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    request_id = peer.options.get("id", request.rpc["id"])
    error = {"code": peer.options.get("code", -32602), "message": peer.options.get("message", "no")}
    await reply.send(peer.options["status"], {"jsonrpc": "2.0", "id": request_id, "error": error})


@scenario("wrong_id")
async def wrong_id(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await reply.send(200, {**text(request, "mine"), "id": "quite another"})


@scenario("batch")
async def batch(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}
    await reply.send(200, [note, {**text(request, "other"), "id": 999}, text(request, "mine")])


@scenario("gzip")
async def gzipped(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    body = gzip.compress(json.dumps(text(request, "packed")).encode())
    await reply.send(200, body, "Application/JSON; charset=utf-8", {"content-encoding": "gzip"})


@scenario("gzip_bomb")
async def gzip_bomb(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    body = gzip.compress(b'{"jsonrpc":"2.0","id":1,"result":{"x":"' + b"0" * 50_000_000 + b'"}}')
    await reply.send(200, body, "application/json", {"content-encoding": "gzip"})


@scenario("big_json")
async def big_json(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await reply.send(200, text(request, "x" * peer.options["size"]))


# Broken connections ------------------------------------------------------------------


@scenario("reset")
@scenario("probe_reset", on="server/discover")
async def reset(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    reply.reset()


@scenario("hang")
@scenario("probe_hang", on="server/discover")
@scenario("delete_hangs", on="DELETE")
async def hang(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await peer.go_on.wait()
    await plain(peer, request, reply)


@scenario("truncated")
@scenario("probe_truncated", on="server/discover")
async def truncated(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await reply.head(200, {"content-length": "1000"}, "application/json")
    await reply.raw(b'{"jsonrpc": "2.0", "id"')
    reply.closes = True


@scenario("no_http", on="POST")
async def no_http(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await reply.raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    reply.closes = True


# Redirects and cookies ---------------------------------------------------------------


@scenario("redirect", on="POST")
async def redirect(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    if request.path == peer.options.get("final", "/mcp/"):
        await plain(peer, request, reply)
        return
    await reply.send(peer.options.get("status", 307), headers={"location": peer.options.get("to", "/mcp/")})


@scenario("cookie", on="POST")
async def cookie(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await reply.send(
        200, text(request, request.headers.get("cookie", "")), headers={"set-cookie": "node=a=b"}
    )


# Event streams -----------------------------------------------------------------------


@scenario("sse")
async def sse(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    token = request.rpc["params"].get("_meta", {}).get("progressToken")
    await reply.stream()
    for step in range(1, 4):
        params = {"progressToken": token, "progress": step, "total": 3}
        await reply.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    await reply.event(text(request, "streamed"))
    await reply.end()


@scenario("sse_odd")
async def sse_odd(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await reply.stream()
    await reply.chunk(b"\xef\xbb\xbf: hello\r\n\r\nevent: ping\r\ndata: {}\r\n\r\n")
    await reply.chunk(b"event: message\r\nfoo: bar\r\ndata: not json\r\n\r\ndata:{\r")
    await reply.chunk(b'\ndata: "jsonrpc":"2.0","id":%d,\r\n' % request.rpc["id"])
    await reply.chunk(b'data: "result":{"content":[]}}\r\n\r')
    await reply.chunk(b"\n")
    await reply.end()


@scenario("sse_kept_open")
async def sse_kept_open(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await reply.stream()
    await reply.event(text(request, "answered"))
    await peer.go_on.wait()


@scenario("sse_cut")
async def sse_cut(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await reply.stream()
    await reply.chunk(b": working\n\ndata: {half")
    if peer.options.get("cleanly"):
        await reply.end()
    else:
        reply.closes = True


@scenario("sse_silent")
async def sse_silent(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await reply.stream()
    await reply.chunk(b": working\n\n")
    await peer.go_on.wait()


@scenario("resume")
async def resume(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await reply.stream()
    await reply.event(event_id="e1", retry=20)
    await reply.end()


@scenario("resume", on="GET")
async def resume_get(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    tries = len([item for item in peer.received("GET") if "last-event-id" in item.headers])
    if "last-event-id" not in request.headers:
        await reply.send(405)
    elif peer.options.get("refuses"):
        await reply.send(peer.options["refuses"])
    elif tries == 1:
        await reply.send(503)
    elif tries == 2:
        await reply.stream()
        await reply.event(event_id="e2")
        reply.reset()
    else:
        await reply.stream()
        call = peer.received(CALL)[-1]
        await reply.event(text(call, f"after {request.headers['last-event-id']}"), event_id="e3")
        await reply.end()


@scenario("resume_hangs")
async def resume_hangs(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await resume(peer, request, reply)


@scenario("resume_hangs", on="GET")
async def resume_hangs_get(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    if "last-event-id" in request.headers:
        await reply.stream()
        await reply.chunk(b": working\n\n")
        await peer.go_on.wait()
    else:
        await reply.send(405)


@scenario("big_event")
async def big_event(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await reply.stream()
    await reply.event(text(request, "x" * peer.options["size"]))
    await reply.end()


@scenario("server_request")
async def server_request(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    await reply.stream()
    await reply.event({"jsonrpc": "2.0", "id": "s1", "method": "roots/list"})
    reaction = await peer.seen_where(lambda item: item.rpc.get("id") == "s1")
    await reply.event(text(request, str(reaction.rpc["result"])))
    await reply.end()


@scenario("get_stream", on="GET")
async def get_stream(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    gone = peer.options.get("gone")
    if gone and "last-event-id" in request.headers:
        await reply.send(gone)
        return
    await reply.stream()
    await reply.event(event_id=f"g{len(peer.received('GET'))}", retry=peer.options.get("retry", 20))
    await peer.keep_stream(reply)
    await peer.go_on.wait()


# Sessions ----------------------------------------------------------------------------


async def forgotten(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    """Refuse a session of an earlier life."""
    error = {"code": -32600, "message": peer.options.get("message", "Session not found")}
    await reply.send(peer.options.get("forgets", 404), {"jsonrpc": "2.0", "id": None, "error": error})


@scenario("session_lost")
@scenario("notification_session_lost", on="notifications/roots/list_changed")
async def session_lost(peer: FaultyHttp, request: Request, reply: Reply) -> None:
    error = {"code": -32600, "message": peer.options.get("message", "Session not found")}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    await reply.send(peer.options.get("status", 404), b"" if peer.options.get("bare") else body)


async def main() -> None:
    parser = argparse.ArgumentParser(
        description="Serve one scenario; the first line printed is READY and the URL."
    )
    parser.add_argument("scenario", choices=sorted(_SCENARIOS))
    async with FaultyHttp(parser.parse_args().scenario) as peer:
        sys.stdout.write(f"READY {peer.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
