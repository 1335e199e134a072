"""Writing down calls: around each of them, whatever becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from asgiref.sync import sync_to_async

from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.datatypes import Completion, PromptResult, ResourceResult, ToolResult
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models.calls import new_correlation_id
from mcp_client_app.naming import split_public_name
from mcp_client_app.services.audit import CallRecord

__all__ = ["arecorded", "new_record", "recorded"]

T = TypeVar("T")


def new_record(
    kind: str,
    name: str,
    server: str | None,
    user: Any,
    agent: str,
    arguments: Mapping[str, Any] | None,
    correlation_id: str | None,
) -> CallRecord:
    """Begin the record of a call; a public name says the server."""
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


def recorded(verb: str, record: CallRecord, call: Callable[[], T]) -> T:
    """Make a call in this thread, and finish its record."""
    forbid_running_loop(verb)
    try:
        result = call()
    except BaseException as error:
        _name_server(record, error)
        record.finish(error=error)
        raise
    _finish(record, result)
    return result


async def arecorded(record: CallRecord, call: Callable[[], Awaitable[T]]) -> T:
    """Await a call, and finish its record."""
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
        record.server = record.recorded_as(error.server)
