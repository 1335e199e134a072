"""An MCP server over streamable HTTP with invented weather: the same figures each time, no network.

Run it as ``python weather.py --port 8765``; it needs only the package ``mcp``. It prints one line
``READY http://127.0.0.1:8765/mcp`` once it accepts connections, and ends with status 0 on SIGTERM, on
Ctrl-C and, with ``--until-stdin-closes``, when whoever started it is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import os
import signal
import socket
import sys
from types import FrameType
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

HOST = "127.0.0.1"
PATH = "/mcp"
GRACE_SECONDS = 2
PORT_TAKEN = 2
"""Exit status when the port belongs to somebody else."""

CITIES = {
    "Amsterdam": 12,
    "Athens": 21,
    "Bern": 9,
    "Cairo": 26,
    "Lima": 19,
    "Oslo": 5,
    "Tokyo": 16,
    "Quito": 14,
}
SKIES = ("sunny", "cloudy", "rain", "wind", "fog")

READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

server = MCPServer(
    "weather",
    title="Weather",
    instructions="Invented weather for a few cities. Ask `list_cities` which.",
    version="1.0.0",
    log_level="WARNING",
)


class Day(BaseModel):
    """The weather of one day."""

    day: int
    sky: str
    celsius: float


class Forecast(BaseModel):
    """The weather of the coming days; day 0 is today."""

    city: str
    days: list[Day]


@server.tool(annotations=READS)
def list_cities() -> list[str]:
    """Name the cities that have weather."""
    return sorted(CITIES)


@server.tool(annotations=READS)
def forecast(city: str, days: Annotated[int, Field(ge=1, le=14)] = 3) -> Forecast:
    """Return the weather of one city for some days."""
    known = _find(city)
    if known is None:
        raise ToolError(f"There is no weather for {city!r}. Known cities: {', '.join(sorted(CITIES))}.")
    return Forecast(city=known, days=[_day(known, number) for number in range(days)])


@server.resource("weather://{city}/today", title="Today's weather", mime_type="application/json")
def today(city: str) -> str:
    """Today's weather of one city."""
    known = _find(city)
    if known is None:
        raise ResourceNotFoundError(f"There is no weather for {city!r}.")
    return _day(known, 0).model_dump_json()


@server.prompt(title="Pack for a trip")
def pack(city: str) -> str:
    """Ask what to pack."""
    return f"I travel to {city} for three days. Ask for the forecast, then tell me what to pack."


def _find(city: str) -> str | None:
    return next((known for known in CITIES if known.casefold() == city.strip().casefold()), None)


def _day(city: str, number: int) -> Day:
    # A hash instead of a random number: the same question has the same answer for ever.
    seed = hashlib.sha256(f"{city} {number}".encode()).digest()
    return Day(day=number, sky=SKIES[seed[0] % len(SKIES)], celsius=CITIES[city] + (seed[1] % 81 - 40) / 10)


class _Server(uvicorn.Server):
    """uvicorn that says when it is ready; readiness is more than a bound port."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            print(f"READY http://{HOST}:{sockets[0].getsockname()[1]}{PATH}", flush=True)


async def _serve(listener: socket.socket, *, until_stdin_closes: bool) -> None:
    config = uvicorn.Config(
        server.streamable_http_app(streamable_http_path=PATH, host=HOST),
        log_level="warning",
        # Open event streams never end by themselves.
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    web = _Server(config)
    if until_stdin_closes:
        loop = asyncio.get_running_loop()

        def drain() -> None:
            if not os.read(sys.stdin.fileno(), 4096):
                loop.remove_reader(sys.stdin)
                web.should_exit = True

        loop.add_reader(sys.stdin, drain)
    await web.serve(sockets=[listener])


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((HOST, port))
    return listener


def _stop(_number: int, _frame: FrameType | None) -> Any:
    sys.exit(0)


def main() -> None:
    """Serve on the port named on the command line."""
    parser = argparse.ArgumentParser(description="Serve invented weather over MCP (streamable HTTP).")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (the READY line names it)")
    parser.add_argument("--until-stdin-closes", action="store_true", help="stop when standard input ends")
    options = parser.parse_args()
    try:
        listener = _listen(options.port)
    except OSError as error:
        print(f"Port {options.port} cannot be used: {error.strerror}.", file=sys.stderr)
        sys.exit(PORT_TAKEN)
    # uvicorn stops in good order on a signal, then raises it again for the handlers it found.
    signal.signal(signal.SIGTERM, _stop)
    with listener, contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(listener, until_stdin_closes=options.until_stdin_closes))


if __name__ == "__main__":
    main()
