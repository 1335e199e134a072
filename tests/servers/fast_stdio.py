"""The fastest MCP server over stdio that is still one: for benchmarks and races, never for correctness.

It answers in the order of its input, batches what came in together into one write, and starts without
the SDK. Tools: ``echo`` returns its arguments' ``text``, ``pid`` the process id. It speaks both eras.
"""

from __future__ import annotations

import os
import sys

import orjson

TYPE_CHECKING = False  # as in ``typing``, which costs start-up time
if TYPE_CHECKING:
    from typing import Any

CHUNK = 1 << 20
MODERN = "2026-07-28"
SERVER = {"name": "fast", "version": "1.0"}
META = {"io.modelcontextprotocol/serverInfo": SERVER}
TOOLS = [
    {
        "name": "echo",
        "description": "Returns the text.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "annotations": {"readOnlyHint": True, "idempotentHint": True},
    },
    {
        "name": "pid",
        "description": "Returns the process id.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True, "idempotentHint": True},
    },
]
CAPABILITIES: dict[str, Any] = {"tools": {}}
FIXED: dict[str, dict[str, Any]] = {
    "ping": {},
    "tools/list": {"tools": TOOLS, "ttlMs": 0, "cacheScope": "private"},
    "server/discover": {
        "supportedVersions": [MODERN],
        "capabilities": CAPABILITIES,
        "ttlMs": 0,
        "cacheScope": "private",
    },
}
"""Answers that do not depend on the request."""


def outcome(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the ``result`` or ``error`` member of the answer."""
    if method == "tools/call":
        text = str(os.getpid()) if params["name"] == "pid" else params["arguments"]["text"]
        result = {"content": [{"type": "text", "text": text}], "isError": False}
    elif method == "initialize":
        version = params["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": SERVER}
    elif method in FIXED:
        result = FIXED[method]
    else:
        return {"error": {"code": -32601, "message": "Method not found"}}
    # A handshake client ignores the members of the stateless protocol.
    return {"result": {"resultType": "complete", "_meta": META, **result}}


def main() -> None:
    """Serve until standard input ends."""
    buffer = b""
    while chunk := os.read(0, CHUNK):
        *lines, buffer = (buffer + chunk).split(b"\n")
        answers = bytearray()
        for line in lines:
            message = orjson.loads(line)
            if "id" in message and "method" in message:
                answer = outcome(message["method"], message.get("params") or {})
                answers += orjson.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + b"\n"
        view = memoryview(answers)
        while view:
            view = view[os.write(1, view) :]


if __name__ == "__main__":
    # A client that is gone ends the peer as the end of input does.
    try:
        main()
    except BrokenPipeError:
        sys.exit(0)
