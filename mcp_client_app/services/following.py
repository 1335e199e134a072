"""Following saved changes at once in the process that saved them."""

from __future__ import annotations

import logging

from mcp_client_app.runtime import row_source, started_manager

logger = logging.getLogger(__name__)

__all__ = ["follow_soon"]


def follow_soon() -> None:
    """Have the manager follow the rows now, if there is one; never raises, never waits for a connection."""
    row_source.invalidate()
    manager = started_manager()
    if manager is None:
        return
    try:
        manager.follow_soon()
    except Exception:
        # The change is saved; the next use of a server will follow it, or say why it cannot.
        logger.exception("A changed server could not be followed at once.")
