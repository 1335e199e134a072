"""Keeps results within a size: text is cut and marked, binary content is left out whole. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_client_app import json_codec
from mcp_client_app.exceptions import ResultTooLargeError

__all__ = ["cut_content", "cut_contents"]

Block = Mapping[str, Any]


def cut_content(
    content: tuple[Block, ...], structured: Any, limit: int, *, server: str
) -> tuple[tuple[Block, ...], Any, bool]:
    """Return content and structured content of at most ``limit`` bytes, and whether anything was cut.

    Text is kept up to the limit, block by block; a binary block that does not fit is replaced
    by a note. Structured content cannot be cut: it is left out when text says the same.

    Raises:
        ResultTooLargeError: Structured content over the limit, and no content beside it.
    """
    structured_size = len(json_codec.dumps(structured)) if structured is not None else 0
    cut = False
    if structured_size > limit:
        if not content:
            raise ResultTooLargeError(
                f"The structured result of {server!r} has {structured_size} bytes; the limit is {limit}.",
                server=server,
                limit=limit,
                size=structured_size,
            )
        structured, cut = None, True
    left = limit
    kept: list[Block] = []
    for block in content:
        shortened = _fit(block, left)
        cut = cut or shortened is not block
        kept.append(shortened)
        left = max(0, left - _size(shortened))
    return tuple(kept), structured, cut


def cut_contents(contents: tuple[Block, ...], limit: int) -> tuple[tuple[Block, ...], bool]:
    """Do the same with the contents of a resource."""
    blocks = tuple({"type": "resource", "resource": item} for item in contents)
    kept, _, cut = cut_content(blocks, None, limit, server="")
    if not cut:
        return contents, False
    return tuple(
        block.get("resource") or {"uri": item["uri"], "text": block["text"]}
        for block, item in zip(kept, contents, strict=True)
    ), True


def _fit(block: Block, room: int) -> Block:
    size = _size(block)
    if size <= room:
        return block
    if block.get("type") == "text":
        # No more is encoded than could fit: what is left out may be much larger.
        kept = str(block["text"])[:room].encode("utf-8", "surrogatepass")[:room]
        text = kept.decode("utf-8", "ignore")
        return {**block, "text": f"{text}\n[cut: {size - len(text.encode())} more bytes]"}
    inner = block.get("resource")
    if isinstance(inner, Mapping) and "text" in inner:
        fitted = _fit({"type": "text", "text": inner["text"]}, room)
        only_text = {name: value for name, value in inner.items() if name != "blob"}  # some send both
        return {**block, "resource": {**only_text, "text": fitted["text"]}}
    kind = block.get("mimeType") or (inner.get("mimeType") if isinstance(inner, Mapping) else None)
    return {"type": "text", "text": f"[left out: {kind or block.get('type')} of {size} bytes]"}


def _size(block: Block) -> int:
    """Bytes of what makes a block large."""
    inner = block.get("resource")
    if isinstance(inner, Mapping):
        parts = [inner.get("text"), inner.get("blob")]
    elif block.get("type") != "resource_link":
        parts = [block.get("text"), block.get("data")]
    else:  # a link, whose description may be anything
        parts = list(block.values())
    return sum(_bytes_of(part) for part in parts if isinstance(part, str))


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
