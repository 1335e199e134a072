"""Tells a server of the handshake eras that its HTTP session is over."""

from __future__ import annotations

import asyncio
import logging

from mcp_client_app.client.http import HttpClient
from mcp_client_app.client.http_session import HttpSession
from mcp_client_app.exceptions import MCPClientError

__all__ = ["end_session"]

logger = logging.getLogger(__name__)

LONGEST = 3.0
"""Seconds for it: servers need not support it, and some never answer."""


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
