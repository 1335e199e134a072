"""The verb ``tools``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from mcp_client_app import services
from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.management import documents
from mcp_client_app.management.console import Console
from mcp_client_app.management.listing import listed, summary
from mcp_client_app.management.tables import Column
from mcp_client_app.management.verbs import Verbs

__all__ = ["add_verbs", "show_tools"]


def add_verbs(verbs: Verbs) -> None:
    """Add this module's verb."""
    verb = verbs.add("tools", list_tools, help="list tools, of all servers or of one")
    verb.add_argument("server", metavar="SERVER", nargs="?")
    verb.add_argument("--search", metavar="TEXT", help="only tools with this in their name or description")
    verb.add_argument("--schema", action="store_true", help="show whole descriptions and input schemas")


def list_tools(options: argparse.Namespace, console: Console) -> None:
    """Connect and list tools."""
    listing = listed(services.list_tools, options.server, console)
    tools = [tool for tool in listing.items if _is_found(tool, options.search)]
    if console.as_json:
        replace(listing, items=tools).write(console, "tools", documents.tool_document)
    elif options.schema:
        for tool in tools:
            _show_tool(console, tool)
    else:
        show_tools(console, tools)
    listing.conclude()


def show_tools(console: Console, tools: Sequence[ToolInfo]) -> None:
    """Write a table of tools."""
    console.table(
        [Column("TOOL"), Column("HINTS", can_shrink=True), Column("DESCRIPTION", can_shrink=True)],
        [(tool.public_name, _hints(tool), summary(tool.description or tool.title)) for tool in tools],
        empty="No tools.",
    )


def _show_tool(console: Console, tool: ToolInfo) -> None:
    console.heading(tool.public_name)
    if hints := _hints(tool):
        console.line(f"({hints})")
    if tool.description:
        console.line(tool.description.strip())
    console.json(tool.input_schema)
    for warning in tool.warnings:
        console.line(f"warning: {warning}")
    console.line()


def _is_found(tool: ToolInfo, search: str | None) -> bool:
    if search is None:
        return True
    texts = (tool.public_name, tool.name, tool.title or "", tool.description or "")
    return any(search.casefold() in text.casefold() for text in texts)


def _hints(tool: ToolInfo) -> str:
    words = [
        ("read-only", tool.annotations.read_only),
        ("destructive", tool.annotations.destructive and not tool.annotations.read_only),
        ("idempotent", tool.annotations.idempotent and not tool.annotations.read_only),
    ]
    return ", ".join(word for word, holds in words if holds)
