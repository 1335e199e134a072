"""What is written first: ``async_to_sync`` around connecting, one call, and disconnecting."""

from __future__ import annotations

import sys
from typing import Any

from asgiref.sync import async_to_sync

from benchmarks.workers.protocol import Target, target_of
from benchmarks.workers.sdk import open_session
from benchmarks.workers.threads import serve


async def connect_and_call(target: Target, tool: str, arguments: dict[str, Any]) -> object:
    """Connect, call a tool, disconnect."""
    async with open_session(target) as session:
        result = await session.call_tool(tool, arguments)
        assert not result.is_error
        return result


def main() -> None:
    """Take orders; the calls are made by threads."""
    target = target_of(sys.argv[1])

    def call(tool: str, arguments: dict[str, Any]) -> object:
        return async_to_sync(connect_and_call)(target, tool, arguments)

    serve(call)


if __name__ == "__main__":
    main()
