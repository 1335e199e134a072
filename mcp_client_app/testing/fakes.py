"""Servers made of plain functions."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import MCPServerError, ToolError
from mcp.shared.exceptions import MCPError

__all__ = ["fake_server"]

Content = str | bytes | Callable[..., Any]


def fake_server(
    name: str = "fake",
    *,
    tools: Mapping[str, Callable[..., Any]] | Iterable[Callable[..., Any]] = (),
    resources: Mapping[str, Content] | None = None,
    prompts: Mapping[str, str | Callable[..., Any]] | None = None,
    instructions: str | None = None,
) -> MCPServer[Any]:
    """Return a real MCP server of the SDK, for use in this process.

    What it returns can be extended with all that the SDK offers, and served over HTTP
    with ``serve_asgi(server.streamable_http_app())``.

    Args:
        name: What the server says its name is.
        tools: Functions, by tool name or with names of their own. Signatures and docstrings become
            schemas and descriptions, exceptions failures of the tool. Coroutine functions are
            awaited, others run in a thread.
        resources: By URI: a text, bytes, or a function that returns one. A URI with variables in
            braces is a template; its function takes these as arguments.
        prompts: By name: the text of the one message, or a function that returns text or messages.
        instructions: What the server tells clients about its use.
    """
    with _root_logger_kept():
        server: MCPServer[Any] = MCPServer(name, instructions=instructions, version="1.0")
    named = tools.items() if isinstance(tools, Mapping) else ((tool.__name__, tool) for tool in tools)
    for tool_name, tool in named:
        server.add_tool(_telling(tool), name=tool_name)
    for uri, content in (resources or {}).items():
        is_binary = isinstance(content, bytes)
        mime_type = "application/octet-stream" if is_binary else "text/plain"
        server.resource(uri, name=uri, mime_type=mime_type)(_function(content))
    for prompt_name, prompt in (prompts or {}).items():
        server.prompt(prompt_name)(_function(prompt))
    return server


def _telling(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Return a tool whose exceptions reach the caller in words; the SDK keeps unexpected ones back."""
    if inspect.iscoroutinefunction(tool):

        @functools.wraps(tool)
        async def acall(*args: Any, **kwargs: Any) -> Any:
            with _told():
                return await tool(*args, **kwargs)

        return acall

    @functools.wraps(tool)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _told():
            return tool(*args, **kwargs)

    return call


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (MCPServerError, MCPError):
        raise
    except Exception as error:
        raise ToolError(str(error) or type(error).__name__) from error


def _function(content: Any) -> Callable[..., Any]:
    def constant() -> Any:
        return content

    return content if callable(content) else constant


@contextlib.contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Undo what the SDK's server does to the root logger: the project's own set-up counts."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        for handler in [handler for handler in root.handlers if handler not in handlers]:
            root.removeHandler(handler)
            handler.close()
