"""Names: of servers, of tools as models and users see them, of headers that nobody may set.

Pure functions of their arguments: no settings, no Django, no state. A public tool name is
``<server>__<tool>`` in ``[A-Za-z0-9_-]{1,64}``; a suffix of eight hex digits is added
exactly when normalising or shortening changed the name, so that a name can be mapped
back through a catalogue and never has to be stored.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

__all__ = [
    "MAX_PUBLIC_NAME",
    "MAX_SERVER_NAME",
    "SERVER_NAME",
    "has_control_characters",
    "is_reserved_header",
    "is_server_name",
    "names_other_server",
    "normalise_tool_name",
    "public_tool_name",
    "slugify_server_name",
    "split_public_name",
]

MAX_SERVER_NAME = 40
MAX_PUBLIC_NAME = 64
SEPARATOR = "__"

SERVER_NAME = re.compile(r"[A-Za-z](?:[A-Za-z0-9-]|_(?!_|\Z))*\Z")
"""A letter, then letters, digits, ``-`` and ``_``; no ``__`` and no final ``_``."""

_RESERVED_HEADERS = frozenset(
    {
        # They say where a request ends and how it is packed; a wrong one makes servers wait for ever.
        "content-encoding",
        "content-length",
        "expect",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        # They are agreed with the server, anew for each connection.
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
    }
)

_DIGITS = 8
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def is_reserved_header(name: str) -> bool:
    """Say whether the client alone sets this header of a request, whatever its case."""
    return name.lower() in _RESERVED_HEADERS


def is_server_name(name: str) -> bool:
    """Say whether ``name`` can name a server (at most 40 characters)."""
    return len(name) <= MAX_SERVER_NAME and SERVER_NAME.match(name) is not None


def has_control_characters(name: str) -> bool:
    """Say whether ``name`` holds characters that no name of a tool or prompt may hold."""
    return _CONTROL.search(name) is not None


def slugify_server_name(name: str) -> str:
    """Turn any text into a server name; an acceptable name comes back unchanged."""
    if is_server_name(name):
        return name
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^A-Za-z0-9-]+", "-", ascii_name).strip("-")
    slug = re.sub(r"-{2,}", "-", slug)
    if not slug:
        slug = f"server-{_digest(name)}"
    elif not slug[0].isalpha():
        slug = f"s-{slug}"
    return slug[:MAX_SERVER_NAME].rstrip("-")


def public_tool_name(server: str, tool: str) -> str:
    """Return the name that models see for ``tool`` of ``server``."""
    plain = f"{server}{SEPARATOR}{tool}"
    name = _NOT_ALLOWED.sub("_", plain)
    if name == plain and len(name) <= MAX_PUBLIC_NAME:
        return name
    keep = MAX_PUBLIC_NAME - _DIGITS - 1
    return f"{name[:keep]}_{_digest(server, tool)}"


def split_public_name(name: str) -> tuple[str, str] | None:
    """Split ``<server>__<tool>`` at its first separator, or return None.

    A server name holds no ``__``, so the first one separates. The second part is the
    tool's own name only if nothing was normalised: look it up, do not trust it.
    """
    server, separator, tool = name.partition(SEPARATOR)
    if not separator or not tool or not is_server_name(server):
        return None
    return server, tool


def names_other_server(name: str, server: str, servers: Iterable[str] | None) -> bool:
    """Say whether a tool's own name is spelled as the public name of another of these servers (None: any).

    A server chooses the names of its tools: what is said of ``files__read`` must not hold for a tool that
    another server calls so.
    """
    parts = split_public_name(name.strip())
    if parts is None or (owner := parts[0].casefold()) == server.casefold():
        return False
    return servers is None or any(owner == other.casefold() for other in servers)


def normalise_tool_name(name: str) -> str:
    """Return the form under which filters compare names: no outer white space, no case."""
    return name.strip().casefold()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
