"""The manager's verbs for threads.

Nothing is decided here: each verb hands one of ``operations`` to the loop and waits. On a
running event loop it raises ``AsyncContextError`` and names its twin in ``async_verbs``.
"""

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

__all__ = ["SyncVerbs"]

T = TypeVar("T")


class SyncVerbs(abc.ABC):
    """Blocking verbs, for threads."""

    options: ManagerOptions

    @abc.abstractmethod
    def _run(self, verb: str, operation: Operation[T], events: EventRelay | None = None) -> T: ...

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
        return list(self._run("list_tools", plans.listing("tools", server, refresh, wait, principal)).items)

    def listing(
        self,
        kind: str,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> Listing[Any]:
        """List ``tools``, ``resources``, ``resource_templates`` or ``prompts``, with errors per server."""
        return self._run("listing", plans.listing(kind, server, refresh, wait, principal))

    def listings(
        self,
        kind: str,
        targets: Sequence[Target],
        *,
        every: bool = False,
        refresh: bool = False,
        wait: float | None = None,
    ) -> Listing[Any]:
        """List some servers, each with its principal, and with ``every`` all other enabled ones, too.

        ``known_tools`` are the tools with those that the servers' own filters forbid.
        """
        return self._run("listings", plans.listings(kind, targets, every, refresh, wait))

    def find_tool(self, name: str, server: str | None = None, *, principal: str = SHARED) -> ToolInfo | None:
        """Find a tool by bare or public name; None if there is none, or no single one."""
        return self._run("find_tool", lambda pool: plans.find(pool, name, server, principal))

    @overload
    def call_tool(
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
    def call_tool(
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
    def call_tool(
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

    def call_tool(
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
        """Call a tool and wait for its result.

        Args:
            name: ``<server>__<tool>``, or a bare name that is unique.
            arguments: What the tool's input schema asks for.
            server: The server, if the name does not say it.
            timeout: Seconds for everything: connecting, queueing, the call. None = the server's
                limit; 0 = no limit.
            on_progress: Called with each ``Progress``, in this thread.
            on_input: Handlers of what the server asks for during this call, by kind (``elicitation``,
                ``sampling``, ``roots``), called in this thread; they go before the manager's. Servers of
                the handshake eras ask over the connection instead, and get the manager's.
            input_responses: Answers to what an earlier call ended with, by key: ``InputAnswer``s, or
                in the wire's form.
            request_state: The state that came with it.
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
            InputRequiredError: The server asks for input, and nobody answers; carries what is needed to
                go on, in whatever process.
            InvalidInputError: An answer does not fit what was asked for.
            RequestTimeoutError: Time is over; the server was told, its slot is free.
            ServerConnectionError: The server cannot be reached, or was lost; ``sent`` says whether
                the call may have run.
            ToolError: See ``raise_on_error``.
        """
        caller = plans.calling(on_progress, on_input, self.options)
        continuation = Continuation.of(input_responses, request_state)
        trace = with_trace_context(meta)
        operation = plans.tool_call(name, arguments, server, timeout, caller, continuation, trace, principal)
        result, checker = self._run("call_tool", operation, plans.relay_of(caller))
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
        return list(
            self._run("list_resources", plans.listing("resources", server, refresh, wait, principal)).items
        )

    def list_resource_templates(
        self,
        server: str | None = None,
        refresh: bool = False,
        *,
        wait: float | None = None,
        principal: str = SHARED,
    ) -> list[ResourceTemplateInfo]:
        """List resource templates; see ``list_tools``."""
        operation = plans.listing("resource_templates", server, refresh, wait, principal)
        return list(self._run("list_resource_templates", operation).items)

    def read_resource(
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
        """Read a resource; ``on_input`` and what follows are as for ``call_tool``.

        Raises:
            UnknownResourceError: The server has none of this URI.
            MCPClientError: As for ``call_tool``.
        """
        caller = plans.calling(None, on_input, self.options)
        continuation = Continuation.of(input_responses, request_state)
        return self._run(
            "read_resource",
            lambda pool: reads.read_resource(
                pool, server, uri, timeout, caller, continuation, principal=principal
            ),
            plans.relay_of(caller),
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
        return list(
            self._run("list_prompts", plans.listing("prompts", server, refresh, wait, principal)).items
        )

    def get_prompt(
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
        """Fill in a prompt; ``on_input`` and what follows are as for ``call_tool``.

        Raises:
            UnknownPromptError: The server has no such prompt.
            MCPClientError: As for ``call_tool``.
        """
        caller = plans.calling(None, on_input, self.options)
        continuation = Continuation.of(input_responses, request_state)
        return self._run(
            "get_prompt",
            lambda pool: reads.get_prompt(
                pool, server, name, arguments or {}, timeout, caller, continuation, principal=principal
            ),
            plans.relay_of(caller),
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
            lambda pool: reads.complete(
                pool, server, ref, argument, value, context, timeout, principal=principal
            ),
        )
