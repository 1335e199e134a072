"""The manager's verbs for coroutines, on any loop: the twins of ``sync_verbs``, with an ``a`` in front."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

from mcp_client_app.client import plans, reads
from mcp_client_app.client.listings import Target
from mcp_client_app.client.loop import EventRelay
from mcp_client_app.client.outcome import CallOptions, shaped
from mcp_client_app.client.plans import Blocks, OnProgress, Operation
from mcp_client_app.client.rounds import Continuation, InputResponses
from mcp_client_app.client.tracing import with_trace_context
from mcp_client_app.datatypes import (
    SHARED,
    Completion,
    InputHandler,
    Listing,
    ManagerOptions,
    PromptInfo,
    PromptResult,
    ResourceInfo,
    ResourceResult,
    ResourceTemplateInfo,
    ToolInfo,
    ToolResult,
)

__all__ = ["AsyncVerbs"]

T = TypeVar("T")


class AsyncVerbs(abc.ABC):
    """The same verbs for coroutines, on any loop."""

    options: ManagerOptions

    @abc.abstractmethod
    async def _arun(self, operation: Operation[T], events: EventRelay | None = None) -> T: ...

    async def alist_tools(
        self,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> list[ToolInfo]:
        """Async twin of ``list_tools``."""
        return list((await self._arun(plans.listing("tools", server, refresh, wait, principal))).items)

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
        return await self._arun(plans.listing(kind, server, refresh, wait, principal))

    async def alistings(
        self,
        kind: str,
        targets: Sequence[Target],
        *,
        every: bool = False,
        refresh: bool = False,
        wait: float | None = None,
    ) -> Listing[Any]:
        """Async twin of ``listings``."""
        return await self._arun(plans.listings(kind, targets, every, refresh, wait))

    async def afind_tool(
        self, name: str, server: str | None = None, *, principal: str = SHARED
    ) -> ToolInfo | None:
        """Async twin of ``find_tool``."""
        return await self._arun(lambda pool: plans.find(pool, name, server, principal))

    @overload
    async def acall_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = ...,
        *,
        server: str | None = ...,
        timeout: float | None = ...,
        on_progress: OnProgress | None = ...,
        on_input: Mapping[str, InputHandler] | None = ...,
        input_responses: InputResponses | None = ...,
        request_state: str | None = ...,
        raise_on_error: bool = ...,
        structured: Literal[False] = ...,
        content: None = ...,
        meta: Mapping[str, Any] | None = ...,
        principal: str = ...,
    ) -> ToolResult: ...

    @overload
    async def acall_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = ...,
        *,
        server: str | None = ...,
        timeout: float | None = ...,
        on_progress: OnProgress | None = ...,
        on_input: Mapping[str, InputHandler] | None = ...,
        input_responses: InputResponses | None = ...,
        request_state: str | None = ...,
        raise_on_error: bool = ...,
        structured: Literal[True],
        content: None = ...,
        meta: Mapping[str, Any] | None = ...,
        principal: str = ...,
    ) -> Any: ...

    @overload
    async def acall_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = ...,
        *,
        server: str | None = ...,
        timeout: float | None = ...,
        on_progress: OnProgress | None = ...,
        on_input: Mapping[str, InputHandler] | None = ...,
        input_responses: InputResponses | None = ...,
        request_state: str | None = ...,
        raise_on_error: bool = ...,
        structured: bool = ...,
        content: Literal["blocks"],
        meta: Mapping[str, Any] | None = ...,
        principal: str = ...,
    ) -> Blocks: ...

    async def acall_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        server: str | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_input: Mapping[str, InputHandler] | None = None,
        input_responses: InputResponses | None = None,
        request_state: str | None = None,
        raise_on_error: bool = False,
        structured: bool = False,
        content: str | None = None,
        meta: Mapping[str, Any] | None = None,
        principal: str = SHARED,
    ) -> Any:
        """Async twin of ``call_tool``; ``on_progress`` and ``on_input`` may be coroutine functions."""
        caller = plans.calling(on_progress, on_input, self.options, is_async=True)
        continuation = Continuation.of(input_responses, request_state)
        trace = with_trace_context(meta)
        operation = plans.tool_call(name, arguments, server, timeout, caller, continuation, trace, principal)
        result, checker = await self._arun(operation, plans.relay_of(caller))
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
        return list((await self._arun(plans.listing("resources", server, refresh, wait, principal))).items)

    async def alist_resource_templates(
        self,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> list[ResourceTemplateInfo]:
        """Async twin of ``list_resource_templates``."""
        return list(
            (await self._arun(plans.listing("resource_templates", server, refresh, wait, principal))).items
        )

    async def aread_resource(
        self,
        server: str,
        uri: str,
        *,
        timeout: float | None = None,
        on_input: Mapping[str, InputHandler] | None = None,
        input_responses: InputResponses | None = None,
        request_state: str | None = None,
        principal: str = SHARED,
    ) -> ResourceResult:
        """Async twin of ``read_resource``."""
        caller = plans.calling(None, on_input, self.options, is_async=True)
        continuation = Continuation.of(input_responses, request_state)
        return await self._arun(
            lambda pool: reads.read_resource(
                pool, server, uri, timeout, caller, continuation, principal=principal
            ),
            plans.relay_of(caller),
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
        return list((await self._arun(plans.listing("prompts", server, refresh, wait, principal))).items)

    async def aget_prompt(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        on_input: Mapping[str, InputHandler] | None = None,
        input_responses: InputResponses | None = None,
        request_state: str | None = None,
        principal: str = SHARED,
    ) -> PromptResult:
        """Async twin of ``get_prompt``."""
        caller = plans.calling(None, on_input, self.options, is_async=True)
        continuation = Continuation.of(input_responses, request_state)
        return await self._arun(
            lambda pool: reads.get_prompt(
                pool, server, name, arguments or {}, timeout, caller, continuation, principal=principal
            ),
            plans.relay_of(caller),
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
            lambda pool: reads.complete(
                pool, server, ref, argument, value, context, timeout, principal=principal
            )
        )
