"""Calls leave nothing in memory: what they are made of is no more after many than after a few."""

from __future__ import annotations

import gc
from collections import Counter

import pytest

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.exceptions import MCPClientError, RequestTimeoutError
from tests.client.conftest import MakeHttpPeer, MakeManager
from tests.client.linking import LINKS

SWEPT = "asyncio.events.TimerHandle"
"""Timers that were cancelled: a loop throws them away a hundred at a time."""
WATCHED = ("mcp_client_app.", "mcp.", "mcp_types.", "aiohttp.", "_asyncio", "asyncio.", "anyio.")


def held() -> Counter[str]:
    """Count the live objects of the core, the SDK, aiohttp and asyncio."""
    gc.collect()
    kinds = Counter(type(each) for each in gc.get_objects())
    return Counter(
        {
            f"{kind.__module__}.{kind.__qualname__}": count
            for kind, count in kinds.items()
            if str(kind.__module__).startswith(WATCHED) and f"{kind.__module__}.{kind.__qualname__}" != SWEPT
        }
    )


def call(manager: MCPClientManager, times: int) -> None:
    """Make calls that succeed, that are refused and that take too long, and reads that fail."""
    for number in range(times):
        manager.call_tool("good__echo", {"n": number})
        with pytest.raises(MCPClientError):
            manager.call_tool("bad__echo", {})
        if number % 5 == 0:
            with pytest.raises(RequestTimeoutError):
                manager.call_tool("slow__echo", {})


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "modern"])
def test_many_calls_leave_no_more_than_a_few(
    manage: MakeManager, http_peer: MakeHttpPeer, link: str, modern: bool
):
    """D19: good ones, failed ones, and those that were given up."""
    good = http_peer(name="good").start("sse_odd", modern=modern)
    bad = http_peer(name="bad").start("truncated", modern=modern)
    slow = http_peer(name="slow", call_timeout=0.05).start("hang", modern=modern)
    manager = manage(good.spec, bad.spec, slow.spec, default_link=link)
    call(manager, 10)
    before = held()

    call(manager, 60)

    grown = held() - before
    assert sum(grown.values()) < 60, grown
