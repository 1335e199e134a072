"""JSON in and out, fast and without surprises.

orjson does the work. The standard library steps in for what orjson gets wrong or refuses:
integers beyond 64 bits (orjson silently turns them into floats), NaN and Infinity, lone
surrogates. What comes out of ``loads`` can be stored, sent on and shown: NaN becomes
None, a lone surrogate the replacement character. NUL stays (it is legal JSON); ``scrub``
removes it for databases that refuse it.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

__all__ = ["canonical", "dumps", "loads", "replace_surrogates", "scrub"]

_LONG_DIGITS = re.compile(rb"\d{19}")
_SURROGATE = re.compile("[\ud800-\udfff]")


def loads(data: bytes | bytearray | memoryview) -> Any:
    """Decode UTF-8 JSON.

    Raises:
        ValueError: Not JSON, or nested too deeply.
    """
    if _LONG_DIGITS.search(data) is None:
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass  # perhaps NaN or a lone surrogate: the standard library knows
    try:
        value = json.loads(bytes(data).decode("utf-8"), parse_constant=_constant)
    except RecursionError as error:
        raise ValueError("The JSON text is nested too deeply.") from error
    return _replace(value, _SURROGATE, "�")


def dumps(value: Any) -> bytes:
    """Encode as compact UTF-8 JSON.

    Raises:
        TypeError: The value, or a part of it, has no JSON form.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return _dumps_oddities(value)


def canonical(value: Any) -> bytes:
    """Encode with sorted keys: equal JSON values give equal bytes.

    Raises:
        TypeError: As for ``dumps``.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return _dumps_oddities(value, sort_keys=True)


def _dumps_oddities(value: Any, *, sort_keys: bool = False) -> bytes:
    """Encode integers beyond 64 bits and lone surrogates; what has no JSON form at all raises again."""
    try:
        text = json.dumps(
            _without_nan(value),
            ensure_ascii=False,
            separators=(",", ":"),
            allow_nan=False,
            sort_keys=sort_keys,
        )
    except (ValueError, RecursionError) as error:
        raise TypeError("The value is circular or nested too deeply for JSON.") from error
    return _SURROGATE.sub("�", text).encode("utf-8")


def _without_nan(value: Any) -> Any:
    """Do as orjson does: NaN and the infinities become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return value


def replace_surrogates(value: Any) -> Any:
    """Return the value without lone surrogates, which cannot be encoded; for what others have decoded."""
    return _replace(value, _SURROGATE, "�")


def scrub(value: Any) -> Any:
    """Return the value without NUL characters and lone surrogates, fit for any database."""
    return _replace(value, re.compile("[\0\ud800-\udfff]"), "�")


def _constant(_name: str) -> None:
    """NaN, Infinity and -Infinity are no JSON: None."""


def _replace(value: Any, pattern: re.Pattern[str], replacement: str) -> Any:
    if isinstance(value, str):
        return pattern.sub(replacement, value)
    if isinstance(value, dict):
        return {
            _replace(key, pattern, replacement): _replace(item, pattern, replacement)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_replace(item, pattern, replacement) for item in value]
    return value
