"""How one server is reached, and what may be called there."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from urllib.parse import urlsplit

from mcp_client_app.datatypes.states import ProtocolMode, Transport
from mcp_client_app.naming import normalise_tool_name, public_tool_name

__all__ = ["ServerSpec", "StrictOptions", "ToolFilter", "safe_url"]


@lru_cache(maxsize=1024)
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Return one pattern for all: for 10,000 tools, trying them in turn took as long as reading the JSON."""
    return re.compile("|".join(fnmatch.translate(normalise_tool_name(glob)) for glob in globs))


def _matches(globs: Sequence[str], names: Sequence[str]) -> bool:
    if not globs:
        return False
    match = _pattern(tuple(globs)).match
    return any(match(normalise_tool_name(name)) for name in names)


@dataclass(frozen=True, slots=True)
class ToolFilter:
    """Which tools may be seen and called: **blocked beats allowed**.

    Patterns are shell globs, compared without regard to case and outer white space,
    against the tool's own name and its public name.
    """

    allowed: tuple[str, ...] | None = None
    """None allows all, an empty tuple none."""
    blocked: tuple[str, ...] = ()

    def allows(self, tool: str, public_name: str | None = None) -> bool:
        """Say whether the tool may be used."""
        names = (tool,) if public_name is None else (tool, public_name)
        if self.blocks(*names):
            return False
        return self.allowed is None or _matches(self.allowed, names)

    def blocks(self, *names: str) -> bool:
        """Say whether a name is on the blocked list: enough to refuse a call before the tool is known."""
        return bool(self.blocked) and _matches(self.blocked, names)


@dataclass(frozen=True, slots=True)
class StrictOptions:
    """Checks that are off by default, because real servers fail them harmlessly."""

    contract_errors: bool = False
    """Refuse messages that lack required fields, instead of repairing them."""
    parse_errors: bool = False
    """Drop the connection on a malformed JSON-RPC message, instead of counting it."""
    tools_capability: bool = False
    """Do not ask a server for tools that does not advertise the capability."""
    result_content: bool = False
    """Refuse tool results without ``content``."""
    version_negotiation: bool = False
    """Refuse a protocol version that was not offered."""
    session_header: bool = False
    """Refuse a legacy HTTP server that gives no session id."""
    protocol_header: bool = False
    """Refuse HTTP answers that name another protocol version than the one negotiated."""
    version_consistency: bool = False
    """Refuse a handshake whose header and body name different protocol versions."""

    @classmethod
    def from_names(cls, names: Sequence[str]) -> StrictOptions:
        """Build from the names of the options that are on."""
        return cls(**dict.fromkeys(names, True))


@dataclass(frozen=True, kw_only=True)
class ServerSpec:
    """Everything the core needs to reach one server: secrets resolved, limits filled in.

    Times are seconds; 0 means no limit. Sizes are bytes.
    """

    name: str
    transport: Transport
    revision: int = 0
    """Grows with each saved change."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    inherit_environment: bool = True
    """Pass the harmless variables (PATH, HOME, ...) on; False passes only ``env``."""
    inherited_names: tuple[str, ...] = ()
    """Further names to pass on from the web process."""

    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    terminate_on_close: bool = True
    """End a legacy HTTP session with DELETE when closing."""

    in_process: str = ""
    """Dotted path of an SDK server object, or of a callable that returns one."""

    mode: ProtocolMode = ProtocolMode.AUTO
    connect_timeout: float = 30.0
    list_timeout: float = 10.0
    call_timeout: float = 60.0
    shutdown_timeout: float = 5.0
    idle_timeout: float = 900.0
    """Stop an unused stdio server after this time; it starts again on its next use."""
    max_concurrency: int = 0
    """Calls in flight at once; 0 = no limit. Further calls wait, first come, first served."""
    max_result_size: int = 10_000_000
    auto_reconnect: bool = True
    trust_annotations: bool = False
    """Replay a lost call once if the tool says that it is read-only or idempotent."""
    strict: StrictOptions = StrictOptions()
    filter: ToolFilter = ToolFilter()
    link: str = ""
    """``own``, ``stock``, or the dotted path of a link class; empty = the default."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "transport", Transport(self.transport))
        object.__setattr__(self, "mode", ProtocolMode(self.mode))

    @cached_property
    def link_key(self) -> ServerSpec:
        """Two specs with equal keys can share a live link: they differ in filters and limits only."""
        return replace(
            self,
            revision=0,
            list_timeout=0,
            call_timeout=0,
            idle_timeout=0,
            max_result_size=0,
            auto_reconnect=True,
            trust_annotations=False,
            filter=ToolFilter(),
        )

    @cached_property
    def target(self) -> str:
        """What is reached, fit for people: no credentials, no query, no arguments."""
        if self.transport is Transport.STDIO:
            return self.command
        if self.transport is Transport.IN_PROCESS:
            return self.in_process
        return safe_url(self.url)

    def allows(self, tool: str) -> bool:
        """Say whether the server-level filter lets ``tool`` (its own name) through."""
        return self.filter.allows(tool, public_tool_name(self.name, tool))


def safe_url(url: str) -> str:
    """Return scheme, host and port only: path and query may carry keys."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(invalid URL)"
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"
