"""What servers offer: tools, resources, resource templates, prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.naming import public_tool_name

__all__ = [
    "Listing",
    "PromptArgument",
    "PromptInfo",
    "ResourceInfo",
    "ResourceTemplateInfo",
    "ToolAnnotations",
    "ToolInfo",
]

T = TypeVar("T")


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
