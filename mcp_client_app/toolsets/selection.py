"""An agent's view of the tools of several servers: what it sees, what it means, what is sent."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.exceptions import AmbiguousToolError, UnknownToolError
from mcp_client_app.toolsets import providers
from mcp_client_app.toolsets.arguments import ArgumentChecker, invalid_arguments, parse_arguments
from mcp_client_app.toolsets.expression import wrapper_name
from mcp_client_app.toolsets.fixed_arguments import hide_arguments, merge_arguments
from mcp_client_app.toolsets.names import ToolNames
from mcp_client_app.toolsets.providers import ProviderTools
from mcp_client_app.toolsets.rules import ToolRules
from mcp_client_app.toolsets.schema_tree import SchemaTooLargeError

__all__ = ["PreparedCall", "SelectedTool", "ToolSelection", "Validation"]

Validation = Literal["error", "warn", "off"]
"""What becomes of arguments that do not fit: refused, sent with a warning, or not looked at."""


@dataclass(frozen=True)
class SelectedTool:
    """A tool as one agent sees it."""

    tool: ToolInfo
    fixed: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The public name."""
        return self.tool.public_name

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The input schema without the fixed arguments; the tool's own one if there are none."""
        try:
            return hide_arguments(self.tool.input_schema, self.fixed.keys())
        except SchemaTooLargeError:
            return {"type": "object"}

    @cached_property
    def checker(self) -> ArgumentChecker:
        """What arguments are held to."""
        return ArgumentChecker(self.tool.input_schema, self.schema if self.fixed else None)


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """What is to be sent."""

    tool: ToolInfo
    arguments: dict[str, Any] = field(repr=False)
    """The fixed ones included."""
    given: dict[str, Any] = field(repr=False)
    """The model's own part: what may be shown to it."""
    warnings: tuple[str, ...] = ()


class ToolSelection:
    """The tools that the rules let through, out of ``tools``. Immutable; build one for each round.

    ``unavailable`` names the servers whose tools are missing, for the messages; with reasons if it maps
    names to these.
    """

    def __init__(
        self,
        tools: Iterable[ToolInfo],
        rules: ToolRules,
        unavailable: Sequence[str] | Mapping[str, str] = (),
    ) -> None:
        every = tuple(tools)
        self.rules = rules
        self.unavailable = tuple(unavailable)
        self.reasons = _reasons(unavailable)
        """Why servers are unavailable, as far as it is known: for people."""
        self._names = ToolNames(tool for tool in every if rules.allows(tool))
        # Servers that the agent does not use are none of the model's business.
        self._blocked = ToolNames(
            tool for tool in every if rules.rules_for(tool.server) is not None and not rules.allows(tool)
        )
        self._lists: dict[str, ProviderTools] = {}
        self._selected = {tool.public_name: SelectedTool(tool, rules.fixed_for(tool)) for tool in self._names}
        self.warnings: tuple[str, ...] = (*self._names.problems, *self._unknown_fixed())
        """What an operator should look at."""

    def with_unavailable(self, unavailable: Sequence[str] | Mapping[str, str]) -> ToolSelection:
        """Return the same tools, with what is said now of the missing ones."""
        other = copy.copy(self)
        other.unavailable, other.reasons = tuple(unavailable), _reasons(unavailable)
        return other

    def __iter__(self) -> Iterator[SelectedTool]:
        return iter(self._selected.values())

    def __len__(self) -> int:
        return len(self._selected)

    @property
    def names(self) -> tuple[str, ...]:
        """The public names, in order."""
        return tuple(self._selected)

    def find(self, said: object) -> SelectedTool:
        """Return the tool that a model means; see ``ToolNames.resolve``.

        Raises:
            UnknownToolError: Its message lists the valid names.
            AmbiguousToolError: Several tools fit.
            ToolBlockedError: The rules forbid it, under whichever name it was asked for.
        """
        try:
            found = self._names.resolve(said, self.unavailable, self.rules.servers)
        except UnknownToolError:
            self._refuse_blocked(said)
            raise
        self.rules.check(found, said if isinstance(said, str) else None)
        return self._selected[found.public_name]

    def prepare(
        self, said: object, arguments: object = None, *, validation: Validation = "error"
    ) -> PreparedCall:
        """Turn what a model asks for (a name, an object or its JSON text) into what is to be sent.

        Raises:
            InvalidArgumentsError: No JSON object, or one that does not fit the tool's schema.
            UnknownToolError, AmbiguousToolError, ToolBlockedError: As for ``find``.
        """
        selected = self.find(said)
        tool = selected.tool
        parsed = parse_arguments(arguments, tool=selected.name, server=tool.server, schema=selected.schema)
        given = {
            name: value
            for name, value in _unwrapped(parsed, selected.schema).items()
            if name not in selected.fixed
        }
        merged = merge_arguments(given, selected.fixed)
        if validation == "off":
            return PreparedCall(tool, merged, given)
        problem = selected.checker.problem
        if problem is not None:
            return PreparedCall(
                tool, merged, given, (f"The arguments were not checked, the schema is no use: {problem}",)
            )
        errors = selected.checker.errors(merged, given)
        if errors and validation == "error":
            raise invalid_arguments(
                errors, tool=selected.name, server=tool.server, given=given, schema=selected.schema
            )
        return PreparedCall(tool, merged, given, tuple(errors))

    def for_openai(self, *, api: Literal["chat", "responses"] = "chat") -> ProviderTools:
        """Return the tools for OpenAI, or for servers that speak as it does."""
        return self._listed(f"openai {api}", partial(providers.for_openai, self, api=api))

    def for_anthropic(self) -> ProviderTools:
        """Return the tools for Anthropic."""
        return self._listed("anthropic", partial(providers.for_anthropic, self))

    def for_mcp(self) -> ProviderTools:
        """Return the tools in MCP's own form."""
        return self._listed("mcp", partial(providers.for_mcp, self))

    def _listed(self, form: str, make: Callable[[], ProviderTools]) -> ProviderTools:
        """Return a list that was made once; its entries are the caller's to add to, their schemas are not."""
        made = self._lists.get(form)
        if made is None:
            made = self._lists[form] = make()
        return ProviderTools([_own_entry(tool) for tool in made.tools], made.warnings)

    def _refuse_blocked(self, said: object) -> None:
        """Say that a tool is blocked, if that is why it is unknown."""
        try:
            found = self._blocked.resolve(said, self.unavailable, self.rules.servers)
        except UnknownToolError:
            return
        except AmbiguousToolError as error:
            found = self._blocked.resolve(error.candidates[0])
        self.rules.check(found)

    def _unknown_fixed(self) -> Iterator[str]:
        for selected in self._selected.values():
            known = selected.tool.input_schema.get("properties")
            # Without plain properties at the root there is no telling.
            if isinstance(known, Mapping) and not {"$ref", "allOf", "anyOf", "oneOf"} & set(
                selected.tool.input_schema
            ):
                for name in selected.fixed:
                    if name not in known:
                        yield f"The tool {selected.name!r} has no argument {name!r}, which is fixed for it."


def _own_entry(tool: Mapping[str, Any]) -> dict[str, Any]:
    entry = dict(tool)
    if isinstance(entry.get("function"), dict):
        entry["function"] = dict(entry["function"])
    return entry


def _reasons(unavailable: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    return dict(unavailable) if isinstance(unavailable, Mapping) else {}


def _unwrapped(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Undo ``expression.wrap``; a model that did without the wrapper is understood, too."""
    name = wrapper_name(schema)
    inner = arguments.get(name)
    return dict(inner) if len(arguments) == 1 and isinstance(inner, Mapping) else arguments
