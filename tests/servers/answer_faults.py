"""Scenarios of what is answered: handshakes, listings, results, replies and what comes beside them."""

from __future__ import annotations

import json

from tests.servers import payloads
from tests.servers.scenarios import NO_ANSWER, ON_MESSAGE, ON_REPLY, ON_RESULT, scenario

TYPE_CHECKING = False  # as in ``typing``, which costs start-up time
if TYPE_CHECKING:
    from typing import Any

    from tests.servers.faulty_stdio import Message, Peer

    Frames = list[dict[str, Any]]


def is_call(message: Message) -> bool:
    return bool(message.get("method") == "tools/call")


# On a result -------------------------------------------------------------------------


@scenario(ON_RESULT, "the handshake names a protocol version that was never offered", "2099-01-01")
def unknown_version(peer: Peer, value: str, message: Message, result: Any) -> Any:
    return {**result, "protocolVersion": value} if message["method"] == "initialize" else result


@scenario(ON_RESULT, "the handshake advertises nothing (all tools are there)")
def no_capabilities(peer: Peer, value: str, message: Message, result: Any) -> Any:
    return {**result, "capabilities": {}} if "capabilities" in result else result


@scenario(ON_RESULT, "the handshake's answer has the protocol version and nothing else")
def bare_initialize(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if message["method"] == "initialize":
        return {"protocolVersion": result["protocolVersion"]}
    return result


@scenario(
    ON_RESULT, "one good tool and one of each bad kind, or of the kind named (see payloads.BAD_TOOLS)", "all"
)
def bad_tools(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if message["method"] != "tools/list":
        return result
    bad = list(payloads.BAD_TOOLS.values()) if value == "all" else [payloads.BAD_TOOLS[value]]
    return {"tools": [payloads.GOOD_TOOL, *bad]}


@scenario(ON_RESULT, "a listing that is no list", "null")
def bad_listing(peer: Peer, value: str, message: Message, result: Any) -> Any:
    return {"tools": json.loads(value)} if message["method"] == "tools/list" else result


@scenario(ON_RESULT, "every page of a listing has the same tool and the same cursor")
def endless_cursor(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if message["method"] != "tools/list":
        return result
    return {"tools": [payloads.GOOD_TOOL], "nextCursor": "same"}


@scenario(ON_RESULT, "the pages of a listing lead round in a circle of three cursors")
def cycling_cursor(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if message["method"] != "tools/list":
        return result
    following = {None: "a", "a": "b", "b": "c", "c": "a"}
    return {"tools": [payloads.GOOD_TOOL], "nextCursor": following[_cursor(message)]}


@scenario(ON_RESULT, "a listing of three pages with one tool each")
def three_pages(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if message["method"] != "tools/list":
        return result
    page = int(_cursor(message) or 0)
    more = {"nextCursor": str(page + 1)} if page < 2 else {}
    return {"tools": payloads.TOOLS[page : page + 1], **more}


@scenario(ON_RESULT, "content blocks that are unknown, of the wrong kind or no blocks at all")
def unknown_blocks(peer: Peer, value: str, message: Message, result: Any) -> Any:
    return payloads.UNKNOWN_BLOCKS if is_call(message) else result


@scenario(ON_RESULT, "lone surrogates, NUL, NaN, an infinity and integers beyond 64 bits in a result")
def strange_values(peer: Peer, value: str, message: Message, result: Any) -> Any:
    return payloads.STRANGE_VALUES if is_call(message) else result


@scenario(ON_RESULT, "the content of a result is null, or `missing`", "null")
def null_content(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if not is_call(message):
        return result
    return {} if value == "missing" else {"content": None}


@scenario(
    ON_RESULT, "the content of a result is this JSON instead of a list", '{"type":"text","text":"alone"}'
)
def not_a_list_content(peer: Peer, value: str, message: Message, result: Any) -> Any:
    return {"content": json.loads(value)} if is_call(message) else result


@scenario(ON_RESULT, "no content blocks, only structured content")
def structured_only(peer: Peer, value: str, message: Message, result: Any) -> Any:
    return {"content": [], "structuredContent": {"answer": 42}} if is_call(message) else result


@scenario(ON_RESULT, "an empty list of content and nothing else")
def empty_content(peer: Peer, value: str, message: Message, result: Any) -> Any:
    return {"content": []} if is_call(message) else result


@scenario(ON_RESULT, "a result that is this JSON instead of an object", "[]")
def result_not_object(peer: Peer, value: str, message: Message, result: Any) -> Any:
    return json.loads(value) if is_call(message) else result


@scenario(
    ON_RESULT, "`echo` promises an integer `n`; the result is `wrong`, `missing` or an `error`", "wrong"
)
def output_schema_mismatch(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if message["method"] == "tools/list":
        promise = {**payloads.GOOD_TOOL, "outputSchema": payloads.integer_output("n")}
        return {"tools": [promise, *payloads.TOOLS[1:]]}
    return payloads.OUTPUT_MISMATCHES[value] if is_call(message) else result


@scenario(ON_RESULT, "so many progress reports before the answer, if the call asks for them", "3")
def progress(peer: Peer, value: str, message: Message, result: Any) -> Any:
    token = _progress_token(message)
    if is_call(message) and token is not None:
        for step in range(1, int(value) + 1):
            report = {
                "progressToken": token,
                "progress": step,
                "total": int(value),
                "message": f"step {step}",
            }
            peer.notify("notifications/progress", report)
    return result


@scenario(ON_RESULT, "three log messages before the answer to a call")
def log_messages(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if is_call(message):
        for level in ("debug", "warning", "error"):
            params = {"level": level, "logger": "faulty", "data": {"text": f"a {level} message"}}
            peer.notify("notifications/message", params)
    return result


@scenario(ON_RESULT, "asks for elicitation, sampling, roots, ping, nonsense; the answer quotes the replies")
def server_request(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if not is_call(message):
        return result
    peer.questions[message["id"]] = {}
    for request in payloads.SERVER_REQUESTS:
        peer.wire.send({"jsonrpc": "2.0", "id": f"{request['method']} {message['id']}", **request})
    return NO_ANSWER


@scenario(ON_MESSAGE, of="server_request")
def _collect_replies(peer: Peer, value: str, message: Message) -> bool:
    if "method" in message:
        return False
    method, _, call_id = message["id"].partition(" ")
    call = next(call for key, call in peer.unanswered.items() if str(key) == call_id)
    replies = peer.questions[call["id"]]
    replies[method] = message.get("error", message.get("result"))
    if len(replies) == len(payloads.SERVER_REQUESTS):
        peer.deliver(call, payloads.text_result(json.dumps(replies)))
    return True


@scenario(ON_MESSAGE, "answers these methods with these results, or, if null, never: an object in JSON", "{}")
def instead(peer: Peer, value: str, message: Message) -> bool:
    results = json.loads(value)
    if message.get("method") not in results:
        return False
    peer.unanswered[message["id"]] = message
    if results[message["method"]] is not None:
        peer.finish(message, results[message["method"]])
    return True


@scenario(ON_RESULT, of="instead")
def _advertise(peer: Peer, value: str, message: Message, result: Any) -> Any:
    if "capabilities" not in result:
        return result
    kinds = {method.partition("/")[0] for method in json.loads(value) if method.endswith("/list")}
    offered = {kind: {"listChanged": True} for kind in kinds}
    return {**result, "capabilities": {**result["capabilities"], **offered}}


@scenario(
    ON_MESSAGE,
    "answers a call with its argument `lines`, byte for byte, or [line, how often]; `<id>` is the call's id",
)
def as_told(peer: Peer, value: str, message: Message) -> bool:
    if not is_call(message) or "lines" not in message["params"].get("arguments", {}):
        return False
    for item in message["params"]["arguments"]["lines"]:
        line, count = (item, 1) if isinstance(item, str) else item
        data = line.replace("<id>", str(message["id"])).encode("latin-1") + b"\n"
        peer.wire.write(b"".join(data.replace(b"<n>", b"%d" % number) for number in range(count)))
    return True


def _cursor(message: Message) -> Any:
    return (message.get("params") or {}).get("cursor")


def _progress_token(message: Message) -> Any:
    return (message.get("params") or {}).get("_meta", {}).get("progressToken")


# On a reply --------------------------------------------------------------------------


@scenario(ON_REPLY, "echoes the id of every request as a string")
def string_ids(peer: Peer, value: str, message: Message, frames: Frames) -> Frames:
    return [{**frame, "id": str(frame["id"])} for frame in frames]


@scenario(ON_REPLY, "answers a call with error -32700 and the id `null`, or `missing`", "null")
def null_id_error(peer: Peer, value: str, message: Message, frames: Frames) -> Frames:
    if not is_call(message):
        return frames
    error = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "faulty peer cannot parse that"}}
    return [error if value == "missing" else {**error, "id": None}]


@scenario(ON_REPLY, "answers a call with a JSON-RPC error of this code", "-32603")
def error_on_call(peer: Peer, value: str, message: Message, frames: Frames) -> Frames:
    return [_refused(value, frame) for frame in frames] if is_call(message) else frames


@scenario(ON_REPLY, "answers `tools/list` with a JSON-RPC error of this code", "-32603")
def error_on_list(peer: Peer, value: str, message: Message, frames: Frames) -> Frames:
    return [_refused(value, frame) for frame in frames] if message["method"] == "tools/list" else frames


@scenario(ON_REPLY, "answers `initialize` with a JSON-RPC error of this code", "-32603")
def error_on_initialize(peer: Peer, value: str, message: Message, frames: Frames) -> Frames:
    return [_refused(value, frame) for frame in frames] if message["method"] == "initialize" else frames


@scenario(ON_REPLY, "answers a call under an id that nobody has used; nothing under its own")
def wrong_id(peer: Peer, value: str, message: Message, frames: Frames) -> Frames:
    return [{**frame, "id": 987654} for frame in frames] if is_call(message) else frames


@scenario(ON_REPLY, "answers a call twice, the second time differently")
def duplicate_reply(peer: Peer, value: str, message: Message, frames: Frames) -> Frames:
    if not is_call(message):
        return frames
    return [*frames, {**frames[-1], "result": payloads.text_result("the second answer")}]


@scenario(ON_REPLY, "malformed and unknown notifications right after the handshake")
def junk_notifications(peer: Peer, value: str, message: Message, frames: Frames) -> Frames:
    if message["method"] not in ("initialize", "server/discover"):
        return frames
    return [*frames, *({"jsonrpc": "2.0", **junk} for junk in payloads.JUNK_NOTIFICATIONS)]


@scenario(
    ON_REPLY, "progress for an unknown token, with a text as value, and after the answer; one good report"
)
def bad_progress(peer: Peer, value: str, message: Message, frames: Frames) -> Frames:
    token = _progress_token(message)
    if not is_call(message) or token is None:
        return frames

    def report(**params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}

    return [
        report(progressToken="nobody's", progress=1),
        report(progressToken=token, progress="half"),
        report(progressToken=token),
        report(progressToken=token, progress=0.5, total="?", message=7),
        report(progressToken=token, progress=1, total=2, message="good"),
        *frames,
        report(progressToken=token, progress=2, total=2, message="late"),
    ]


@scenario(ON_REPLY, "each call adds a tool `added_N` and changes the schema of `echo`, then tells so")
def list_changed(peer: Peer, value: str, message: Message, frames: Frames) -> Frames:
    if not is_call(message):
        return frames
    number = len(peer.tools) - len(payloads.TOOLS) + 1
    changed = payloads.tool("echo", f"Returns the text; version {number}.", text="string", extra="string")
    peer.tools[0] = changed
    peer.tools.append(payloads.tool(f"added_{number}", "Came later."))
    notice = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    if not peer.listeners:
        return [*frames, notice]
    # The stateless protocol tells only those who listen, under the id of their request.
    tagged = [{"_meta": {payloads.META_SUBSCRIPTION: listener}} for listener in peer.listeners]
    return [*frames, *({**notice, "params": params} for params in tagged)]


def _refused(code: str, frame: dict[str, Any]) -> dict[str, Any]:
    error = {"code": int(code), "message": f"faulty peer refuses with {code}"}
    return {"jsonrpc": "2.0", "id": frame["id"], "error": error}
