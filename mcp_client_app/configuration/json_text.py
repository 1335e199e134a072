"""JSON as people write it: comments, trailing commas and a byte order mark are accepted.

What is accepted is blanked out, not removed, so that the line and column of an error are
those of the original. No message quotes the text, which may hold secrets.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, NoReturn

from mcp_client_app.exceptions import ConfigurationError

__all__ = ["loads"]

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = r"//[^\n]*|/\*.*?\*/"
_STRING_OR_COMMENT = re.compile(f"({_STRING})|{_COMMENT}|(/\\*)", re.DOTALL)
_STRING_OR_COMMA = re.compile(f"({_STRING})|,(?=\\s*[}}\\]])", re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]")


def loads(text: str | bytes, *, duplicates: set[str] | None = None) -> Any:
    """Parse lenient JSON.

    Args:
        text: the document; bytes are read as UTF-8, with or without byte order mark.
        duplicates: receives the keys that appear twice in one object. The last one counts,
            as everywhere; a caller can say so.

    Raises:
        ConfigurationError: with line and column.
    """
    text = _decode(text) if isinstance(text, bytes) else text.removeprefix("\ufeff")
    text = _STRING_OR_COMMENT.sub(_blank_comment, text)
    text = _STRING_OR_COMMA.sub(lambda match: match[1] or " ", text)

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if duplicates is not None and len(result) < len(pairs):
            names = [name for name, _ in pairs]
            duplicates.update(name for name in result if names.count(name) > 1)
        return result

    try:
        return json.loads(text, object_pairs_hook=build, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise _invalid(error.msg, line=error.lineno, column=error.colno) from None
    except (RecursionError, ValueError):
        # An integer of thousands of digits, or thousands of nested lists.
        raise ConfigurationError(
            "This is no usable JSON: a number is too long or the nesting is too deep."
        ) from None


def _blank_comment(match: re.Match[str]) -> str:
    if match[1]:
        return match[1]
    if match[2]:
        before = match.string[: match.start()]
        line, column = before.count("\n") + 1, match.start() - before.rfind("\n")
        raise _invalid("the comment that begins here has no end", line=line, column=column)
    return _NOT_NEWLINE.sub(" ", match[0])


def _decode(data: bytes) -> str:
    # ASCII text in UTF-16 or UTF-32 has a NUL in its first two bytes or a mark.
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:2]:
        raise ConfigurationError("The file is encoded as UTF-16 or UTF-32; save it as UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"Line {line} is not encoded as UTF-8; save the file as UTF-8.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ConfigurationError(f"{name} is no JSON value.")


def _invalid(reason: str, *, line: int, column: int) -> ConfigurationError:
    reason = reason[:1].lower() + reason[1:]
    return ConfigurationError(f"This is no valid JSON: {reason} (line {line}, column {column}).")
