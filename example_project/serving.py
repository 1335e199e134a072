"""The site as a small real server: ``python -m example_project.serving [--port N]``.

The standard library's WSGI server with a thread for each request; it prints ``READY <url>``, and ends
on SIGTERM or, if asked, with its standard input. For the demo; see ``docs/deployment.md`` for real ones.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from socketserver import ThreadingMixIn
from types import FrameType
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from example_project.wsgi import application

HOST = "127.0.0.1"


class ThreadingWSGIServer(ThreadingMixIn, WSGIServer):
    """Answers several requests at once."""

    daemon_threads = True


class QuietHandler(WSGIRequestHandler):
    """Writes no line for each request."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        pass


def main() -> int:
    """Serve until told to end; return the exit status."""
    parser = argparse.ArgumentParser(prog="example_project.serving", description="Serve the example project.")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: any free one)")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end with standard input, too")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _terminate)
    with make_server(HOST, options.port, application, ThreadingWSGIServer, QuietHandler) as server:
        if options.until_stdin_closes:
            threading.Thread(target=_follow_stdin, args=(server,), daemon=True).start()
        print(f"READY http://{HOST}:{server.server_port}/", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


def _follow_stdin(server: WSGIServer) -> None:
    sys.stdin.read()
    server.shutdown()


def _terminate(_number: int, _frame: FrameType | None) -> None:
    # As on Ctrl-C: the interpreter ends in good order, and with it all connections.
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
