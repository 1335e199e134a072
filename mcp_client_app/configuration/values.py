"""Single values of an ``mcp.json``, read as leniently as is safe.

Each function takes the key's name for its message, and never repeats the value.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "EntryError",
    "as_boolean",
    "as_number",
    "as_text",
    "as_texts",
    "as_variable",
    "as_whole_number",
    "split_line",
    "texts",
]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class EntryError(Exception):
    """This entry cannot be imported: a sentence that says why, without any value."""


def texts(value: Any) -> Iterable[str]:
    """Yield every string in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts(key)
            yield from texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)


def as_text(key: str, value: Any) -> str:
    """Return a string; numbers and truth values become what they look like."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise EntryError(f"{key!r} must be a string.")


def as_texts(key: str, value: Any) -> list[str]:
    """Return a list of strings."""
    if not isinstance(value, list | tuple):
        raise EntryError(f"{key!r} must be a list of strings.")
    return [as_text(key, item) for item in value]


def split_line(key: str, text: str) -> list[str]:
    """Split a command line as a shell would."""
    try:
        return shlex.split(text)
    except ValueError:
        raise EntryError(f"{key!r} has a quotation mark without its partner.") from None


def as_variable(key: str, value: Any) -> str:
    """Return the name of an environment variable."""
    if not isinstance(value, str) or not _VARIABLE.match(value):
        raise EntryError(f"{key!r} must name an environment variable.")
    return value


def as_number(key: str, value: Any) -> float:
    """Return a finite number, 0 or more; a string of digits is one."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise EntryError(f"{key!r} must be a number, 0 or more.")
    return number


def as_whole_number(key: str, value: Any) -> int:
    """Return a whole number, 0 or more."""
    number = as_number(key, value)
    if not number.is_integer():
        raise EntryError(f"{key!r} must be a whole number.")
    return int(number)


def as_boolean(key: str, value: Any) -> bool:
    """Return a truth value; the words are accepted, too."""
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise EntryError(f"{key!r} must be true or false.")
    return value
