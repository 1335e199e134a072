"""The verb ``prompts``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from mcp_client_app import services
from mcp_client_app.datatypes import PromptInfo, PromptResult
from mcp_client_app.management import documents, parsing
from mcp_client_app.management.blocks import show_blocks
from mcp_client_app.management.console import Console
from mcp_client_app.management.listing import listed, required_server, summary
from mcp_client_app.management.questions import answered_here
from mcp_client_app.management.tables import Column
from mcp_client_app.management.verbs import Verbs

__all__ = ["add_verbs"]


def add_verbs(verbs: Verbs) -> None:
    """Add this module's verb."""
    verb = verbs.add("prompts", list_prompts, help="list prompts, or fill one in")
    verb.add_argument("server", metavar="SERVER", nargs="?")
    verb.add_argument("--get", metavar=("NAME", "KEY=VALUE"), nargs="+", help="fill in this prompt of SERVER")


def list_prompts(options: argparse.Namespace, console: Console) -> None:
    """Connect and list prompts, or fill one in."""
    if options.get is not None:
        _get_prompt(options, console)
        return
    listing = listed(services.list_prompts, options.server, console)
    if console.as_json:
        listing.write(console, "prompts", documents.prompt_document)
    else:
        console.table(
            [
                Column("SERVER"),
                Column("PROMPT"),
                Column("ARGUMENTS", can_shrink=True),
                Column("DESCRIPTION", can_shrink=True),
            ],
            [
                (item.server, item.name, _arguments(item), summary(item.description or item.title))
                for item in listing.items
            ],
            empty="No prompts.",
        )
    listing.conclude()


def _get_prompt(options: argparse.Namespace, console: Console) -> None:
    server = required_server(options, "--get")
    name, *words = options.get
    arguments = parsing.text_arguments(words)
    with console.progress() as progress, answered_here(console, progress):
        progress.waiting(f"asking {server} ...")
        result = services.get_prompt(server, name, arguments)
    if console.as_json:
        console.document({"prompt": documents.prompt_result_document(result)})
    else:
        _show_messages(console, result)


def _show_messages(console: Console, result: PromptResult) -> None:
    for message in result.messages:
        console.heading(f"{message.get('role')}:")
        content = message.get("content")
        blocks = content if isinstance(content, list) else [content]
        show_blocks(console, [block for block in blocks if isinstance(block, Mapping)])


def _arguments(prompt: PromptInfo) -> str:
    return ", ".join(
        argument.name if argument.required else f"[{argument.name}]" for argument in prompt.arguments
    )
