"""A scriptable raw MCP server over stdio: well-behaved, until a scenario says otherwise.

Written without the SDK, which would never send what this peer sends. It runs as
``python -S -E tests/servers/faulty_stdio.py --scenario banner --scenario die_on_call=7 ...``;
scenarios combine, and ``--help`` prints them all. It speaks the handshake versions, and with
``--era 2026-07-28`` also the stateless protocol. Whatever a scenario makes it ignore, it ends by
itself after ``--lifetime`` seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys

if not __package__:  # run as a script: make the package ``tests`` importable from any directory
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.servers import answer_faults as answer_faults  # registers its scenarios
from tests.servers import input_scripts as input_scripts
from tests.servers import payloads, process_faults, scenarios
from tests.servers.wire import STDERR, Wire

TYPE_CHECKING = False  # as in ``typing``, which costs start-up time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Message = dict[str, Any]
    ToolFunction = Callable[["Peer", Message, dict[str, Any]], "dict[str, Any] | None"]


class RefusalError(Exception):
    """A JSON-RPC error to answer with."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}


class Peer:
    """One server process: answers requests and lets the active scenarios interfere."""

    def __init__(self, wire: Wire, active: dict[str, str], era: str) -> None:
        self.wire = wire
        self.active = active
        """Scenario to value, in the order of the command line."""
        self.era = era
        self.tools = list(payloads.TOOLS)
        self.unanswered: dict[Any, Message] = {}
        """Requests that came in and have no answer yet, by id."""
        self.meeting: list[Message] = []
        self.questions: dict[Any, dict[str, Any]] = {}
        """The client's replies to what this server asked, by the id of the call that waits for them."""
        self.listeners: set[Any] = set()
        """Ids of the open ``subscriptions/listen`` requests."""

    # What comes in ----------------------------------------------------------------

    def serve(self) -> None:
        """Run until standard input ends."""
        for hook, value in self._hooks(scenarios.AT_START):
            hook(self, value)
        self.wire.run(self.on_message)

    def on_message(self, message: Message) -> None:
        """Handle one message completely."""
        for hook, value in self._hooks(scenarios.ON_MESSAGE):
            if hook(self, value, message):
                return
        method = message.get("method")
        if method == "notifications/cancelled":
            self.forget((message.get("params") or {}).get("requestId"))
        elif method is not None and "id" in message:
            self.unanswered[message["id"]] = message
            self._answer(message)

    def forget(self, request_id: Any) -> None:
        """Never answer this request: it was cancelled."""
        self.unanswered.pop(request_id, None)
        self.listeners.discard(request_id)
        self.meeting = [message for message in self.meeting if message["id"] != request_id]

    def _answer(self, message: Message) -> None:
        try:
            if is_modern(message):
                self._check_version(message)
            handler = METHODS.get(message["method"])
            if handler is None:
                raise RefusalError(payloads.METHOD_NOT_FOUND, "Method not found", message["method"])
            result = handler(self, message)
        except RefusalError as refusal:
            self.reply(message, {"error": refusal.error})
        else:
            if result is not None:
                self.finish(message, result)

    def _check_version(self, message: Message) -> None:
        version = message["params"]["_meta"][payloads.META_VERSION]
        if self.era != payloads.MODERN:
            # A server of the handshake eras knows neither the method nor the envelope.
            if message["method"] == "server/discover":
                raise RefusalError(payloads.METHOD_NOT_FOUND, "Method not found", message["method"])
        elif version != payloads.MODERN:
            raise RefusalError(
                payloads.UNSUPPORTED_VERSION,
                "Unsupported protocol version",
                {"supported": [payloads.MODERN], "requested": version},
            )

    # What goes out ----------------------------------------------------------------

    def finish(self, message: Message, result: Any) -> None:
        """Answer a request with its result, unless it was cancelled meanwhile."""
        if message["id"] not in self.unanswered:
            return
        for hook, value in self._hooks(scenarios.ON_RESULT):
            result = hook(self, value, message, result)
            if result is scenarios.NO_ANSWER:
                return
        self.deliver(message, result)

    def deliver(self, message: Message, result: Any) -> None:
        """Send a result, in the envelope of the request's era."""
        if is_modern(message) and isinstance(result, dict):
            result = {
                "resultType": "complete",
                "_meta": {payloads.META_SERVER: payloads.SERVER_INFO},
                **result,
            }
            if message["method"] in ("tools/list", "server/discover"):
                result = {"ttlMs": 0, "cacheScope": "private", **result}
        self.reply(message, {"result": result})

    def reply(self, message: Message, outcome: dict[str, Any]) -> None:
        """Send the answer: ``result`` or ``error``, or what a scenario makes of it."""
        self.unanswered.pop(message["id"], None)
        frames = [{"jsonrpc": "2.0", "id": message["id"], **outcome}]
        for hook, value in self._hooks(scenarios.ON_REPLY):
            frames = hook(self, value, message, frames)
        for frame in frames:
            self.wire.send(frame)

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self.wire.send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def log(self, line: str) -> None:
        """Write one line to standard error."""
        self.wire.write(line.encode() + b"\n", STDERR)

    def _hooks(self, table: dict[str, Callable[..., Any]]) -> list[tuple[Callable[..., Any], str]]:
        return [(table[name], value) for name, value in self.active.items() if name in table]


