"""What models call tools, and which tool a model means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.exceptions import AmbiguousToolError, UnknownToolError
from mcp_client_app.naming import names_other_server, normalise_tool_name

__all__ = ["ToolNames", "unknown_tool_text"]

LONGEST_SAID = 100
"""Characters of a wrong name that are repeated."""
LONGEST_LIST = 2000
"""Characters of the list of valid names."""


class ToolNames:
    """The names of some tools of several servers: each has one public name, each name one tool.

    The public name is a pure function of server and tool, so it does not depend on which other
    tools there are. Where two tools would share one, the first keeps it; the other is in ``problems``.
    """

    def __init__(self, tools: Iterable[ToolInfo]) -> None:
        self._tools: dict[str, ToolInfo] = {}
        self.problems: list[str] = []
        """Which tools were left out, and why."""
        for tool in tools:
            other = self._tools.setdefault(tool.public_name, tool)
            if (other.server, other.name) != (tool.server, tool.name):
                self.problems.append(
                    f"The tool {tool.name!r} of {tool.server!r} is left out: "
                    f"{other.name!r} of {other.server!r} has the same public name, {tool.public_name!r}."
                )
        self._folded: dict[str, list[ToolInfo]] = {}
        self._own: dict[str, list[ToolInfo]] = {}
        for tool in self._tools.values():
            self._folded.setdefault(normalise_tool_name(tool.public_name), []).append(tool)
            self._own.setdefault(normalise_tool_name(tool.name), []).append(tool)

    def __iter__(self) -> Iterator[ToolInfo]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def public_names(self) -> tuple[str, ...]:
        """The valid names, in the tools' order."""
        return tuple(self._tools)

    def resolve(self, said: object, unavailable: Sequence[str] = (), servers: Iterable[str] = ()) -> ToolInfo:
        """Return the tool that a model means by ``said``.

        An exact public name wins; then case and outer white space are disregarded; then a tool's
        own name is taken if only one tool has it, unless it names another one of ``servers``.

        Raises:
            UnknownToolError: Its message lists the valid names. ``unavailable`` servers are named, too.
            AmbiguousToolError: Several tools fit; its message lists them.
        """
        name = said if isinstance(said, str) else ""
        exact = self._tools.get(name) or self._tools.get(name.strip())
        if exact is not None:
            return exact
        folded = normalise_tool_name(name)
        others = (*servers, *unavailable)
        own = [
            tool
            for tool in self._own.get(folded, ())
            if not names_other_server(tool.name, tool.server, others)
        ]
        exact_own = [tool for tool in own if tool.name == name.strip()]
        for found in (self._folded.get(folded), exact_own, own):
            if found and len(found) == 1:
                return found[0]
            if found:
                raise _ambiguous(name, found)
        raise UnknownToolError(
            unknown_tool_text(said, self.public_names, unavailable),
            tool=str(said)[:LONGEST_SAID],
            unavailable=unavailable,
        )


def _ambiguous(said: str, found: Sequence[ToolInfo]) -> AmbiguousToolError:
    candidates = sorted(tool.public_name for tool in found)
    return AmbiguousToolError(
        f"Several tools are meant by {_quoted(said)}; use one of: {_listed(candidates)}.",
        tool=said[:LONGEST_SAID],
        candidates=candidates,
    )


def unknown_tool_text(said: object, names: Sequence[str], unavailable: Sequence[str] = ()) -> str:
    """Tell a model that there is no such tool, and which there are; of bounded length."""
    parts = [f"There is no tool {_quoted(said)}."]
    close = difflib.get_close_matches(str(said)[:LONGEST_SAID].strip(), names, n=1)
    if close:
        parts.append(f"Did you mean {close[0]}?")
    parts.append(f"Valid names: {_listed(names)}." if names else "There are no tools at all at present.")
    if unavailable:
        parts.append(f"These servers are unavailable: {_listed(sorted(unavailable))}.")
    return " ".join(parts)


def _quoted(said: object) -> str:
    text = str(said)
    return repr(text if len(text) <= LONGEST_SAID else f"{text[:LONGEST_SAID]}...")


def _listed(names: Sequence[str]) -> str:
    kept: list[str] = []
    length = 0
    for name in names:
        length += len(name) + 2
        if length > LONGEST_LIST:
            return f"{', '.join(kept)} and {len(names) - len(kept)} more"
        kept.append(name)
    return ", ".join(kept)
