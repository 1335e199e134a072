"""Binary content of results: what it is, how large, and whether a model can look at it."""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass, field

from mcp_client_app import json_codec

__all__ = ["Binary", "image_type"]

LARGEST_IMAGE = 5_000_000
"""Characters of base64: beyond, providers refuse the whole request."""

_KINDS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_MIME = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}\Z")


@dataclass(frozen=True, slots=True)
class Binary:
    """Binary content as the server sent it."""

    kind: str
    """``image``, ``audio`` or ``file``."""
    data: str = field(repr=False)
    """Base64; not checked."""
    mime_type: str = ""
    uri: str = ""
    """Of a resource."""

    @property
    def size(self) -> int:
        """Bytes, as far as the length of the base64 tells."""
        return max(0, len(self.data) * 3 // 4 - self.data[-2:].count("="))

    def note(self, reference: str | None = None) -> str:
        """Return what stands in its place where only text can."""
        about = self.mime_type if _MIME.match(self.mime_type) else self.kind
        source = f" from {json_codec.scrub(self.uri[:300])}" if self.uri else ""
        kept = f"stored as {reference}" if reference else "not shown"
        return f"[{self.kind}{source}: {about}, {self.size} bytes, {kept}]"


def image_type(content: Binary) -> str | None:
    """Return the type of an image that model providers take, or None.

    The bytes decide, not what the server says: a wrong type, or base64 that is none, would fail
    a whole request.
    """
    if not content.data or len(content.data) > LARGEST_IMAGE:
        return None
    try:
        data = binascii.a2b_base64(content.data, strict_mode=True)
    except ValueError:
        return None
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _KINDS.items() if data.startswith(magic)), None)
