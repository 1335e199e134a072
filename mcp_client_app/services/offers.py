"""What servers offer: lists over one server or all, with the errors of those that could not be asked."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async

from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.datatypes import Listing, PromptInfo, ResourceInfo, ResourceTemplateInfo, ToolInfo
from mcp_client_app.runtime import get_mcp_manager, started_manager
from mcp_client_app.services.permissions import CALL, VIEW, require

__all__ = [
    "alist_prompts",
    "alist_resource_templates",
    "alist_resources",
    "alist_tools",
    "last_known",
    "list_prompts",
    "list_resource_templates",
    "list_resources",
    "list_tools",
]


def _list(kind: str, server: str | None, refresh: bool, wait: float | None, user: Any) -> Listing[Any]:
    forbid_running_loop(f"list_{kind}")
    require(user, VIEW, CALL, server=server)
    return get_mcp_manager().listing(kind, server, refresh, wait=wait)


async def _alist(kind: str, server: str | None, refresh: bool, wait: float | None, user: Any) -> Listing[Any]:
    await sync_to_async(require)(user, VIEW, CALL, server=server)
    return await get_mcp_manager().alisting(kind, server, refresh, wait=wait)


def last_known(kind: str, server: str, *, user: Any = None) -> tuple[Any, ...]:
    """Return what a server offered when it was last asked, also while it is away; never waits.

    Args:
        kind: ``tools``, ``resources``, ``resource_templates`` or ``prompts``.
        server: The server's own name.
        user: Who asks; None for trusted code.
    """
    require(user, VIEW, CALL, server=server)
    manager = started_manager()
    return manager.known(kind, server) if manager is not None else ()


def list_tools(
    server: str | None = None, *, refresh: bool = False, wait: float | None = None, user: Any = None
) -> Listing[ToolInfo]:
    """List tools of one server (connected first), or of all that are up.

    Args:
        server: Only this server's; then a failure is raised, unless ``wait`` is given.
        refresh: Read the lists anew.
        wait: Seconds for servers that are still connecting; 0 connects nothing.
        user: Who asks; None for trusted code.

    Returns:
        Items, and the error of each server that could not be asked.
    """
    return _list("tools", server, refresh, wait, user)


async def alist_tools(
    server: str | None = None, *, refresh: bool = False, wait: float | None = None, user: Any = None
) -> Listing[ToolInfo]:
    """Async twin of ``list_tools``."""
    return await _alist("tools", server, refresh, wait, user)


def list_resources(
    server: str | None = None, *, refresh: bool = False, wait: float | None = None, user: Any = None
) -> Listing[ResourceInfo]:
    """List resources; see ``list_tools``."""
    return _list("resources", server, refresh, wait, user)


async def alist_resources(
    server: str | None = None, *, refresh: bool = False, wait: float | None = None, user: Any = None
) -> Listing[ResourceInfo]:
    """Async twin of ``list_resources``."""
    return await _alist("resources", server, refresh, wait, user)


def list_resource_templates(
    server: str | None = None, *, refresh: bool = False, wait: float | None = None, user: Any = None
) -> Listing[ResourceTemplateInfo]:
    """List resource templates; see ``list_tools``."""
    return _list("resource_templates", server, refresh, wait, user)


async def alist_resource_templates(
    server: str | None = None, *, refresh: bool = False, wait: float | None = None, user: Any = None
) -> Listing[ResourceTemplateInfo]:
    """Async twin of ``list_resource_templates``."""
    return await _alist("resource_templates", server, refresh, wait, user)


def list_prompts(
    server: str | None = None, *, refresh: bool = False, wait: float | None = None, user: Any = None
) -> Listing[PromptInfo]:
    """List prompts; see ``list_tools``."""
    return _list("prompts", server, refresh, wait, user)


async def alist_prompts(
    server: str | None = None, *, refresh: bool = False, wait: float | None = None, user: Any = None
) -> Listing[PromptInfo]:
    """Async twin of ``list_prompts``."""
    return await _alist("prompts", server, refresh, wait, user)
