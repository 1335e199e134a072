"""The verb ``call``."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mcp_client_app import services
from mcp_client_app.datatypes import Progress, ToolResult
from mcp_client_app.management import documents, parsing
from mcp_client_app.management.blocks import show_blocks, show_structured
from mcp_client_app.management.console import Console
from mcp_client_app.management.failures import failure
from mcp_client_app.management.questions import answered_here
from mcp_client_app.management.verbs import Verbs

__all__ = ["add_verbs"]


def add_verbs(verbs: Verbs) -> None:
    """Add this module's verb."""
    verb = verbs.add(
        "call",
        call_tool,
        help="call a tool",
        epilog=(
            "A value of key=value is read as JSON if it can be, unless the tool wants a text there; "
            "otherwise it is a text."
        ),
    )
    verb.add_argument(
        "name", metavar="NAME", help="the tool: <server>__<tool>, or its bare name if that is unique"
    )
    verb.add_argument(
        "arguments",
        metavar="ARGUMENTS",
        nargs="*",
        help="key=value pairs, one JSON object, or '-' for one on standard input",
    )
    verb.add_argument("--server", metavar="NAME", help="the server whose tool is meant")
    verb.add_argument(
        "--timeout", metavar="SECONDS", type=parsing.seconds, help="time limit for everything; 0 = none"
    )
    only = verb.add_mutually_exclusive_group()
    only.add_argument("--structured", action="store_true", help="write only the structured content, as JSON")
    only.add_argument("--raw", action="store_true", help="write the result as the server sent it, as JSON")


def call_tool(options: argparse.Namespace, console: Console) -> None:
    """Call a tool and show its result."""
    with console.progress() as progress, answered_here(console, progress):
        texts = _text_arguments(options)
        arguments = parsing.tool_arguments(options.arguments, sys.stdin, texts)
        progress.waiting(f"calling {options.name} ...")
        result = services.call_tool(
            options.name,
            arguments,
            server=options.server,
            timeout=options.timeout,
            on_progress=lambda report: progress.show(_described(report)),
        )
    _show(result, options, console)
    for warning in result.warnings:
        console.note(f"warning: {warning}")
    if result.truncated:
        console.note("warning: The text was cut at the largest size allowed (max_result_size).")
    if result.is_error:
        raise failure(f"The tool {result.tool!r} of {result.server!r} failed: {result.text}")


def _text_arguments(options: argparse.Namespace) -> frozenset[str]:
    """Look up which arguments are texts, if that can make a difference."""
    if not parsing.has_ambiguous_values(options.arguments):
        return frozenset()
    tool = services.find_tool(options.name, server=options.server)
    # An unknown tool, or one that cannot be reached: the call itself says so best.
    return parsing.text_keys(tool.input_schema) if tool is not None else frozenset()


def _show(result: ToolResult, options: argparse.Namespace, console: Console) -> None:
    if options.raw:
        _show_value(console, dict(result.raw))
    elif options.structured:
        if result.structured is None and not result.is_error:
            raise failure(f"The result of {result.tool!r} has no structured content.")
        _show_value(console, result.structured)
    elif console.as_json:
        console.document(documents.tool_result_document(result))
    elif not result.is_error:
        show_blocks(console, result.content)
        show_structured(console, result.structured, result.content)


def _show_value(console: Console, value: Any) -> None:
    if console.as_json:
        console.document(value)
    else:
        console.json(value)


def _described(report: Progress) -> str:
    share = f"{report.progress:g}/{report.total:g}" if report.total else f"{report.progress:g}"
    return f"[{share}] {report.message or ''}".rstrip()
