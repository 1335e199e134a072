"""Calls: the choke point. Who may, where to, with what deadline; what happened is written down.

REST, admin, command, agents and tasks call these functions; none of them calls the manager.
Each has an async twin. The sync forms refuse to run on an event loop, before anything is
written down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asgiref.sync import sync_to_async

from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.datatypes import (
    Completion,
    InputAnswer,
    InputHandler,
    Progress,
    PromptResult,
    ResourceResult,
    ToolInfo,
    ToolResult,
)
from mcp_client_app.exceptions import ToolError
from mcp_client_app.runtime import get_mcp_manager
from mcp_client_app.services.permissions import CALL, VIEW, require
from mcp_client_app.services.recording import arecorded, new_record, recorded

__all__ = [
    "InputResponses",
    "acall_tool",
    "acomplete",
    "afind_tool",
    "aget_prompt",
    "aread_resource",
    "call_tool",
    "complete",
    "find_tool",
    "get_prompt",
    "read_resource",
]

OnProgress = Callable[[Progress], Any]
InputResponses = Mapping[str, InputAnswer | Mapping[str, Any]]
"""Answers by key; see the manager's ``call_tool``."""


def call_tool(
    name: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    server: str | None = None,
    user: Any = None,
    agent: str = "",
    timeout: float | None = None,
    on_progress: OnProgress | None = None,
    on_input: Mapping[str, InputHandler] | None = None,
    input_responses: InputResponses | None = None,
    request_state: str | None = None,
    raise_on_error: bool = False,
    correlation_id: str | None = None,
) -> ToolResult:
    """Call a tool for somebody, and write down that it happened.

    Args:
        name: ``<server>__<tool>``, or a bare name that is unique.
        arguments: What the tool's input schema asks for.
        server: The server, if the name does not say it.
        user: Who calls; None for trusted code.
        agent: The name of the agent that calls, for the audit.
        timeout: Seconds for everything; None = the server's limit, 0 = no limit.
        on_progress: Called with each ``Progress``, in this thread.
        on_input: Handlers of what the server asks for, by kind, called in this thread.
        input_responses: Answers to what an earlier call ended with, by key; they are not written down.
        request_state: The state that came with it.
        raise_on_error: Raise ``ToolError`` if the tool reports a failure.
        correlation_id: Ties the audit row to a request of yours; at most 64 characters.

    Raises:
        PermissionDeniedError: The user may not call tools.
        MCPClientError: As for the manager's ``call_tool``.
    """
    record = new_record("tool", name, server, user, agent, arguments, correlation_id)

    def call() -> ToolResult:
        require(user, CALL, server=server)
        result: ToolResult = get_mcp_manager().call_tool(
            name,
            arguments,
            server=server,
            timeout=timeout,
            on_progress=on_progress,
            on_input=on_input,
            input_responses=input_responses,
            request_state=request_state,
        )
        return result

    return _raised(recorded("call_tool", record, call), raise_on_error)


async def acall_tool(
    name: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    server: str | None = None,
    user: Any = None,
    agent: str = "",
    timeout: float | None = None,
    on_progress: OnProgress | None = None,
    on_input: Mapping[str, InputHandler] | None = None,
    input_responses: InputResponses | None = None,
    request_state: str | None = None,
    raise_on_error: bool = False,
    correlation_id: str | None = None,
) -> ToolResult:
    """Async twin of ``call_tool``; ``on_progress`` and ``on_input`` may be coroutine functions."""
    record = new_record("tool", name, server, user, agent, arguments, correlation_id)

    async def call() -> ToolResult:
        await sync_to_async(require)(user, CALL, server=server)
        result: ToolResult = await get_mcp_manager().acall_tool(
            name,
            arguments,
            server=server,
            timeout=timeout,
            on_progress=on_progress,
            on_input=on_input,
            input_responses=input_responses,
            request_state=request_state,
        )
        return result

    return _raised(await arecorded(record, call), raise_on_error)


def find_tool(name: str, *, server: str | None = None, user: Any = None) -> ToolInfo | None:
    """Find a tool by bare or public name; None if there is none, or no single one."""
    forbid_running_loop("find_tool")
    require(user, VIEW, CALL, server=server)
    return get_mcp_manager().find_tool(name, server)


async def afind_tool(name: str, *, server: str | None = None, user: Any = None) -> ToolInfo | None:
    """Async twin of ``find_tool``."""
    await sync_to_async(require)(user, VIEW, CALL, server=server)
    return await get_mcp_manager().afind_tool(name, server)


