"""Turns repaired dicts of the protocol into our frozen values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mcp_client_app.client.exchange import Exchange
from mcp_client_app.client.limits import cut_content, cut_contents
from mcp_client_app.client.redaction import Redactor, redacted_value
from mcp_client_app.datatypes import (
    Completion,
    LogMessage,
    PromptArgument,
    PromptInfo,
    PromptResult,
    ResourceInfo,
    ResourceResult,
    ResourceTemplateInfo,
    ServerSpec,
    ToolAnnotations,
    ToolInfo,
    ToolResult,
)

__all__ = [
    "completion",
    "log_message",
    "prompt_info",
    "prompt_result",
    "resource_info",
    "resource_result",
    "template_info",
    "tool_info",
    "tool_result",
]


def log_message(server: str, params: Mapping[str, Any], redact: Redactor) -> LogMessage:
    """Build from the parameters of ``notifications/message``, just received."""
    return LogMessage(
        server=server,
        level=str(params.get("level", "info")),
        data=redacted_value(params.get("data"), redact),
        logger=params.get("logger"),
        received_at=datetime.now(UTC),
    )


def tool_info(server: str, item: Mapping[str, Any]) -> ToolInfo:
    """Build from an entry of ``tools/list``."""
    hints = item.get("annotations") or {}
    return ToolInfo(
        server=server,
        name=item["name"],
        title=item.get("title") or hints.get("title"),
        description=item.get("description"),
        input_schema=item["inputSchema"],
        output_schema=item.get("outputSchema"),
        annotations=ToolAnnotations(
            title=hints.get("title"),
            read_only=hints.get("readOnlyHint"),
            destructive=hints.get("destructiveHint"),
            idempotent=hints.get("idempotentHint"),
            open_world=hints.get("openWorldHint"),
        ),
        icons=tuple(item.get("icons") or ()),
        meta=item.get("_meta"),
    )


def resource_info(server: str, item: Mapping[str, Any]) -> ResourceInfo:
    """Build from an entry of ``resources/list``."""
    return ResourceInfo(server=server, uri=item["uri"], size=item.get("size"), **_described(item))


def template_info(server: str, item: Mapping[str, Any]) -> ResourceTemplateInfo:
    """Build from an entry of ``resources/templates/list``."""
    return ResourceTemplateInfo(server=server, uri_template=item["uriTemplate"], **_described(item))


def _described(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": item.get("name", ""),
        "title": item.get("title"),
        "description": item.get("description"),
        "mime_type": item.get("mimeType"),
        "annotations": item.get("annotations"),
        "meta": item.get("_meta"),
    }


def prompt_info(server: str, item: Mapping[str, Any]) -> PromptInfo:
    """Build from an entry of ``prompts/list``."""
    return PromptInfo(
        server=server,
        name=item["name"],
        title=item.get("title"),
        description=item.get("description"),
        arguments=tuple(
            PromptArgument(argument["name"], argument.get("description"), bool(argument.get("required")))
            for argument in item.get("arguments") or ()
        ),
        meta=item.get("_meta"),
    )


def tool_result(
    spec: ServerSpec, tool: str, result: Mapping[str, Any], exchange: Exchange, *, replayed: bool = False
) -> ToolResult:
    """Build from the result of ``tools/call``; text over the limit is cut and marked.

    Raises:
        ResultTooLargeError: The structured content alone exceeds the limit.
    """
    raw = exchange.raw if exchange.raw is not None else result
    content = tuple(result.get("content") or ())
    structured = result.get("structuredContent", raw.get("structuredContent"))
    truncated = False
    limit = spec.max_result_size
    if _may_exceed(limit, exchange):
        content, structured, truncated = cut_content(content, structured, limit, server=spec.name)
    return ToolResult(
        server=spec.name,
        tool=tool,
        content=content,
        structured=structured,
        is_error=bool(result.get("isError")),
        raw=raw,
        warnings=_warnings(exchange, limit if truncated else 0),
        truncated=truncated,
        replayed=replayed,
    )


def resource_result(
    server: str, uri: str, result: Mapping[str, Any], exchange: Exchange, *, limit: int = 0
) -> ResourceResult:
    """Build from the result of ``resources/read``; text over ``limit`` bytes is cut and marked."""
    contents, truncated = tuple(result.get("contents") or ()), False
    if _may_exceed(limit, exchange):
        contents, truncated = cut_contents(contents, limit)
    return ResourceResult(
        server=server,
        uri=uri,
        contents=contents,
        raw=exchange.raw if exchange.raw is not None else result,
        warnings=_warnings(exchange, limit if truncated else 0),
        truncated=truncated,
    )


def prompt_result(
    server: str, prompt: str, result: Mapping[str, Any], exchange: Exchange, *, limit: int = 0
) -> PromptResult:
    """Build from the result of ``prompts/get``; text over ``limit`` bytes is cut and marked."""
    messages, truncated = tuple(result.get("messages") or ()), False
    if _may_exceed(limit, exchange):
        blocks = tuple(message["content"] for message in messages)
        kept, _, truncated = cut_content(blocks, None, limit, server=server)
        if truncated:
            messages = tuple(
                {**message, "content": block} for message, block in zip(messages, kept, strict=True)
            )
    return PromptResult(
        server=server,
        prompt=prompt,
        description=result.get("description"),
        messages=messages,
        raw=exchange.raw if exchange.raw is not None else result,
        warnings=_warnings(exchange, limit if truncated else 0),
        truncated=truncated,
    )


def _may_exceed(limit: int, exchange: Exchange) -> bool:
    """Say whether a result has to be measured: one that was small on the wire is small."""
    return bool(limit) and (exchange.size == 0 or exchange.size > limit)


def _warnings(exchange: Exchange, cut_to: int) -> tuple[str, ...]:
    cut = (f"the result was cut to {cut_to} bytes",) if cut_to else ()
    return (*exchange.repairs, *cut)


def completion(result: Mapping[str, Any]) -> Completion:
    """Build from the result of ``completion/complete``."""
    found = result.get("completion") or {}
    return Completion(tuple(found.get("values") or ()), found.get("total"), bool(found.get("hasMore")))