def is_modern(message: Message) -> bool:
    """Say whether a request carries the envelope of the stateless protocol."""
    params = message.get("params")
    return isinstance(params, dict) and payloads.META_VERSION in params.get("_meta", {})


# Methods: each returns the result, or None if the answer comes later.


def initialize(peer: Peer, message: Message) -> dict[str, Any]:
    asked = message["params"].get("protocolVersion")
    known = asked if asked in payloads.HANDSHAKE_VERSIONS else payloads.HANDSHAKE_VERSIONS[-1]
    return {
        "protocolVersion": known,
        "capabilities": {"tools": {"listChanged": True}, "logging": {}},
        "serverInfo": payloads.SERVER_INFO,
        "instructions": payloads.INSTRUCTIONS,
    }


def discover(peer: Peer, message: Message) -> dict[str, Any]:
    if peer.era != payloads.MODERN:
        raise RefusalError(payloads.METHOD_NOT_FOUND, "Method not found", message["method"])
    return {
        "supportedVersions": [payloads.MODERN],
        "capabilities": {"tools": {"listChanged": True}},
        "instructions": payloads.INSTRUCTIONS,
    }


def ping(peer: Peer, message: Message) -> dict[str, Any]:
    if is_modern(message):
        raise RefusalError(payloads.METHOD_NOT_FOUND, "Method not found", message["method"])
    return {}


def set_level(peer: Peer, message: Message) -> dict[str, Any]:
    return {}


def list_tools(peer: Peer, message: Message) -> dict[str, Any]:
    return {"tools": peer.tools}


def listen(peer: Peer, message: Message) -> None:
    if not is_modern(message):
        raise RefusalError(payloads.METHOD_NOT_FOUND, "Method not found", message["method"])
    peer.listeners.add(message["id"])
    peer.notify(
        "notifications/subscriptions/acknowledged",
        {
            "_meta": {payloads.META_SUBSCRIPTION: message["id"]},
            "notifications": message["params"].get("notifications", {}),
        },
    )


def call_tool(peer: Peer, message: Message) -> dict[str, Any] | None:
    name = message["params"]["name"]
    arguments = message["params"].get("arguments") or {}
    try:
        return CALLS[name](peer, message, arguments)
    except KeyError as error:
        raise RefusalError(payloads.INVALID_PARAMS, f"Unknown tool or missing argument: {error}") from None
    except OSError as error:
        return {**payloads.text_result(str(error)), "isError": True}


METHODS: dict[str, Callable[[Peer, Message], dict[str, Any] | None]] = {
    "initialize": initialize,
    "server/discover": discover,
    "ping": ping,
    "logging/setLevel": set_level,
    "tools/list": list_tools,
    "tools/call": call_tool,
    "subscriptions/listen": listen,
}


# Tools.


