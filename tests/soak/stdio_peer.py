"""A server of the soak over stdio: ``python -S -E tests/soak/stdio_peer.py --journal FILE``."""

from __future__ import annotations

import os
import sys

if not __package__:  # run as a script: make the package ``tests`` importable from any directory
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.servers.wire import STDERR, Wire
from tests.soak.peer import MODERN, Journal, Peer, encoded

CHATTER = 50
"""Requests between two lines of standard error, and between two of noise."""


def main(journal: str, *options: str) -> None:
    """Serve until standard input ends."""
    wire = Wire()

    def send(message: dict[str, object]) -> None:
        wire.write(encoded(message) + b"\n")

    era = MODERN if "--modern" in options else "handshake"
    peer = Peer(era, Journal(journal), wire.later, send)
    count = 0

    def take(message: dict[str, object]) -> None:
        nonlocal count
        if message.get("method") == "server/discover" and "--die-on-probe" in options:
            os._exit(1)
        count += 1
        if "--noisy" in options and count % CHATTER == 0:
            wire.write(f"request {count}\n".encode(), STDERR)
            wire.write(b"this is no JSON\n")
        peer.handle(message, send)

    wire.run(take)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except BrokenPipeError:
        sys.exit(0)
