"""Output filters as they are written down: what becomes of a tool's result before a model reads it.

``toolsets.output`` applies what is parsed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_client_app.exceptions import ConfigurationError

__all__ = [
    "DROP_BINARY",
    "Cut",
    "DropBinary",
    "Every",
    "Named",
    "OutputFilter",
    "Pick",
    "parse_filter_list",
    "parse_output_filters",
]

DROP_BINARY: Final = "drop_binary"
LONGEST_PATH = 500

_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*(?:[.:][^\W\d]\w*)\Z")
_STEP = re.compile(
    r"""\.(?P<name>[^\W\d][\w-]*)
      | \[(?P<index>-?\d{1,9})\]
      | \[(?P<every>\*)\]
      | \['(?P<single>(?:[^'\\]|\\['\\])*)'\]
      | \["(?P<double>(?:[^"\\]|\\["\\])*)"\]""",
    re.VERBOSE,
)


class Every:
    """``[*]``: all elements of an array, all values of an object."""


Step = str | int | type[Every]


@dataclass(frozen=True, slots=True)
class Cut:
    """Keep so many characters of text, and say how many are missing."""

    characters: int

    def __str__(self) -> str:
        return f"cut {self.characters}"


@dataclass(frozen=True, slots=True)
class Pick:
    """Keep what a path of the result's JSON leads to."""

    path: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return f"pick {self.path}"


@dataclass(frozen=True, slots=True)
class DropBinary:
    """Leave images, audio and files out."""

    def __str__(self) -> str:
        return DROP_BINARY


@dataclass(frozen=True, slots=True)
class Named:
    """A callable: a key of a setting, a dotted path, or, from code, the callable itself."""

    name: str
    function: Callable[..., Any] | None = None

    def __str__(self) -> str:
        return self.name


OutputFilter = Cut | Pick | DropBinary | Named


def parse_output_filters(
    value: object, *, field: str = "output_filters", known: Collection[str] | None = None
) -> Mapping[str, tuple[OutputFilter, ...]]:
    """Read ``{"tool or pattern": [filter, ...]}``; null is empty.

    A filter is ``{"cut": 2000}``, ``{"pick": "$.items[*].name"}``, ``"drop_binary"`` or the name of
    a callable.

    Args:
        value: What was written down; parsed filters stay as they are.
        field: What the places in messages begin with.
        known: The names of callables that are allowed; None (only for code) allows dotted paths and
            callables, too.

    Raises:
        ConfigurationError: Names the place: tool, position, what is wrong.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{field} must map tools to lists of filters.", field=field)
    parsed: dict[str, tuple[OutputFilter, ...]] = {}
    for tool, filters in value.items():
        if not isinstance(tool, str) or not tool.strip():
            raise ConfigurationError(f"{field} holds something that is no name or pattern.", field=field)
        parsed[tool] = parse_filter_list(filters, field=f"{field}.{tool}", known=known)
    return parsed


def parse_filter_list(
    value: object, *, field: str, known: Collection[str] | None = None
) -> tuple[OutputFilter, ...]:
    """Read the filters of one tool, in the order in which they are applied.

    Raises:
        ConfigurationError: Names the place.
    """
    if not isinstance(value, list | tuple):
        raise ConfigurationError(f"{field} must be a list of filters.", field=field)
    return tuple(_parse(item, f"{field}[{number}]", known) for number, item in enumerate(value))


def _parse(value: object, place: str, known: Collection[str] | None) -> OutputFilter:
    if isinstance(value, Cut | Pick | DropBinary | Named):
        return value
    if value == DROP_BINARY:
        return DropBinary()
    if isinstance(value, str):
        return _named(value, place, known)
    if isinstance(value, Mapping) and len(value) == 1:
        if "cut" in value:
            return _cut(value["cut"], place)
        if "pick" in value:
            return _pick(value["pick"], place)
    if known is None and callable(value):
        return Named(getattr(value, "__qualname__", type(value).__qualname__), value)
    raise ConfigurationError(
        f"""{place} is no filter; give {{"cut": 2000}}, {{"pick": "$.path"}}, "{DROP_BINARY}" """
        "or the name of a callable.",
        field=place,
    )


def _named(name: str, place: str, known: Collection[str] | None) -> Named:
    if known is not None and name not in known:
        raise ConfigurationError(
            f"{place}: {name[:100]!r} is no key of MCP_CLIENT_OUTPUT_FILTERS.", field=place
        )
    if known is None and not name.isidentifier() and not _DOTTED.match(name):
        raise ConfigurationError(
            f"{place}: {name[:100]!r} is neither a key of MCP_CLIENT_OUTPUT_FILTERS nor a dotted path.",
            field=place,
        )
    return Named(name)


def _cut(value: object, place: str) -> Cut:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigurationError(f"{place}.cut must be a number of characters, 1 or more.", field=place)
    return Cut(value)


def _pick(value: object, place: str) -> Pick:
    if not isinstance(value, str) or not value.startswith("$"):
        raise ConfigurationError(f"{place}.pick must be a path that begins with '$'.", field=place)
    if len(value) > LONGEST_PATH:
        raise ConfigurationError(f"{place}.pick has more than {LONGEST_PATH} characters.", field=place)
    steps: list[Step] = []
    position = 1
    while position < len(value):
        step = _STEP.match(value, position)
        if step is None:
            raise ConfigurationError(
                f"{place}.pick: {value[position : position + 20]!r} is no step of a path; "
                "there are .name, ['name'], [0], [-1] and [*].",
                field=place,
            )
        steps.append(_step(step))
        position = step.end()
    return Pick(value, tuple(steps))


def _step(found: re.Match[str]) -> Step:
    if found["every"]:
        return Every
    if found["index"]:
        return int(found["index"])
    if found["name"]:
        return found["name"]
    quoted = found["single"] if found["single"] is not None else found["double"]
    return re.sub(r"\\(.)", r"\1", quoted)
