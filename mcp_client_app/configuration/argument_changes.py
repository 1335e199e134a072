"""Edits of fixed arguments by somebody who sees their names and never their values."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.naming import normalise_tool_name

__all__ = ["ArgumentChanges", "Change"]


class Change(enum.Enum):
    """What becomes of an argument, in the place of a value."""

    KEEP = "keep"
    REMOVE = "remove"


@dataclass(frozen=True)
class ArgumentChanges:
    """What is changed of the fixed arguments of one server."""

    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """Tool -> argument -> its new value, or a ``Change``."""
    removed: frozenset[str] = frozenset()
    """Tools to take out, whether they are there or not."""
    replace: bool = False
    """``values`` names all tools and arguments; else the others stay as they are."""

    def whole(self, stored: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return all fixed arguments after the edit. Names of tools are compared as filters do.

        Raises:
            ConfigurationError: A value is to be kept that is not there.
        """
        spelling = {normalise_tool_name(tool): tool for tool in stored}
        gone = {normalise_tool_name(tool) for tool in self.removed}
        result = {
            tool: dict(arguments)
            for tool, arguments in stored.items()
            if not self.replace and normalise_tool_name(tool) not in gone
        }
        for tool, arguments in self.values.items():
            name = spelling.get(normalise_tool_name(tool), tool)
            result[name] = self._changed(name, arguments, stored.get(name, {}))
        return {tool: arguments for tool, arguments in result.items() if arguments}

    def _changed(self, tool: str, arguments: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
        result = {} if self.replace else dict(stored)
        for name, value in arguments.items():
            if value is Change.REMOVE:
                result.pop(name, None)
            elif value is not Change.KEEP:
                result[name] = value
            elif name in stored:
                result[name] = stored[name]
            else:
                raise ConfigurationError(
                    f"There is no stored value of {name!r} of {tool!r} to keep; give one.",
                    field=f"fixed_arguments.{tool}.{name}",
                )
        return result