def read_resource(
    server: str,
    uri: str,
    *,
    user: Any = None,
    agent: str = "",
    timeout: float | None = None,
    on_input: Mapping[str, InputHandler] | None = None,
    input_responses: InputResponses | None = None,
    request_state: str | None = None,
    correlation_id: str | None = None,
) -> ResourceResult:
    """Read a resource for somebody, and write down that it happened."""
    record = new_record("resource", uri, server, user, agent, None, correlation_id)

    def call() -> ResourceResult:
        require(user, CALL, server=server)
        return get_mcp_manager().read_resource(
            server,
            uri,
            timeout=timeout,
            on_input=on_input,
            input_responses=input_responses,
            request_state=request_state,
        )

    return recorded("read_resource", record, call)


async def aread_resource(
    server: str,
    uri: str,
    *,
    user: Any = None,
    agent: str = "",
    timeout: float | None = None,
    on_input: Mapping[str, InputHandler] | None = None,
    input_responses: InputResponses | None = None,
    request_state: str | None = None,
    correlation_id: str | None = None,
) -> ResourceResult:
    """Async twin of ``read_resource``."""
    record = new_record("resource", uri, server, user, agent, None, correlation_id)

    async def call() -> ResourceResult:
        await sync_to_async(require)(user, CALL, server=server)
        return await get_mcp_manager().aread_resource(
            server,
            uri,
            timeout=timeout,
            on_input=on_input,
            input_responses=input_responses,
            request_state=request_state,
        )

    return await arecorded(record, call)


def get_prompt(
    server: str,
    name: str,
    arguments: Mapping[str, str] | None = None,
    *,
    user: Any = None,
    agent: str = "",
    timeout: float | None = None,
    on_input: Mapping[str, InputHandler] | None = None,
    input_responses: InputResponses | None = None,
    request_state: str | None = None,
    correlation_id: str | None = None,
) -> PromptResult:
    """Fill in a prompt for somebody, and write down that it happened."""
    record = new_record("prompt", name, server, user, agent, arguments, correlation_id)

    def call() -> PromptResult:
        require(user, CALL, server=server)
        return get_mcp_manager().get_prompt(
            server,
            name,
            arguments,
            timeout=timeout,
            on_input=on_input,
            input_responses=input_responses,
            request_state=request_state,
        )

    return recorded("get_prompt", record, call)


async def aget_prompt(
    server: str,
    name: str,
    arguments: Mapping[str, str] | None = None,
    *,
    user: Any = None,
    agent: str = "",
    timeout: float | None = None,
    on_input: Mapping[str, InputHandler] | None = None,
    input_responses: InputResponses | None = None,
    request_state: str | None = None,
    correlation_id: str | None = None,
) -> PromptResult:
    """Async twin of ``get_prompt``."""
    record = new_record("prompt", name, server, user, agent, arguments, correlation_id)

    async def call() -> PromptResult:
        await sync_to_async(require)(user, CALL, server=server)
        return await get_mcp_manager().aget_prompt(
            server,
            name,
            arguments,
            timeout=timeout,
            on_input=on_input,
            input_responses=input_responses,
            request_state=request_state,
        )

    return await arecorded(record, call)


def complete(
    server: str,
    ref: Mapping[str, str],
    argument: str,
    value: str = "",
    *,
    context: Mapping[str, str] | None = None,
    user: Any = None,
    timeout: float | None = None,
    correlation_id: str | None = None,
) -> Completion:
    """Ask for suggestions for somebody, and write down that it happened; see the manager's ``complete``."""
    record = new_record("completion", _target(ref), server, user, "", {argument: value}, correlation_id)

    def call() -> Completion:
        require(user, CALL, server=server)
        return get_mcp_manager().complete(server, ref, argument, value, context=context, timeout=timeout)

    return recorded("complete", record, call)


async def acomplete(
    server: str,
    ref: Mapping[str, str],
    argument: str,
    value: str = "",
    *,
    context: Mapping[str, str] | None = None,
    user: Any = None,
    timeout: float | None = None,
    correlation_id: str | None = None,
) -> Completion:
    """Async twin of ``complete``."""
    record = new_record("completion", _target(ref), server, user, "", {argument: value}, correlation_id)

    async def call() -> Completion:
        await sync_to_async(require)(user, CALL, server=server)
        return await get_mcp_manager().acomplete(
            server, ref, argument, value, context=context, timeout=timeout
        )

    return await arecorded(record, call)


def _raised(result: ToolResult, raise_on_error: bool) -> ToolResult:
    if raise_on_error and result.is_error:
        raise ToolError(result.text[:2000] or None, server=result.server, tool=result.tool, result=result)
    return result


def _target(ref: Mapping[str, str]) -> str:
    return str(ref.get("name") or ref.get("uri") or "")
