"""What an agent may see and call: filters at three levels, arguments that are fixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_client_app.datatypes import ToolFilter, ToolInfo
from mcp_client_app.exceptions import ConfigurationError, ToolBlockedError
from mcp_client_app.naming import names_other_server, normalise_tool_name

__all__ = [
    "FixedArguments",
    "ServerRules",
    "ToolRules",
    "granted_names",
    "parse_filter",
    "parse_fixed_arguments",
]

FixedArguments = Mapping[str, Mapping[str, Any]]
"""The name of a tool (own or public, in any case) -> the arguments that are fixed for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRules:
    """What an agent may use of one server."""

    filter: ToolFilter = field(default_factory=ToolFilter)
    """The agent's filter for this server."""
    own_filter: ToolFilter = field(default_factory=ToolFilter)
    """The server's own filter, which holds for everybody (``ServerSpec.filter``)."""
    fixed_arguments: FixedArguments = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRules:
    """What an agent may use. A tool has to pass every level, and **blocked beats allowed**."""

    servers: Mapping[str, ServerRules] = field(default_factory=dict)
    all_servers: bool = False
    """Also servers that ``servers`` does not name."""
    filter: ToolFilter = field(default_factory=ToolFilter)
    """The agent's filter, for the tools of all its servers."""
    fixed_arguments: FixedArguments = field(default_factory=dict, repr=False)
    """For tools of any server; those of ``ServerRules`` win."""

    def rules_for(self, server: str) -> ServerRules | None:
        """Return the rules for a server, or None if the agent has nothing to do with it."""
        folded = server.casefold()
        for name, rules in self.servers.items():
            if name.casefold() == folded:
                return rules
        return ServerRules() if self.all_servers else None

    def allows(self, tool: ToolInfo) -> bool:
        """Say whether the tool may be seen and called."""
        return self._refusal(tool) is None

    def check(self, tool: ToolInfo, said: str | None = None) -> None:
        """Hold a call to the rules, before anything is sent; ``said`` is the name that was asked for.

        Raises:
            ToolBlockedError: Names the level that forbids it.
        """
        level = self._refusal(tool, *([said] if said else []))
        if level is not None:
            raise ToolBlockedError(
                f"The tool {tool.name!r} of {tool.server!r} is blocked by {level}.",
                server=tool.server,
                tool=tool.name,
            )

    def fixed_for(self, tool: ToolInfo) -> dict[str, Any]:
        """Return the arguments that are fixed for a tool."""
        rules = self.rules_for(tool.server) or ServerRules()
        fixed: dict[str, Any] = {}
        levels = (
            (self.fixed_arguments, granted_names(tool, self.servers)),
            (rules.fixed_arguments, (tool.name, tool.public_name)),
        )
        for level, names in levels:
            meant = set(map(normalise_tool_name, names))
            for name, arguments in level.items():
                if normalise_tool_name(name) in meant:
                    fixed.update(arguments)
        return fixed

    def _refusal(self, tool: ToolInfo, *said: str) -> str | None:
        rules = self.rules_for(tool.server)
        if rules is None:
            return "the agent, which does not use this server"
        levels = (
            ("the server's filter", rules.own_filter),
            ("the agent's filter", self.filter),
            ("the agent's filter for this server", rules.filter),
        )
        for level, tool_filter in levels:
            # What was asked for may widen nothing, so it is held to the blocked list alone.
            blocked = tool_filter.blocks(tool.name, tool.public_name, *said)
            if blocked or not tool_filter.allows(*granted_names(tool, self.servers)):
                return level
        return None


def granted_names(tool: ToolInfo, servers: Iterable[str] | None) -> tuple[str, ...]:
    """Return the names by which something may be granted to a tool, these servers (None: any) being there."""
    if names_other_server(tool.name, tool.server, servers):
        return (tool.public_name,)
    return (tool.name, tool.public_name)


def parse_filter(allowed: object, blocked: object, *, where: str = "") -> ToolFilter:
    """Build a filter from stored JSON: null allows all, ``[]`` none.

    Raises:
        ConfigurationError: Neither null nor a list of names; ``where`` stands before the field's name.
    """
    parsed = _globs(allowed, f"{where}allowed_tools")
    return ToolFilter(allowed=parsed, blocked=_globs(blocked, f"{where}blocked_tools") or ())


def _globs(value: object, name: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    # A text is a sequence of texts, too: "search" would be six names.
    if not isinstance(value, list | tuple | set | frozenset):
        raise ConfigurationError(
            f"{name} must be null (no restriction) or a list of names or patterns, "
            f"not {type(value).__name__}.",
            field=name,
        )
    for item in value:
        if not isinstance(item, str) or not item.strip():
            raise ConfigurationError(f"{name} holds something that is no name or pattern.", field=name)
    return tuple(value)


def parse_fixed_arguments(value: object, *, where: str = "") -> FixedArguments:
    """Check fixed arguments from stored JSON: ``{"tool": {"argument": value}}``, or null.

    Raises:
        ConfigurationError: Another shape. The message holds no value.
    """
    name = f"{where}fixed_arguments"
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{name} must map names of tools to arguments.", field=name)
    for tool, arguments in value.items():
        if not isinstance(tool, str) or not isinstance(arguments, Mapping):
            raise ConfigurationError(
                f"{name}[{tool!r}] must map names of arguments to values.", field=f"{name}.{tool}"
            )
        if not all(isinstance(argument, str) for argument in arguments):
            raise ConfigurationError(
                f"{name}[{tool!r}]: names of arguments must be text.", field=f"{name}.{tool}"
            )
    return value
