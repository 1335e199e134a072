"""The frozen values that cross layers: what goes into the core and what comes out.

Standard library only. SDK types never leave ``client``; rows never enter it. Mappings
inside these values are shared, not copied: treat them as read-only.
"""

from __future__ import annotations

import enum
import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.naming import normalise_tool_name, public_tool_name

__all__ = [
    "Completion",
    "ConnectionState",
    "Listing",
    "LogMessage",
    "ManagerOptions",
    "Progress",
    "PromptArgument",
    "PromptInfo",
    "PromptResult",
    "ProtocolMode",
    "ResourceInfo",
    "ResourceResult",
    "ResourceTemplateInfo",
    "ServerSpec",
    "ServerStatus",
    "StderrLine",
    "StrictOptions",
    "ToolAnnotations",
    "ToolFilter",
    "ToolInfo",
    "ToolResult",
    "Transport",
    "UrlPolicy",
]

T = TypeVar("T")

SHARED = "shared"
"""The principal whose credentials a connection carries unless another one is named."""


class Transport(enum.StrEnum):
    """How a server is reached."""

    STDIO = "stdio"
    STREAMABLE_HTTP = "streamable_http"
    SSE = "sse"
    IN_PROCESS = "in_process"


class ProtocolMode(enum.StrEnum):
    """Which era of the protocol a connection speaks."""

    AUTO = "auto"
    """Probe for 2026-07-28, fall back to the handshake; remember what was found."""
    LEGACY = "legacy"
    """Only the ``initialize`` handshake (2024-11-05 to 2025-11-25)."""
    MODERN = "2026-07-28"
    """Only the stateless protocol of 2026-07-28."""


class ConnectionState(enum.StrEnum):
    """Where a connection stands; each state comes with a reason."""

    IDLE = "idle"
    """Not connected, and nothing is wrong: the next use connects."""
    CONNECTING = "connecting"
    READY = "ready"
    LOST = "lost"
    """The link broke; the next use connects anew."""
    BACKING_OFF = "backing_off"
    """The last attempt failed; the next use connects once the delay is over."""
    FAILED = "failed"
    """Waits for a new configuration or an explicit connect."""
    NEEDS_AUTH = "needs_auth"
    """The server refuses the credentials."""
    STOPPED = "stopped"
    """Disconnected on purpose: stays so until ``connect``."""


# What is configured ------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(normalise_tool_name(glob)))


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
        names = {normalise_tool_name(tool)}
        if public_name is not None:
            names.add(normalise_tool_name(public_name))
        if any(_pattern(glob).match(name) for glob in self.blocked for name in names):
            return False
        if self.allowed is None:
            return True
        return any(_pattern(glob).match(name) for glob in self.allowed for name in names)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlPolicy:
    """Which addresses the client may talk to; checked on the URL *and* on the socket."""

    schemes: tuple[str, ...] = ("http", "https")
    blocked_networks: tuple[str, ...] = ()
    """CIDR networks, such as ``169.254.0.0/16``."""
    allowed_hosts: tuple[str, ...] | None = None
    """Globs on the host name; None allows all. A host that matches is not held to ``blocked_networks``."""


@dataclass(frozen=True, kw_only=True)
class ManagerOptions:
    """What a manager is told once, at its start."""

    client_name: str = "django-mcp-client-app"
    client_version: str = ""
    default_link: str = "own"
    max_starts: int = 8
    """Processes or TLS connections being started at once."""
    url_policy: UrlPolicy = UrlPolicy()
    trust_env: bool = False
    """Honour ``HTTP_PROXY`` and friends."""
    allow_stdio: bool = True
    debug: bool = False
    """Log frames (secrets redacted) at DEBUG."""
    use_uvloop: bool = False
    max_frame_size: int = 64_000_000
    """A longer message is skipped and the request it answers fails."""
    stderr_lines: int = 200
    """Lines of standard error kept per server."""
    queue_size: int = 1000
    """Events (notifications, logs, stderr) that wait for callbacks, per server; the oldest is dropped."""
    callback_threads: int = 4
    max_pages: int = 1000
    max_items: int = 50_000
    reaper: bool = True
    """Start a small process that ends the servers if this process is killed hard."""
    around_callback: Callable[[Callable[[], None]], None] | None = None
    """Wraps every callback on the executor; runtime closes database connections here."""


