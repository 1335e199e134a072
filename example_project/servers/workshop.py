"""An MCP server over stdio that shows everything a client may meet.

Plain, structured, slow, failing and image-giving tools; resources, resource templates, prompts with
completion, log messages and lines on standard error. Run it as ``python workshop.py``; it needs only
the package ``mcp`` and no network. All answers are deterministic.
"""

from __future__ import annotations

import struct
import sys
import warnings
import zlib
from typing import Annotated

import anyio
from mcp.server.mcpserver import AssistantMessage, Context, Image, MCPServer, UserMessage
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

TOOLS = {
    "saw": "Cuts wood along the grain or across it.",
    "plane": "Takes off thin shavings until the board is flat.",
    "chisel": "Cuts joints; keep it sharp and both hands behind the edge.",
    "clamp": "Holds the parts while the glue sets.",
}
LANGUAGES = ["English", "French", "German", "Greek", "Italian", "Spanish"]

READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

server = MCPServer(
    "workshop",
    title="Workshop",
    instructions="A bench full of example tools. Use `add` for sums and `measure` for a board's figures.",
    version="1.0.0",
    log_level="WARNING",
)


class Board(BaseModel):
    """The figures of a board; lengths in millimetres."""

    area_mm2: int
    volume_mm3: int
    fits_on_the_bench: bool


# Tools -------------------------------------------------------------------------------


@server.tool(annotations=READS, structured_output=False)
def echo(text: str) -> str:
    """Return the text unchanged."""
    return text


@server.tool(annotations=READS)
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@server.tool(annotations=READS)
def measure(
    length: Annotated[int, Field(gt=0, le=10_000, description="Millimetres.")],
    width: Annotated[int, Field(gt=0, le=10_000, description="Millimetres.")],
    thickness: Annotated[int, Field(gt=0, le=1_000, description="Millimetres.")] = 18,
) -> Board:
    """Work out a board's figures: structured content with an output schema."""
    return Board(
        area_mm2=length * width,
        volume_mm3=length * width * thickness,
        fits_on_the_bench=length <= 2000 and width <= 800,
    )


@server.tool(structured_output=False)
async def sand(
    ctx: Context,
    passes: Annotated[int, Field(ge=1, le=100)] = 5,
    seconds: Annotated[float, Field(ge=0, le=600, description="Duration of one pass.")] = 0.1,
) -> str:
    """Sand a board slowly, reporting progress after each pass."""
    for done in range(1, passes + 1):
        await anyio.sleep(seconds)
        await ctx.report_progress(done, passes, f"pass {done} of {passes}")
    return f"Smooth after {passes} passes."


@server.tool(annotations=READS)
def break_down(reason: str = "the belt has snapped") -> str:
    """Fail, saying why: a tool's own error, not one of the protocol."""
    raise ToolError(f"The machine has stopped: {reason}.")


@server.tool(annotations=READS, structured_output=False)
def draw_swatch(
    red: Annotated[int, Field(ge=0, le=255)] = 193,
    green: Annotated[int, Field(ge=0, le=255)] = 120,
    blue: Annotated[int, Field(ge=0, le=255)] = 60,
) -> Image:
    """Draw a small wood-like colour swatch as a PNG image."""
    return Image(data=_png(32, 16, (red, green, blue)), format="png")


@server.tool(structured_output=False)
async def ring_bell(ctx: Context, times: Annotated[int, Field(ge=1, le=20)] = 1) -> str:
    """Send log messages over the protocol and lines to standard error."""
    for number in range(1, times + 1):
        print(f"ding {number}", file=sys.stderr, flush=True)
        with warnings.catch_warnings():
            # Clients of the handshake eras still ask for log messages.
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await ctx.log("info", {"ding": number}, logger_name="bell")
    return f"Rang {times} times."


def _png(width: int, height: int, colour: tuple[int, int, int]) -> bytes:
    """Return a PNG whose colour fades from left to right."""
    rows = bytearray()
    for _ in range(height):
        rows.append(0)
        for x in range(width):
            rows += bytes(value * (2 * width - x) // (2 * width) for value in colour)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(rows), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


# Resources ---------------------------------------------------------------------------


@server.resource("workshop://rules", title="Rules of the shop", mime_type="text/markdown")
def rules() -> str:
    """The rules that hang beside the door."""
    return "# Rules\n\n1. Wear glasses.\n2. Measure twice, cut once.\n3. Sweep before you leave.\n"


@server.resource("workshop://logo", title="Logo", mime_type="image/png")
def logo() -> bytes:
    """The sign above the door: a binary resource."""
    return _png(48, 24, (120, 70, 30))


@server.resource("workshop://tools/{name}", title="A hand tool", mime_type="text/plain")
def hand_tool(name: str) -> str:
    """What one of the hand tools is for."""
    if name not in TOOLS:
        raise ResourceNotFoundError(f"There is no hand tool {name!r}.")
    return TOOLS[name]


# Prompts -----------------------------------------------------------------------------


@server.prompt(title="Plan a piece of work")
def plan(piece: str, days: str = "2") -> list[UserMessage | AssistantMessage]:
    """Ask for a plan to build something."""
    return [
        UserMessage(f"I want to build {piece} in {days} days. Which steps do you suggest?"),
        AssistantMessage("Let us begin with the wood. What do you have?"),
    ]


@server.prompt(title="Explain a tool")
def explain(tool: str, language: str = "English") -> str:
    """Ask what a hand tool is for, in a language."""
    return f"Explain in {language} what a {tool} is for and how to use it safely."


@server.completion()  # type: ignore[no-untyped-call, untyped-decorator]  # the SDK leaves it untyped
async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion | None:
    """Suggest tools and languages."""
    choices = {"tool": sorted(TOOLS), "name": sorted(TOOLS), "language": LANGUAGES}.get(argument.name)
    if choices is None:
        return None
    start = argument.value.casefold()
    values = [choice for choice in choices if choice.casefold().startswith(start)]
    return Completion(values=values, total=len(values), has_more=False)


if __name__ == "__main__":
    server.run("stdio")
