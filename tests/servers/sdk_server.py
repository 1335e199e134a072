"""The well-behaved peer: an SDK server with everything a client may meet, in both eras.

``make_server`` returns a fresh one, for use in process; ``sdk_stdio`` and ``sdk_http`` serve it. All
answers are deterministic, and nothing depends on time: calls wait for each other, never for a clock.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated

import anyio
from mcp.server.mcpserver import (
    AcceptedElicitation,
    AssistantMessage,
    Audio,
    Context,
    Elicit,
    ElicitationResult,
    Image,
    MCPServer,
    Resolve,
    UserMessage,
)
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import (
    CallToolResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    EmbeddedResource,
    PromptReference,
    ResourceLink,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False)

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154"
    "789c6360606060000000050001a5f645400000000049454e44ae426082"
)
"""One transparent pixel."""
COLOURS = ["blue", "green", "grey", "red"]


class Sum(BaseModel):
    """What ``add`` returns."""

    result: float


class Name(BaseModel):
    """What ``greet`` asks the user for."""

    name: str


def make_server() -> MCPServer[None]:
    """Return a fresh server; each has its own state."""
    server: MCPServer[None] = MCPServer(
        "peer",
        title="Well-behaved peer",
        instructions="Ask for anything.",
        version="1.2.3",
        log_level="CRITICAL",
    )
    meetings = Meetings()
    changes = Changes(server)
    for read in (echo, image, audio, big, pid):
        server.add_tool(read, annotations=READS, structured_output=False)
    for structured in (add, mixed, headers, meetings.cancellations):
        server.add_tool(structured, annotations=READS)
    for other in (fail, log, slow, interrupted_stream, greet):
        server.add_tool(other, structured_output=False)
    for stateful in (meetings.hang, meetings.meet, changes.grow, changes.touch):
        server.add_tool(stateful, structured_output=False)
    server.add_tool(crash, annotations=WRITES, structured_output=False)
    _add_resources(server)
    _add_prompts(server)
    return server


# Tools without state -----------------------------------------------------------------


def echo(text: str) -> str:
    """Return the text unchanged."""
    return text


def add(a: float, b: float) -> Sum:
    """Add two numbers: structured content with an output schema."""
    return Sum(result=a + b)


def fail(message: str) -> str:
    """Fail with the message: the tool's own error."""
    raise ToolError(message)


def image() -> Image:
    """Return a picture of one pixel."""
    return Image(data=PNG, format="png")


def audio() -> Audio:
    """Return a sound that nobody can hear."""
    return Audio(data=b"RIFF", format="wav")


def mixed() -> CallToolResult:
    """Return text, a resource link and an embedded resource, with metadata."""
    inline = TextResourceContents(uri="peer://inline", text="inside", mime_type="text/plain")
    return CallToolResult(
        content=[
            TextContent(type="text", text="first"),
            ResourceLink(type="resource_link", uri="peer://notes", name="notes"),
            EmbeddedResource(type="resource", resource=inline),
        ],
        _meta={"peer/mood": "good"},
    )


def big(size: int) -> str:
    """Return a text of so many characters."""
    return "x" * size


def headers(ctx: Context) -> dict[str, str]:
    """Return the request's HTTP headers; none on other transports."""
    return dict(ctx.headers or {})


def pid() -> str:
    """Return the process id."""
    return str(os.getpid())


async def log(messages: list[str], ctx: Context) -> str:
    """Send log messages over the protocol and the same lines to standard error."""
    for message in messages:
        sys.stderr.write(message + "\n")
        sys.stderr.flush()
        with warnings.catch_warnings():
            # Clients of the handshake eras still ask for log messages.
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await ctx.log("info", message, logger_name="peer")
    return f"logged {len(messages)}"


async def slow(steps: int, ctx: Context) -> str:
    """Report progress in so many steps."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"{steps} steps"


async def interrupted_stream(ctx: Context) -> str:
    """Drop the event stream of this very call: the answer waits until the client resumes it."""
    await ctx.close_sse_stream()
    return "resumed"


def crash(status: int = 7) -> str:
    """End the server at once."""
    os._exit(status)


def ask_name() -> Elicit[Name]:
    return Elicit("Who is there?", Name)


async def greet(answer: Annotated[ElicitationResult[Name], Resolve(ask_name)]) -> str:
    """Ask the user for a name, then greet: elicitation in both eras."""
    if isinstance(answer, AcceptedElicitation):
        return f"Hello {answer.data.name}"
    return f"Nobody: {answer.action}"


def added() -> str:
    """Answer, having come later."""
    return "here"


# Tools with state --------------------------------------------------------------------


class Meetings:
    """Calls that wait: for each other, or for ever."""

    def __init__(self) -> None:
        self._cancelled: list[str] = []
        self._waiting: list[anyio.Event] = []

    async def hang(self, label: str = "") -> str:
        """Never answer; remember that the call was cancelled."""
        try:
            await anyio.sleep_forever()
            return label
        finally:
            self._cancelled.append(label)

    def cancellations(self) -> list[str]:
        """Return the labels of the calls of ``hang`` that were cancelled."""
        return self._cancelled

    async def meet(self, count: int) -> str:
        """Answer once ``count`` calls of this tool are in flight."""
        here = anyio.Event()
        self._waiting.append(here)
        if len(self._waiting) >= count:
            together, self._waiting = self._waiting, []
            for each in together:
                each.set()
        await here.wait()
        return f"met {count}"


class Changes:
    """Tools after which the catalogue is another one; each says so as both eras say it."""

    def __init__(self, server: MCPServer[None]) -> None:
        self._server = server

    async def grow(self, ctx: Context) -> str:
        """Add the tool ``added`` and say that the list has changed."""
        self._server.add_tool(added, structured_output=False)
        await ctx.notify_tools_changed()
        await ctx.session.send_tool_list_changed()
        return "grown"

    async def touch(self, uri: str, ctx: Context) -> str:
        """Say that a resource was updated."""
        await ctx.notify_resource_updated(uri)
        await ctx.session.send_resource_updated(uri)
        return "touched"


# Resources and prompts ---------------------------------------------------------------


def _add_resources(server: MCPServer[None]) -> None:
    @server.resource("peer://notes", title="Notes", mime_type="text/plain")
    def notes() -> str:
        """A text."""
        return "one\ntwo\n"

    @server.resource("peer://pixel", mime_type="image/png")
    def pixel() -> bytes:
        """A binary resource."""
        return PNG

    @server.resource("peer://colours/{colour}", title="A colour", mime_type="text/plain")
    def colour(colour: str) -> str:
        """One of the colours."""
        if colour not in COLOURS:
            raise ResourceNotFoundError(f"There is no colour {colour!r}.")
        return f"A fine {colour}."


def _add_prompts(server: MCPServer[None]) -> None:
    @server.prompt(title="Paint a thing")
    def paint(thing: str, colour: str = "red") -> list[UserMessage | AssistantMessage]:
        """Ask for something to be painted."""
        return [UserMessage(f"Paint {thing} {colour}."), AssistantMessage("With pleasure.")]

    @server.completion()
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        if argument.name != "colour":
            return None
        values = [colour for colour in COLOURS if colour.startswith(argument.value)]
        return Completion(values=values, total=len(values), has_more=False)
