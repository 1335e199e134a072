"""The same tool on the SDK's own server, whose cost is the larger part of a call.

``python -m benchmarks.servers.sdk_server stdio|http`` - over HTTP it says ``READY url``.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("sdk", log_level="ERROR")


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Return the text."""
    return text


async def serve_http(listener: socket.socket) -> None:
    """Serve until standard input ends."""
    app = server.streamable_http_app(streamable_http_path="/mcp", host="127.0.0.1")
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
    web = uvicorn.Server(config)
    loop = asyncio.get_running_loop()

    def stop_at_end() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            web.should_exit = True

    loop.add_reader(0, stop_at_end)
    # Who connects from now on waits in the listener's queue.
    sys.stdout.write(f"READY http://127.0.0.1:{listener.getsockname()[1]}/mcp\n")
    sys.stdout.flush()
    await web.serve(sockets=[listener])


def main() -> None:
    """Serve as the command line says."""
    if sys.argv[1] == "stdio":
        server.run("stdio")
        return
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        asyncio.run(serve_http(listener))


if __name__ == "__main__":
    main()