def add(peer: Peer, message: Message, arguments: dict[str, Any]) -> dict[str, Any]:
    total = arguments["a"] + arguments["b"]
    return payloads.text_result(str(total), structuredContent={"result": total})


def sleep(peer: Peer, message: Message, arguments: dict[str, Any]) -> None:
    answer = payloads.text_result(f"slept {arguments['seconds']}")
    peer.wire.later(float(arguments["seconds"]), lambda: peer.finish(message, answer))


def wait(peer: Peer, message: Message, arguments: dict[str, Any]) -> None:
    peer.wire.once_exists(arguments["path"], lambda: peer.finish(message, payloads.text_result("there")))


def meet(peer: Peer, message: Message, arguments: dict[str, Any]) -> None:
    peer.meeting.append(message)
    if len(peer.meeting) >= arguments["count"]:
        # Last come, first served: answers must find their calls by id, not by order.
        together, peer.meeting = peer.meeting[::-1], []
        for each in together:
            peer.finish(each, payloads.text_result(f"met {len(together)}"))


def fail(peer: Peer, message: Message, arguments: dict[str, Any]) -> dict[str, Any]:
    return {**payloads.text_result(arguments["message"]), "isError": True}


def write(peer: Peer, message: Message, arguments: dict[str, Any]) -> dict[str, Any] | None:
    with open(arguments["path"], "a", encoding="utf-8") as file:
        file.write(arguments["text"] + "\n")
    answer = payloads.text_result("written")
    if "gate" not in arguments:
        return answer
    # Done, and not told: what may happen to a caller meanwhile is the caller's affair.
    peer.wire.once_exists(arguments["gate"], lambda: peer.finish(message, answer))
    return None


def read(peer: Peer, message: Message, arguments: dict[str, Any]) -> dict[str, Any]:
    with open(arguments["path"], encoding="utf-8") as file:
        return payloads.text_result(file.read())


CALLS: dict[str, ToolFunction] = {
    "echo": lambda peer, message, arguments: payloads.text_result(arguments["text"]),
    "add": add,
    "sleep": sleep,
    "hang": lambda peer, message, arguments: None,
    "wait": wait,
    "meet": meet,
    "fail": fail,
    "big": lambda peer, message, arguments: payloads.text_result("x" * arguments["bytes"]),
    "env": lambda peer, message, arguments: payloads.text_result(json.dumps(dict(os.environ))),
    "cwd": lambda peer, message, arguments: payloads.text_result(os.getcwd()),
    "pid": lambda peer, message, arguments: payloads.text_result(str(os.getpid())),
    "read": read,
    "write": write,
}


def main(argv: list[str] | None = None) -> int:
    """Serve as the command line says; return the exit status."""
    parser = argparse.ArgumentParser(
        description="A scriptable raw MCP server over stdio.",
        epilog="scenarios:\n" + scenarios.table(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--scenario", action="append", default=[], metavar="NAME[=VALUE]", type=scenarios.parse
    )
    parser.add_argument("--era", default="handshake", choices=["handshake", payloads.MODERN])
    parser.add_argument("--pid-file", metavar="PATH", help="append the process id, one line for each start")
    parser.add_argument("--wire-log", metavar="PATH", help="append every frame received")
    parser.add_argument("--once", metavar="PATH", help="misbehave only if there is no PATH yet, and make it")
    parser.add_argument("--until", metavar="PATH", help="misbehave at each start until there is a PATH")
    parser.add_argument("--lifetime", metavar="SECONDS", type=int, default=120, help="end after this time")
    options = parser.parse_args(argv)

    # Not even a peer that ignores everything outlives the tests by much.
    signal.alarm(options.lifetime)
    if options.pid_file:
        append(options.pid_file, f"{os.getpid()}\n")
    active = dict(options.scenario)
    if any(path and os.path.exists(path) for path in (options.once, options.until)):
        active = {}
    if options.once:
        append(options.once, "")
    peer = Peer(Wire(options.wire_log), active, options.era)
    try:
        peer.serve()
        process_faults.linger(peer)
    except BrokenPipeError:
        return 0
    return 0


def append(path: str, text: str) -> None:
    """Append to a file in one write, as several peers may share it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, text.encode())
    os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
