"""Starts many stdio servers and asks each for its tools by bare bytes: what nobody can do without.

Needs nothing but the standard library.
"""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.workers.observing import Toll
from benchmarks.workers.protocol import Channel, Target, target_of

CLIENT = {"name": "bare", "version": "1"}


def requests(target: Target) -> bytes:
    """Return what is written to each server."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": target.era,
        "io.modelcontextprotocol/clientInfo": CLIENT,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    client = {
        "protocolVersion": target.era,
        "capabilities": {},
        "clientInfo": {"name": "bare", "version": "1"},
    }
    first = (
        {"method": "server/discover", "params": {"_meta": meta}}
        if target.is_modern
        else {"method": "initialize", "params": client}
    )
    params = {"_meta": meta} if target.is_modern else {}
    messages = [first, {"method": "tools/list", "params": params}]
    return b"".join(
        json.dumps({"jsonrpc": "2.0", "id": number, **message}).encode() + b"\n"
        for number, message in enumerate(messages)
    )


def main() -> None:
    """Start as many as the order says, once."""
    channel, target = Channel(), target_of(sys.argv[1])
    channel.ready()
    count: int = json.loads(sys.stdin.readline())["count"]
    asked = requests(target)
    toll = Toll()
    servers = [
        subprocess.Popen(target.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        for _ in range(count)
    ]
    for server in servers:
        assert server.stdin is not None
        server.stdin.write(asked)
    for server in servers:
        assert server.stdout is not None
        received = b""
        while received.count(b"\n") < 2:
            if not (piece := server.stdout.read(65536)):
                sys.exit(f"The server {target.command[0]!r} has ended without an answer.")
            received += piece
    found = toll.times()
    closing = Toll()
    for server in servers:
        server.communicate()
    found["close_ms"] = closing.times()["ms"]
    channel.say({"found": found})


if __name__ == "__main__":
    main()
