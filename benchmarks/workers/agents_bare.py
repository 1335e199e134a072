"""pydantic-ai's own agent: ``python -m benchmarks.workers.agents_bare TARGET functions|session``.

Its tool is a function that does nothing, or one that calls the server over the SDK's session, as one
would write it by hand. Nothing is stored.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from pydantic_ai import Agent

from benchmarks.workers.agents_script import scripted
from benchmarks.workers.coroutines import Call, serve
from benchmarks.workers.protocol import Target
from benchmarks.workers.sdk import list_all, open_session

TOOL = "echo"


@asynccontextmanager
async def connect(target: Target) -> AsyncIterator[Call]:
    """Give what runs the agent once."""
    agent = Agent(scripted(TOOL))
    async with AsyncExitStack() as stack:
        if sys.argv[2] == "session":
            session = await stack.enter_async_context(open_session(target))
            await list_all(session)

            @agent.tool_plain(name=TOOL)
            async def ask(text: str) -> str:
                result = await session.call_tool(TOOL, {"text": text})
                assert not result.is_error
                return str(result.content[0].text)  # type: ignore[union-attr]
        else:

            @agent.tool_plain(name=TOOL)
            async def echo(text: str) -> str:
                return text

        async def call(tool: str, arguments: dict[str, Any]) -> object:
            result = await agent.run("Go.")
            assert result.output == "Done."
            return result

        yield call


if __name__ == "__main__":
    serve(connect)
