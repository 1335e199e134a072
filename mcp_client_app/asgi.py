"""The end of an ASGI application: connections are closed while the server still waits.

Servers such as uvicorn end by the signal that stopped them, so nothing that waits for the
interpreter's exit runs there; and Django's own ASGI application does not know lifespans.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

logger = logging.getLogger(__name__)

__all__ = ["with_lifespan"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]


def with_lifespan(application: Application) -> Application:
    """Return an ASGI application that closes this process's connections at the end of its lifespan.

    Everything but the lifespan goes to ``application``, which is never asked about it: one that has a
    lifespan of its own awaits ``aclose_mcp_manager`` there instead.
    """

    async def with_lifespan_handled(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        else:
            await application(scope, receive, send)

    return with_lifespan_handled


async def _live(receive: Receive, send: Send) -> None:
    # Not before: an "asgi.py" imports this module before Django is set up.
    from mcp_client_app.runtime import aclose_mcp_manager

    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    try:
        await aclose_mcp_manager()
    except Exception:
        logger.exception("The connections could not be closed in good order.")
        await send({"type": "lifespan.shutdown.failed", "message": "MCP connections were not closed."})
    else:
        await send({"type": "lifespan.shutdown.complete"})