# What a server offers ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolAnnotations:
    """Hints about a tool; claims of the server, never a guarantee."""

    title: str | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInfo:
    """One tool of one server."""

    server: str
    name: str
    """The name on the server: what goes over the wire."""
    title: str | None = None
    description: str | None = None
    input_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"}, repr=False)
    output_schema: Mapping[str, Any] | None = field(default=None, repr=False)
    annotations: ToolAnnotations = ToolAnnotations()
    icons: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    meta: Mapping[str, Any] | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()
    """What was mended or left out when the tool was read."""
    public_name: str = ""
    """``<server>__<tool>``, safe for model providers."""

    def __post_init__(self) -> None:
        if not self.public_name:
            object.__setattr__(self, "public_name", public_tool_name(self.server, self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceInfo:
    """One resource of one server."""

    server: str
    uri: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Mapping[str, Any] | None = field(default=None, repr=False)
    meta: Mapping[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplateInfo:
    """One template for resource URIs (RFC 6570)."""

    server: str
    uri_template: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Mapping[str, Any] | None = field(default=None, repr=False)
    meta: Mapping[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """One argument of a prompt; values are strings."""

    name: str
    description: str | None = None
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptInfo:
    """One prompt of one server."""

    server: str
    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] = ()
    meta: Mapping[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """Partial results: what could be listed, and why the rest could not."""

    items: tuple[T, ...] = ()
    errors: Mapping[str, MCPClientError] = field(default_factory=dict)
    """Server name to error: one failed server never hides the others."""


# What a request gives ----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a tool returned. Blocks have the wire's form, for example ``{"type": "text", "text": ...}``."""

    server: str
    tool: str
    content: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    structured: Any = field(default=None, repr=False)
    """``structuredContent``, or None."""
    is_error: bool = False
    """The tool ran and reported a failure."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The result as the server sent it, before anything was mended or cut."""
    warnings: tuple[str, ...] = ()
    """For example: the structured content does not fit the tool's output schema."""
    truncated: bool = False
    """Text was cut at ``max_result_size``."""
    replayed: bool = False
    """The call was sent a second time, after a loss, by the replay rule."""

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines; the structured content as JSON if there is no text."""
        texts = [str(block.get("text", "")) for block in self.content if block.get("type") == "text"]
        if texts:
            return "\n".join(texts)
        if self.structured is not None:
            import json

            return json.dumps(self.structured, ensure_ascii=False, default=str)
        return ""

    @property
    def meta(self) -> Mapping[str, Any] | None:
        """The result's ``_meta``."""
        meta = self.raw.get("_meta")
        return meta if isinstance(meta, Mapping) else None


@dataclass(frozen=True, kw_only=True)
class ResourceResult:
    """What reading a resource gave: text or base64 ``blob`` per item, in the wire's form."""

    server: str
    uri: str
    contents: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def text(self) -> str:
        """All text contents, joined by newlines."""
        return "\n".join(str(item["text"]) for item in self.contents if "text" in item)


@dataclass(frozen=True, kw_only=True)
class PromptResult:
    """A prompt, filled in: messages ``{"role": ..., "content": {...}}`` in the wire's form."""

    server: str
    prompt: str
    description: str | None = None
    messages: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Completion:
    """Suggestions for one argument."""

    values: tuple[str, ...] = ()
    total: int | None = None
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """One progress report of a running call."""

    progress: float
    total: float | None = None
    message: str | None = None


# What can be observed ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMessage:
    """One log message that a server sent over the protocol."""

    server: str
    level: str
    data: Any
    logger: str | None = None
    received_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StderrLine:
    """One line that a stdio server wrote to its standard error; no newline, never blank."""

    server: str
    line: str
    received_at: datetime


@dataclass(frozen=True, kw_only=True)
class ServerStatus:
    """What this process knows about one server. Free of secrets."""

    name: str
    transport: Transport
    target: str = ""
    """Command, or scheme and host."""
    enabled: bool = True
    """The operator's wish."""
    state: ConnectionState = ConnectionState.IDLE
    """What was observed, here."""
    reason: str = ""
    """Why the connection is in this state, in words."""
    code: str = ""
    """The error's code, if the state comes from an error."""
    since: datetime | None = None
    retry_at: datetime | None = None
    """When the next use will try again."""
    failures: int = 0
    """Failed attempts in a row."""
    revision: int = 0
    principal: str = SHARED

    protocol_version: str | None = None
    server_name: str | None = None
    server_version: str | None = None
    instructions: str | None = None
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    link: str = ""
    tools: int = 0
    resources: int = 0
    resource_templates: int = 0
    prompts: int = 0
    warnings: tuple[str, ...] = ()
    """What was mended or left out in the catalogue, unset variables, and the like."""

    pid: int | None = None
    exit_code: int | None = None
    stderr_tail: tuple[str, ...] = ()
    noise_count: int = 0
    """Lines on standard output, or messages, that were no JSON-RPC."""
    noise_last: str = ""
    dropped_events: int = 0
    calls: int = 0
    calls_in_flight: int = 0
    connects: int = 0
    """Successful connects of this process."""

    @property
    def is_ready(self) -> bool:
        """Whether the connection is up."""
        return self.state is ConnectionState.READY
