"""Calls: the choke point. Who may, where to, with what deadline; what happened is written down.

REST, admin, command, agents and tasks call these functions; none of them calls the manager.
Each has an async twin. The sync forms refuse to run on an event loop, before anything is
written down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

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
from mcp_client_app.exceptions import MCPClientError, ToolError
from mcp_client_app.models.calls import new_correlation_id
from mcp_client_app.naming import split_public_name
from mcp_client_app.runtime import get_mcp_manager
from mcp_client_app.services.audit import CallRecord
from mcp_client_app.services.permissions import CALL, VIEW, require

__all__ = [
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

T = TypeVar("T", ToolResult, ResourceResult, PromptResult, Completion)
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
    record = _record("tool", name, server, user, agent, arguments, correlation_id)

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

    return _raised(_recorded("call_tool", record, call), raise_on_error)


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
    record = _record("tool", name, server, user, agent, arguments, correlation_id)

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

    return _raised(await _arecorded(record, call), raise_on_error)


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
    record = _record("resource", uri, server, user, agent, None, correlation_id)

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

    return _recorded("read_resource", record, call)


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
    record = _record("resource", uri, server, user, agent, None, correlation_id)

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

    return await _arecorded(record, call)


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
    record = _record("prompt", name, server, user, agent, arguments, correlation_id)

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

    return _recorded("get_prompt", record, call)


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
    record = _record("prompt", name, server, user, agent, arguments, correlation_id)

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

    return await _arecorded(record, call)


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
    record = _record("completion", _target(ref), server, user, "", {argument: value}, correlation_id)

    def call() -> Completion:
        require(user, CALL, server=server)
        return get_mcp_manager().complete(server, ref, argument, value, context=context, timeout=timeout)

    return _recorded("complete", record, call)


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
    record = _record("completion", _target(ref), server, user, "", {argument: value}, correlation_id)

    async def call() -> Completion:
        await sync_to_async(require)(user, CALL, server=server)
        return await get_mcp_manager().acomplete(
            server, ref, argument, value, context=context, timeout=timeout
        )

    return await _arecorded(record, call)


# Writing down ------------------------------------------------------------------------


def _record(
    kind: str,
    name: str,
    server: str | None,
    user: Any,
    agent: str,
    arguments: Mapping[str, Any] | None,
    correlation_id: str | None,
) -> CallRecord:
    owner, own_name = server, str(name)
    if kind == "tool" and owner is None and (parts := split_public_name(own_name)) is not None:
        owner, own_name = parts
    return CallRecord(
        kind=kind,
        tool=own_name,
        server=owner or "",
        user=user,
        agent=agent,
        arguments=arguments or {},
        correlation_id=correlation_id or new_correlation_id(),
    )


def _recorded(verb: str, record: CallRecord, call: Callable[[], T]) -> T:
    forbid_running_loop(verb)
    try:
        result = call()
    except BaseException as error:
        _name_server(record, error)
        record.finish(error=error)
        raise
    _finish(record, result)
    return result


async def _arecorded(record: CallRecord, call: Callable[[], Awaitable[T]]) -> T:
    try:
        result = await call()
    except BaseException as error:
        _name_server(record, error)
        # Shielded: the row is written although a cancelled caller is cancelled again.
        await asyncio.shield(sync_to_async(record.finish)(error=error))
        raise
    await sync_to_async(_finish)(record, result)
    return result


def _finish(record: CallRecord, result: Any) -> None:
    failed = False
    payload: Any = None
    if isinstance(result, ToolResult):
        record.server, record.tool, failed = result.server, result.tool, result.is_error
        payload = {"content": list(result.content), "structuredContent": result.structured}
    elif isinstance(result, ResourceResult):
        payload = {"contents": list(result.contents)}
    elif isinstance(result, PromptResult):
        payload = {"messages": list(result.messages)}
    elif isinstance(result, Completion):
        payload = {"values": list(result.values)}
    record.finish(failed=failed, result=payload)


def _name_server(record: CallRecord, error: BaseException) -> None:
    if isinstance(error, MCPClientError) and error.server:
        record.server = error.server


def _raised(result: ToolResult, raise_on_error: bool) -> ToolResult:
    if raise_on_error and result.is_error:
        raise ToolError(result.text[:2000] or None, server=result.server, tool=result.tool, result=result)
    return result


def _target(ref: Mapping[str, str]) -> str:
    return str(ref.get("name") or ref.get("uri") or "")
