"""Reads words of the command line: pairs, durations, a tool's arguments.

Functions for ``argparse`` raise ``ArgumentTypeError``; no message repeats a value, which may be
a secret.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from mcp_client_app.management.failures import usage_error

__all__ = [
    "STANDARD_STREAM",
    "command_words",
    "environment_pair",
    "has_ambiguous_values",
    "header_pair",
    "read_input",
    "seconds",
    "text_arguments",
    "text_keys",
    "tool_arguments",
]

STANDARD_STREAM = "-"
"""Stands for standard input or output in the place of a file."""


# Types of options ------------------------------------------------------------------------


def environment_pair(text: str) -> tuple[str, str]:
    """Read ``NAME=VALUE``."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError("Write NAME=VALUE.")
    return name, value


def header_pair(text: str) -> tuple[str, str]:
    """Read ``NAME=VALUE`` or ``NAME: VALUE``; what comes first separates."""
    match = re.match(r"([^=:]+)[=:](.*)\Z", text, flags=re.DOTALL)
    if match is None:
        raise argparse.ArgumentTypeError("Write NAME=VALUE or 'NAME: VALUE'.")
    return match[1].strip(), match[2].strip()


def seconds(text: str) -> float:
    """Read a number of seconds, 0 or more; 0 means no limit."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    # Written so that NaN fails, too.
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError("Give a number of seconds; 0 = no limit.")
    return value


def command_words(words: Sequence[str]) -> list[str]:
    """Split a command line: one text as a shell would, several words as they are.

    Raises:
        CommandError: quotes do not match, or there is no word.
    """
    if len(words) != 1:
        return list(words)
    try:
        split = shlex.split(words[0])
    except ValueError:
        raise usage_error(
            'COMMAND: a quotation is not closed. Put the whole command in quotes, as in "npx -y package".'
        ) from None
    if not split:
        raise usage_error('COMMAND: it is empty. Give the program and its arguments, as in "npx -y package".')
    return split


# Arguments of tools and prompts -----------------------------------------------------------


def tool_arguments(words: Sequence[str], stdin: TextIO, texts: Collection[str] = ()) -> dict[str, Any]:
    """Read a tool's arguments: one JSON object, ``-`` for one on standard input, or ``key=value`` pairs.

    Args:
        words: The words of the command line.
        stdin: Where ``-`` reads.
        texts: Keys whose values are texts even if they could be read as JSON.

    Raises:
        CommandError: they cannot be read.
    """
    if list(words) == [STANDARD_STREAM]:
        return _object(stdin.read(), "standard input")
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return _object(words[0], "ARGUMENTS")
    return {key: value if key in texts else _value(value) for key, value in _pairs(words).items()}


def text_arguments(words: Sequence[str]) -> dict[str, str]:
    """Read a prompt's arguments, whose values are always texts.

    Raises:
        CommandError: a word is no ``key=value``, or a key is given twice.
    """
    return _pairs(words)


def has_ambiguous_values(words: Sequence[str]) -> bool:
    """Say whether a ``key=value`` among the words can be read as JSON and as a text."""
    values = [word.partition("=")[2] for word in words if "=" in word and not word.lstrip().startswith("{")]
    return any(not isinstance(_value(value), str) for value in values)


def text_keys(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the properties of a JSON schema that can only be texts."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return frozenset()
    return frozenset(
        key
        for key, details in properties.items()
        if isinstance(details, Mapping) and details.get("type") == "string"
    )


def _pairs(words: Iterable[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for number, word in enumerate(words, 1):
        key, separator, value = word.partition("=")
        if not separator or not key:
            raise usage_error(
                f"ARGUMENTS: word {number} is no key=value. Write key=value pairs, one JSON object, or '-'."
            )
        if key in pairs:
            raise usage_error(f"ARGUMENTS: {key!r} is given twice; for a list write {key}='[1, 2]'.")
        pairs[key] = value
    return pairs


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON.")


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise usage_error(
            f"{where}: no JSON object: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    except (ValueError, RecursionError):
        raise usage_error(f"{where}: no JSON object that can be sent.") from None
    if not isinstance(value, dict):
        raise usage_error(f'{where}: a JSON object such as {{"key": "value"}} is expected.')
    return value


# Files -----------------------------------------------------------------------------------


def read_input(name: str, stdin: Any) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``.

    Raises:
        CommandError: it cannot be read.
    """
    if name == STANDARD_STREAM:
        data = getattr(stdin, "buffer", stdin).read()
        return data if isinstance(data, bytes) else str(data).encode()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise usage_error(f"FILE: {name!r} cannot be read: {error.strerror}.") from None
