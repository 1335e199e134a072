"""The manager's verbs, twice: for threads, and with an ``a`` in front for coroutines on any loop.

Nothing is decided here: each verb hands one of ``operations`` to the loop. The sync form
raises ``AsyncContextError`` on a running loop, naming its twin.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from mcp_client_app.client import listings, operations
from mcp_client_app.client.loop import EventRelay
from mcp_client_app.client.outcome import CallOptions, shaped
from mcp_client_app.client.pool import ConnectionPool
from mcp_client_app.datatypes import (
    SHARED,
    Completion,
    Listing,
    Progress,
    PromptInfo,
    PromptResult,
    ResourceInfo,
    ResourceResult,
    ResourceTemplateInfo,
    ToolInfo,
)
from mcp_client_app.exceptions import MCPClientError

__all__ = ["AsyncVerbs", "OnProgress", "SyncVerbs"]

T = TypeVar("T")
Operation = Callable[[ConnectionPool], Coroutine[Any, Any, T]]
OnProgress = Callable[[Progress], Any]
"""Called where the caller waits: in its thread, or on its loop (there it may be a coroutine function)."""


def _relay(on_progress: OnProgress | None) -> EventRelay | None:
    return EventRelay(on_progress) if on_progress is not None else None


def _tool_call(
    name: str,
    arguments: Mapping[str, Any] | None,
    server: str | None,
    timeout: float | None,
    relay: EventRelay | None,
    meta: Mapping[str, Any] | None,
    principal: str,
) -> Operation[Any]:
    def report(progress: float, total: float | None, message: str | None) -> None:
        assert relay is not None
        relay.put(Progress(progress, total, message))

    return lambda pool: operations.call_tool(
        pool,
        name,
        arguments or {},
        server,
        timeout,
        report if relay is not None else None,
        meta,
        principal=principal,
    )


def _list(
    kind: str, server: str | None, refresh: bool, wait: float | None, principal: str
) -> Operation[Listing[Any]]:
    if server is not None:
        return lambda pool: listings.of_server(
            pool, server, listings.KINDS[kind], refresh=refresh, principal=principal
        )
    return lambda pool: listings.gather(
        pool, listings.KINDS[kind], refresh=refresh, wait=wait, principal=principal
    )


async def _find(pool: ConnectionPool, name: str, server: str | None, principal: str) -> ToolInfo | None:
    try:
        _, tool = await operations.find_tool(pool, name, server, principal=principal)
    except MCPClientError:
        return None
    return tool


class SyncVerbs(abc.ABC):
    """Blocking verbs, for threads."""

    @abc.abstractmethod
    def _run(self, verb: str, operation: Operation[T], relay: EventRelay | None = None) -> T: ...

    def list_tools(
        self,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> list[ToolInfo]:
        """List tools: of one server (connected first), or of all that are up.

        Args:
            server: Only this server's tools.
            refresh: Read the lists anew.
            wait: Without ``server``: seconds granted to servers that are still connecting, counted from
                the start of their attempt. None = their list time limit; 0 = connect nothing.

        Raises:
            MCPClientError: Only with ``server``: it cannot be reached.
        """
        return list(self._run("list_tools", _list("tools", server, refresh, wait, principal)).items)

    def listing(
        self,
        kind: str,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> Listing[Any]:
        """List ``tools``, ``resources``, ``resource_templates`` or ``prompts``, with the errors per server."""
        return self._run("listing", _list(kind, server, refresh, wait, principal))

    def find_tool(self, name: str, server: str | None = None, *, principal: str = SHARED) -> ToolInfo | None:
        """Find a tool by bare or public name; None if there is none, or no single one."""
        return self._run("find_tool", lambda pool: _find(pool, name, server, principal))

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        server: str | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        raise_on_error: bool = False,
        structured: bool = False,
        content: str | None = None,
        meta: Mapping[str, Any] | None = None,
        principal: str = SHARED,
    ) -> Any:
        """Call a tool and wait for its result.

        Args:
            name: ``<server>__<tool>``, or a bare name that is unique.
            arguments: What the tool's input schema asks for.
            server: The server, if the name does not say it.
            timeout: Seconds for everything: connecting, queueing, the call. None = the server's
                limit; 0 = no limit.
            on_progress: Called with each ``Progress``, in this thread.
            raise_on_error: Raise ``ToolError`` if the tool reports a failure.
            structured: Return only the structured content (implies ``raise_on_error``).
            content: ``"blocks"`` returns content and structured content as one tuple of blocks
                (implies ``raise_on_error``).
            meta: Goes into the request's ``_meta``.

        Returns:
            A ``ToolResult``, unless ``structured`` or ``content`` ask for a part of it. A failure of
            the tool itself is a result with ``is_error``.

        Raises:
            BadToolNameError, UnknownToolError, AmbiguousToolError, ToolBlockedError: Before anything is sent.
            InvalidArgumentsError: The server refused the arguments; carries schema and arguments.
            RequestTimeoutError: Time is over; the server was told, its slot is free.
            ServerConnectionError: The server cannot be reached, or was lost; ``sent`` says whether
                the call may have run.
            ToolError: See ``raise_on_error``.
        """
        relay = _relay(on_progress)
        operation = _tool_call(name, arguments, server, timeout, relay, meta, principal)
        result, checker = self._run("call_tool", operation, relay)
        return shaped(result, checker, CallOptions(raise_on_error, structured, content))

    call_tool_sync = call_tool

    def list_resources(
        self,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> list[ResourceInfo]:
        """List resources; see ``list_tools``."""
        return list(self._run("list_resources", _list("resources", server, refresh, wait, principal)).items)

    def list_resource_templates(
        self,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> list[ResourceTemplateInfo]:
        """List resource templates; see ``list_tools``."""
        operation = _list("resource_templates", server, refresh, wait, principal)
        return list(self._run("list_resource_templates", operation).items)

    def read_resource(
        self, server: str, uri: str, *, timeout: float | None = None, principal: str = SHARED
    ) -> ResourceResult:
        """Read a resource.

        Raises:
            UnknownResourceError: The server has none of this URI.
            MCPClientError: As for ``call_tool``.
        """
        return self._run(
            "read_resource",
            lambda pool: operations.read_resource(pool, server, uri, timeout, principal=principal),
        )

    def list_prompts(
        self,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> list[PromptInfo]:
        """List prompts; see ``list_tools``."""
        return list(self._run("list_prompts", _list("prompts", server, refresh, wait, principal)).items)

    def get_prompt(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        principal: str = SHARED,
    ) -> PromptResult:
        """Fill in a prompt.

        Raises:
            UnknownPromptError: The server has no such prompt.
            MCPClientError: As for ``call_tool``.
        """
        return self._run(
            "get_prompt",
            lambda pool: operations.get_prompt(
                pool, server, name, arguments or {}, timeout, principal=principal
            ),
        )

    def complete(
        self,
        server: str,
        ref: Mapping[str, str],
        argument: str,
        value: str = "",
        *,
        context: Mapping[str, str] | None = None,
        timeout: float | None = None,
        principal: str = SHARED,
    ) -> Completion:
        """Ask for suggestions.

        Args:
            ref: ``{"type": "ref/prompt", "name": ...}`` or ``{"type": "ref/resource", "uri": ...}``.
            argument: The argument's name; ``value`` is what was typed so far.
            context: Arguments already given.
        """
        return self._run(
            "complete",
            lambda pool: operations.complete(
                pool, server, ref, argument, value, context, timeout, principal=principal
            ),
        )


class AsyncVerbs(abc.ABC):
    """The same verbs for coroutines, on any loop."""

    @abc.abstractmethod
    async def _arun(self, operation: Operation[T], relay: EventRelay | None = None) -> T: ...

    async def alist_tools(
        self,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> list[ToolInfo]:
        """Async twin of ``list_tools``."""
        return list((await self._arun(_list("tools", server, refresh, wait, principal))).items)

    async def alisting(
        self,
        kind: str,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> Listing[Any]:
        """Async twin of ``listing``."""
        return await self._arun(_list(kind, server, refresh, wait, principal))

    async def afind_tool(
        self, name: str, server: str | None = None, *, principal: str = SHARED
    ) -> ToolInfo | None:
        """Async twin of ``find_tool``."""
        return await self._arun(lambda pool: _find(pool, name, server, principal))

    async def acall_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        server: str | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        raise_on_error: bool = False,
        structured: bool = False,
        content: str | None = None,
        meta: Mapping[str, Any] | None = None,
        principal: str = SHARED,
    ) -> Any:
        """Async twin of ``call_tool``; ``on_progress`` may be a coroutine function."""
        relay = _relay(on_progress)
        operation = _tool_call(name, arguments, server, timeout, relay, meta, principal)
        result, checker = await self._arun(operation, relay)
        return shaped(result, checker, CallOptions(raise_on_error, structured, content))

    async def alist_resources(
        self,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> list[ResourceInfo]:
        """Async twin of ``list_resources``."""
        return list((await self._arun(_list("resources", server, refresh, wait, principal))).items)

    async def alist_resource_templates(
        self,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> list[ResourceTemplateInfo]:
        """Async twin of ``list_resource_templates``."""
        return list((await self._arun(_list("resource_templates", server, refresh, wait, principal))).items)

    async def aread_resource(
        self, server: str, uri: str, *, timeout: float | None = None, principal: str = SHARED
    ) -> ResourceResult:
        """Async twin of ``read_resource``."""
        return await self._arun(
            lambda pool: operations.read_resource(pool, server, uri, timeout, principal=principal)
        )

    async def alist_prompts(
        self,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> list[PromptInfo]:
        """Async twin of ``list_prompts``."""
        return list((await self._arun(_list("prompts", server, refresh, wait, principal))).items)

    async def aget_prompt(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        principal: str = SHARED,
    ) -> PromptResult:
        """Async twin of ``get_prompt``."""
        return await self._arun(
            lambda pool: operations.get_prompt(
                pool, server, name, arguments or {}, timeout, principal=principal
            )
        )

    async def acomplete(
        self,
        server: str,
        ref: Mapping[str, str],
        argument: str,
        value: str = "",
        *,
        context: Mapping[str, str] | None = None,
        timeout: float | None = None,
        principal: str = SHARED,
    ) -> Completion:
        """Async twin of ``complete``."""
        return await self._arun(
            lambda pool: operations.complete(
                pool, server, ref, argument, value, context, timeout, principal=principal
            )
        )
