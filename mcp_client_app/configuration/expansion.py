"""References to environment variables in stored text: ``${NAME}`` and, in some fields, ``$NAME``.

The rules, complete:

* ``${NAME}`` and ``${env:NAME}`` stand for the variable's value; a missing variable is an
  error, an empty one is empty. ``${NAME:-default}`` gives the default if the variable is
  missing or empty; a default may hold references in turn.
* ``$NAME`` counts only in fields that say so (``env`` and ``headers``), and only as the whole
  value or a whole word between spaces, so that passwords stay whole. A missing variable
  leaves the text as it is, with a warning.
* ``$${`` stands for the text ``${``. ``$$NAME`` stands for the text ``$NAME`` where
  ``$NAME`` would be a reference.
* ``${input:...}`` and other placeholders that only an editor can fill in are an error.
* Everything else stays, byte for byte. A substituted value is never looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from mcp_client_app.exceptions import ConfigurationError

__all__ = ["Expanded", "consists_of_references", "expand", "placeholders", "references"]

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_OPENING = re.compile(rf"\$\{{(?:env:)?(?P<name>{_NAME})(?P<end>\}}|:-)")
_WORD = re.compile(rf"(?P<escape>\$?)\$(?P<name>{_NAME})(?= |\Z)")
_PLACEHOLDER = re.compile(r"\$\{(?P<text>(?:input|command|config|workspaceFolder):[^{}]*)\}")
_CONVENTIONAL = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
_MAX_NESTING = 16
_AUTH_SCHEME = re.compile(r"\A(?:Basic|Bearer|Token) ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Expanded:
    """A value with its references filled in."""

    value: str = field(repr=False)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reference:
    """A part of a value that stands for something else."""

    name: str
    source: str
    """The part as it is written."""
    default: str | None = None
    is_word: bool = False
    """Written as ``$NAME``."""
    is_placeholder: bool = False


def expand(
    value: str,
    variables: Mapping[str, str],
    *,
    bare_words: bool,
    field: str,
    may_read: Callable[[str], bool],
) -> Expanded:
    """Fill in the references of one value.

    Args:
        value: the text as stored.
        variables: the environment.
        bare_words: whether ``$NAME`` counts.
        field: what to name in errors and warnings, such as ``env.TOKEN``.
        may_read: says whether a variable may be read here.

    Raises:
        ConfigurationError: a variable is missing or may not be read; ``field`` and
            ``variable`` are set. Neither message nor attributes hold a value.
    """
    warnings: list[str] = []

    def fill(text: str, words: bool) -> str:
        return "".join(part if isinstance(part, str) else resolve(part) for part in _parts(text, words))

    def resolve(reference: _Reference) -> str:
        if reference.is_placeholder:
            raise _error(
                field, reference.name, "has to be filled in by hand: replace it by a value or a variable"
            )
        if not may_read(reference.name):
            reason = "may not be read here (see MCP_CLIENT_ENV_ALLOW); to mean plain text, write '$$'"
            raise _error(field, _shown(reference), reason)
        found = variables.get(reference.name)
        if reference.default is not None:
            return found or fill(reference.default, False)
        if found is not None:
            return found
        if reference.is_word:
            shown = _shown(reference)
            what = f"The variable {shown!r}" if shown else "A variable"
            warnings.append(f"{what} in {field!r} is not set; the text is used as it stands.")
            return reference.source
        raise _error(field, reference.name, "is not set")

    return Expanded(fill(value, bare_words), tuple(warnings))


def references(value: str, *, bare_words: bool = False) -> list[str]:
    """List the variables that a value refers to, each once, defaults included."""
    return list(dict.fromkeys(part.name for part in _walk(value, bare_words) if not part.is_placeholder))


def placeholders(value: str) -> list[str]:
    """List what somebody has to fill in by hand, such as ``input:api-key``."""
    return list(dict.fromkeys(part.name for part in _walk(value, bare_words=False) if part.is_placeholder))


def consists_of_references(value: str, *, bare_words: bool) -> bool:
    """Say whether a value is not secret itself: references only, after an authentication scheme at most."""
    parts = list(_parts(_AUTH_SCHEME.sub("", value, count=1), bare_words))
    return bool(parts) and not any(
        part.strip(" ") if isinstance(part, str) else bool(part.default) for part in parts
    )


def _walk(value: str, bare_words: bool) -> Iterator[_Reference]:
    for part in _parts(value, bare_words):
        if isinstance(part, _Reference):
            yield part
            if part.default:
                yield from _walk(part.default, bare_words=False)


def _parts(value: str, bare_words: bool) -> Iterator[str | _Reference]:
    """Split a value into plain text (escapes resolved) and references."""
    start = position = 0
    while (position := value.find("$", position)) >= 0:
        part, end = _part_at(value, position, bare_words)
        if part is None:
            position += 1
            continue
        if position > start:
            yield value[start:position]
        yield part
        start = position = end
    if start < len(value):
        yield value[start:]


def _part_at(value: str, position: int, bare_words: bool) -> tuple[str | _Reference | None, int]:
    """Return what the ``$`` at ``position`` begins and where that ends; None for a plain ``$``."""
    if value.startswith("$${", position):
        return "${", position + 3
    if (
        bare_words
        and (position == 0 or value[position - 1] == " ")
        and (word := _WORD.match(value, position))
    ):
        if word["escape"]:
            return f"${word['name']}", word.end()
        return _Reference(word["name"], word[0], is_word=True), word.end()
    if placeholder := _PLACEHOLDER.match(value, position):
        return _Reference(placeholder["text"], placeholder[0], is_placeholder=True), placeholder.end()
    opening = _OPENING.match(value, position)
    if opening is None:
        return None, position
    if opening["end"] == "}":
        return _Reference(opening["name"], opening[0]), opening.end()
    end = _closing_brace(value, opening.end())
    if end is None:
        return None, position
    return _Reference(opening["name"], value[position : end + 1], default=value[opening.end() : end]), end + 1


def _closing_brace(value: str, position: int) -> int | None:
    """Find the brace that ends a default, past the references in it; None if there is none."""
    depth = 0
    while position < len(value) and depth < _MAX_NESTING:
        if value.startswith("${", position):
            depth += 1
            position += 1
        elif value[position] == "}":
            if depth == 0:
                return position
            depth -= 1
        position += 1
    return None


def _shown(reference: _Reference) -> str | None:
    """Return the name if it may be shown: ``$ecret`` may be a password rather than a reference."""
    if reference.is_word and not _CONVENTIONAL.match(reference.name):
        return None
    return reference.name


def _error(field: str, variable: str | None, reason: str) -> ConfigurationError:
    what = f"The variable {variable!r}" if variable else "A variable"
    return ConfigurationError(f"{what} in {field!r} {reason}.", field=field, variable=variable)
