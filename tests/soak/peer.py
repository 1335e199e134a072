"""What a server of the soak answers, whatever carries it. Standard library only: it starts in no time.

Every answer repeats the caller's own token, so that a wrong answer shows. Writes go to the journal, an
append-only file, before they are answered.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False  # as in ``typing``, which costs start-up time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Message = dict[str, Any]
    Send = Callable[[Message], None]
    Later = Callable[[float, Callable[[], None]], object]
    Listeners = dict[tuple["Peer", Any], Send]

MODERN = "2026-07-28"
META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
INFO = {"name": "soak", "version": "1.0"}
STEP_SECONDS = 0.01
"""Between two reports of progress."""

READS = {"readOnlyHint": True, "idempotentHint": True}
WRITES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}
PUTS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}

# ``write`` must never run twice. ``put`` may, where the row says that the server is trusted.
TOOLS = {
    "echo": READS,
    "slow": READS,
    "big": READS,
    "hang": READS,
    "write": WRITES,
    "put": PUTS,
    "touch": READS,
}
CHANGED = "notifications/tools/list_changed"


class Journal:
    """The file that says what was really done: one line for each write, whoever does it."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, token: str) -> None:
        # One system call for each line: many processes share the file, and any may be killed.
        os.write(self._descriptor, token.encode() + b"\n")

    def close(self) -> None:
        os.close(self._descriptor)


class Peer:
    """One conversation: requests come in by ``handle``, answers go out by what came with them."""

    def __init__(
        self, era: str, journal: Journal, later: Later, announce: Send, listeners: Listeners | None = None
    ) -> None:
        self._era = era
        self._journal = journal
        self._later = later
        self._announce = announce
        """Sends a message that belongs to no request; for the handshake eras."""
        self._open: dict[Any, Send] = {}
        """Requests without an answer: how theirs is sent."""
        self._listeners: Listeners = listeners if listeners is not None else {}
        """Open subscriptions, of all conversations that share this; for the stateless protocol."""

    def handle(self, message: Message, send: Send) -> None:
        """Take one message; answers go to ``send``, now or later."""
        method, params = message.get("method"), message.get("params") or {}
        if method == "notifications/cancelled":
            self.forget(params.get("requestId"))
        if method is None or "id" not in message:
            return
        request_id = message["id"]
        self._open[request_id] = send
        if META_VERSION in params.get("_meta", {}) and self._era != MODERN:
            self._fail(request_id, -32601, "Method not found")
        elif method == "tools/call":
            self._call(request_id, params)
        elif method == "subscriptions/listen":
            self._listen(request_id, params)
        elif (answer := self._answer(method, params)) is not None:
            self._finish(request_id, answer)
        else:
            self._fail(request_id, -32601, "Method not found")

    def forget(self, request_id: Any) -> None:
        """Never answer this request: it was cancelled, or its way back is gone."""
        self._open.pop(request_id, None)
        self._listeners.pop((self, request_id), None)

    # Answers ---------------------------------------------------------------------------

    def _answer(self, method: str, params: Message) -> Message | None:
        if method == "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": _capabilities(),
                "serverInfo": INFO,
            }
        if method == "server/discover" and self._era == MODERN:
            return {"supportedVersions": [MODERN], "capabilities": _capabilities(), **_CACHED}
        if method in ("ping", "logging/setLevel"):
            return {}
        if method in _LISTS:
            return {**_LISTS[method], **_CACHED}
        if method == "resources/read":
            uri = params["uri"]
            return {"contents": [{"uri": uri, "text": uri.rpartition("/")[2]}], **_CACHED}
        if method == "prompts/get":
            text = params.get("arguments", {}).get("text", "")
            return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
        if method == "completion/complete":
            return {"completion": {"values": [params["argument"]["value"]], "total": 1, "hasMore": False}}
        return None

    def _call(self, request_id: Any, params: Message) -> None:
        name, arguments = params["name"], params.get("arguments") or {}
        token = arguments.get("text", "")
        if name in ("write", "put"):
            self._journal.note(token)
        if name == "hang":
            return
        if name == "slow":
            self._step(request_id, params.get("_meta", {}).get("progressToken"), token, 1, arguments["steps"])
            return
        if name == "touch":
            self._changed()
        if name == "big":
            token += "x" * (arguments["size"] - len(token))
        self._finish(request_id, {"content": [{"type": "text", "text": token}], "isError": False})

    def _step(self, request_id: Any, progress_token: Any, token: str, step: int, steps: int) -> None:
        """Report one step of a slow call, and plan the next one or its end."""
        send = self._open.get(request_id)
        if send is None:
            return
        if step > steps:
            self._finish(request_id, {"content": [{"type": "text", "text": token}], "isError": False})
            return
        if progress_token is not None:
            report = {"progressToken": progress_token, "progress": step, "total": steps, "message": token}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": report})
        self._later(STEP_SECONDS, lambda: self._step(request_id, progress_token, token, step + 1, steps))

    def _finish(self, request_id: Any, result: Message) -> None:
        if self._era == MODERN:
            result = {
                "resultType": "complete",
                "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
                **result,
            }
        self._reply(request_id, {"result": result})

    def _fail(self, request_id: Any, code: int, text: str) -> None:
        self._reply(request_id, {"error": {"code": code, "message": text}})

    def _reply(self, request_id: Any, outcome: Message) -> None:
        send = self._open.pop(request_id, None)
        if send is not None:
            send({"jsonrpc": "2.0", "id": request_id, **outcome})

    # Changes ---------------------------------------------------------------------------

    def _listen(self, request_id: Any, params: Message) -> None:
        send = self._listeners[self, request_id] = self._open[request_id]
        wanted = {"notifications": params.get("notifications", {})}
        send(_tagged("notifications/subscriptions/acknowledged", request_id, wanted))

    def _changed(self) -> None:
        if self._era != MODERN:
            self._announce({"jsonrpc": "2.0", "method": CHANGED})
        for (_, request_id), send in list(self._listeners.items()):
            send(_tagged(CHANGED, request_id, {}))


def _tagged(method: str, subscription: Any, params: Message) -> Message:
    return {
        "jsonrpc": "2.0",
        "method": method,
        "params": {"_meta": {META_SUBSCRIPTION: subscription}, **params},
    }


def _capabilities() -> Message:
    return {"tools": {"listChanged": True}, "resources": {}, "prompts": {}, "completions": {}}


def _tool(name: str, annotations: Message) -> Message:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "inputSchema": schema, "annotations": annotations}


_CACHED = {"ttlMs": 0, "cacheScope": "private"}
_LISTS: dict[str, Message] = {
    "tools/list": {"tools": [_tool(name, annotations) for name, annotations in TOOLS.items()]},
    "resources/list": {"resources": [{"name": "first", "uri": "soak://item/first"}]},
    "resources/templates/list": {
        "resourceTemplates": [{"name": "item", "uriTemplate": "soak://item/{token}"}]
    },
    "prompts/list": {"prompts": [{"name": "say", "arguments": [{"name": "text"}]}]},
}


def encoded(message: Message) -> bytes:
    """Return a message as one line of JSON, without its end."""
    return json.dumps(message, separators=(",", ":")).encode()
