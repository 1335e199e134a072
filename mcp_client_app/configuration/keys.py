"""The spellings that other clients use, as tables.

Keys are compared without case, ``-`` and ``_``: see :func:`plain`. A key that is in no
table is unknown; it is kept and given back by an export.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_client_app.configuration.values import as_boolean, as_text, as_texts, as_whole_number
from mcp_client_app.datatypes import ProtocolMode, Transport

__all__ = [
    "ALLOWED",
    "APPROVALS",
    "BLOCKED",
    "DISABLED",
    "EDITOR_VARIABLES",
    "ENABLED",
    "ENTRY_MARKS",
    "LIMITS",
    "OWN_KEYS",
    "ROOTS",
    "SHARED_KEYS",
    "SIGN_IN",
    "TRANSPORTS",
    "URLS",
    "plain",
]


def plain(key: str) -> str:
    """Reduce a key to what tells it from others."""
    return key.strip().casefold().replace("-", "").replace("_", "").replace(" ", "")


ROOTS: Final = ("mcpServers", "servers", "mcp_servers", "context_servers")
"""Top-level keys that hold servers."""

ENTRY_MARKS: Final = frozenset({"command", "url", "httpurl", "serverurl", "transport", "type", "inprocess"})
"""Keys (plain) by which an object is known as one server."""

TRANSPORTS: Final[Mapping[str, Transport | None]] = {
    "stdio": Transport.STDIO,
    "local": Transport.STDIO,
    "http": Transport.STREAMABLE_HTTP,
    "streamablehttp": Transport.STREAMABLE_HTTP,
    "streamable": Transport.STREAMABLE_HTTP,
    "sse": Transport.SSE,
    "inprocess": Transport.IN_PROCESS,
    # Says that it is not local, and no more.
    "remote": None,
}

URLS: Final[Mapping[str, Transport | None]] = {
    "httpurl": Transport.STREAMABLE_HTTP,
    "url": None,
    "serverurl": None,
}
"""Keys (plain) of the address, the one that counts first; with the transport that they imply."""

LIMITS: Final[Mapping[str, tuple[str, str]]] = {
    "calltimeout": ("call_timeout", "s"),
    "tooltimeoutsec": ("call_timeout", "s"),
    "tooltimeoutms": ("call_timeout", "ms"),
    "ssereadtimeout": ("call_timeout", "?"),
    "timeout": ("call_timeout", "?"),
    "connecttimeout": ("connect_timeout", "s"),
    "startuptimeoutsec": ("connect_timeout", "s"),
    "startuptimeoutms": ("connect_timeout", "ms"),
    "inittimeout": ("connect_timeout", "?"),
    "listtimeout": ("list_timeout", "s"),
    "shutdowntimeout": ("shutdown_timeout", "s"),
    "idletimeout": ("idle_timeout", "s"),
}
"""Key (plain) to our field and the unit; ``?``: some clients mean seconds, others milliseconds."""

ENABLED: Final = ("enabled", "isactive", "startup")
DISABLED: Final = ("disabled",)

ALLOWED: Final = ("allowedtools", "enabledtools", "includetools", "toolsfilter", "toolfilter")
BLOCKED: Final = ("blockedtools", "disabledtools", "excludetools")

APPROVALS: Final = ("autoapprove", "alwaysallow", "trust")
"""What lets another client call without asking. Here it grants nothing."""

SIGN_IN: Final = ("auth", "oauth", "authprovidertype", "requiresoauth", "apikey", "customuservars")

EDITOR_VARIABLES: Final = frozenset(
    {
        "cwd",
        "execPath",
        "file",
        "fileBasename",
        "fileBasenameNoExtension",
        "fileDirname",
        "fileExtname",
        "fileWorkspaceFolder",
        "lineNumber",
        "pathSeparator",
        "relativeFile",
        "relativeFileDirname",
        "selectedText",
        "userHome",
        "workspaceFolder",
        "workspaceFolderBasename",
        "workspaceRoot",
    }
)
"""Variables that only an editor on the user's machine knows."""

OWN_KEYS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "cwd": as_text,
    "in_process": as_text,
    "inherit_environment": as_boolean,
    "terminate_on_close": as_boolean,
    "auto_reconnect": as_boolean,
    "trust_annotations": as_boolean,
    "max_concurrency": as_whole_number,
    "max_result_size": as_whole_number,
    "inherited_names": as_texts,
}
"""Our own fields that are taken over as they are, and how to read them."""

SHARED_KEYS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "label": lambda value: isinstance(value, str),
    "description": lambda value: isinstance(value, str),
    "stopped": lambda value: isinstance(value, bool),
    "mode": lambda value: value in list(ProtocolMode),
    "link": lambda value: (
        isinstance(value, str) and (value in ("own", "stock") or "." in value or ":" in value)
    ),
    "strict": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
}
"""Our own fields whose names other clients use for other things; and how ours are told from theirs."""
