"""Shows content blocks: text as it is, the rest as a remark on what came."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_client_app.management.console import Console

__all__ = ["show_blocks", "show_contents", "show_structured"]


def show_blocks(console: Console, blocks: Sequence[Mapping[str, Any]]) -> None:
    """Write content blocks in their order."""
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            console.text(str(block.get("text", "")))
        elif kind == "resource" and isinstance(block.get("resource"), Mapping):
            show_contents(console, [block["resource"]])
        elif kind == "resource_link":
            console.line(f"[link to {block.get('uri')}]")
        elif "data" in block:
            console.line(f"[{kind}, {_described(block, block['data'])}]")
        else:
            console.line(f"[{kind}]")


def show_contents(console: Console, contents: Sequence[Mapping[str, Any]]) -> None:
    """Write the contents of a resource."""
    for item in contents:
        if "text" in item:
            console.text(str(item["text"]))
        else:
            console.line(f"[{item.get('uri')}, {_described(item, item.get('blob'))}]")


def show_structured(console: Console, structured: Any, blocks: Sequence[Mapping[str, Any]]) -> None:
    """Write structured content, unless a text block says the same: servers send both for old clients."""
    if structured is None or any(_says(block, structured) for block in blocks):
        return
    console.json(structured)


def _says(block: Mapping[str, Any], structured: Any) -> bool:
    text = block.get("text")
    if not isinstance(text, str):
        return False
    if (
        isinstance(structured, Mapping)
        and list(structured) == ["result"]
        and str(structured["result"]) == text
    ):
        # The SDK's wrapping of a plain value.
        return True
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return bool(value == structured or (isinstance(structured, Mapping) and {"result": value} == structured))


def _described(item: Mapping[str, Any], data: Any) -> str:
    mime_type = item.get("mimeType") or "unknown type"
    if not isinstance(data, str):
        return str(mime_type)
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return f"{mime_type}, {size:,} bytes"
