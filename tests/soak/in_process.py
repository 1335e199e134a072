"""The servers of the soak that run in its own process: the SDK's, with the same tools as the others."""

from __future__ import annotations

import os

import anyio
from mcp.server.mcpserver import Context, MCPServer, UserMessage
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
    ToolAnnotations,
)

from tests.soak.peer import STEP_SECONDS, TOOLS, Journal

JOURNAL = "SOAK_JOURNAL"
"""The environment variable that names the journal."""


def make_server() -> MCPServer[None]:
    """Return a fresh server."""
    server: MCPServer[None] = MCPServer("soak", version="1.0", log_level="CRITICAL")
    for tool in (echo, write, put, slow, big, hang, touch):
        annotations = ToolAnnotations.model_validate(TOOLS[tool.__name__])
        server.add_tool(tool, annotations=annotations, structured_output=False)
    server.resource("soak://item/{token}")(item)
    server.resource("soak://item/first")(first)
    server.prompt()(say)
    server.completion()(complete)
    return server


def _note(token: str) -> None:
    journal = Journal(os.environ[JOURNAL])
    journal.note(token)
    journal.close()


def echo(text: str) -> str:
    return text


def write(text: str) -> str:
    _note(text)
    return text


def put(text: str) -> str:
    _note(text)
    return text


async def slow(text: str, steps: int, ctx: Context) -> str:
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, text)
        await anyio.sleep(STEP_SECONDS)
    return text


def big(text: str, size: int) -> str:
    return text + "x" * (size - len(text))


async def hang(text: str = "") -> str:
    await anyio.sleep_forever()
    return text


async def touch(ctx: Context, text: str = "") -> str:
    await ctx.notify_tools_changed()
    return text


def item(token: str) -> str:
    return token


def first() -> str:
    return "first"


def say(text: str) -> list[UserMessage]:
    return [UserMessage(text)]


async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion:
    return Completion(values=[argument.value], total=1, has_more=False)
