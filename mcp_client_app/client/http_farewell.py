"""The end of an HTTP session: by our wish, which the server is told, or by its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from mcp_client_app.client.http import HttpClient
from mcp_client_app.client.http_session import HttpSession
from mcp_client_app.exceptions import ConnectionLostError, MCPClientError

__all__ = ["end_session", "let_finish", "session_lost"]

logger = logging.getLogger(__name__)

LONGEST = 3.0
"""Seconds for telling: servers need not support it, and some never answer."""
GRACE = 1.0
"""Seconds for the requests of a session that is gone: their answers are on the way, if any are."""
GLANCE = 0.01


async def end_session(client: HttpClient, session: HttpSession, timeout: float) -> None:
    """Send DELETE, within ``timeout`` seconds but never more than three; 0 = no limit of the caller's.

    Never raises: nothing depends on it.
    """
    if session.session_id is None:
        return
    try:
        async with asyncio.timeout(min(timeout or LONGEST, LONGEST)):
            async with client.request("DELETE", headers=session.headers()) as response:
                response.finish()
    except (MCPClientError, TimeoutError) as error:
        logger.debug("The session of %r was not ended properly: %s", client.server, error)


def session_lost(server: str, status: int) -> ConnectionLostError:
    """Return the reason why the link is down."""
    return ConnectionLostError(
        f"The connection to {server!r} was lost: the server has ended the session (HTTP {status}).",
        server=server,
    )


async def let_finish(are_waiting: Callable[[], bool], then: Callable[[], None]) -> None:
    """Call ``then`` when no request waits any more, at the latest after a second.

    One request has found the session gone. The others learn for themselves whether they were carried
    out; failed at once, they would have to be taken for ones that perhaps were.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + GRACE
    while are_waiting() and loop.time() < end:  # noqa: ASYNC110 - rare, and short
        await asyncio.sleep(GLANCE)
    then()
