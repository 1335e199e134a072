"""JSON in and out, fast and without surprises.

orjson does the work. The standard library steps in for what orjson gets wrong or refuses:
integers beyond 64 bits (orjson silently turns them into floats), NaN and Infinity, lone
surrogates. What comes out of ``loads`` can be stored, sent on and shown: NaN, and a number that no
float can hold, becomes None; a lone surrogate, or a byte that is no UTF-8, the replacement character.
NUL stays (it is legal JSON); ``scrub`` removes it for databases that refuse it.
"""

from __future__ import annotations

import gc
import json
import math
import os
import re
from typing import Any

import orjson

__all__ = ["DEEPEST", "canonical", "dumps", "is_too_deep", "loads", "replace_surrogates", "scrub"]

_NUMBERS = bytes(
    ord("0" if chr(code) in "0123456789+" else "e" if chr(code) in "eE" else " ") for code in range(256)
)
"""Makes digits, and the sign of an exponent, look alike."""
_RUN = b"0" * 19
_POWER = b"0e000"
_HUGE = re.compile(rb"(?:\A|[\s:,\[-])\d+(?:\.\d+)?[eE]\+?\d{3}")
"""A number with three digits of exponent, which may be more than a float holds."""
_SLICE = 262_144
"""Bytes looked at in one step: between two, other threads can run."""
_OVERLAP = 64
"""Bytes that slices share: more than a number has of which no part is 19 digits."""
_LARGE = 1_000_000
_SURROGATE = re.compile("[\ud800-\udfff]")

DEEPEST = 200
"""Arrays and objects within each other; deeper text is refused, for it would break whatever walks it."""
_ORJSON_DEEPEST = 254
_LONGEST_INTEGER = 4000
"""Digits; Python refuses somewhat longer ones, as it takes too long to convert them."""


def loads(data: bytes | bytearray | memoryview) -> Any:
    """Decode UTF-8 JSON.

    Raises:
        ValueError: Not JSON, or nested more than ``DEEPEST`` levels deep.
    """
    value = _decoded(data)
    # Only text of some length can be deep.
    if len(data) > 2 * DEEPEST:
        text = bytes(data)
        if text.count(b"[") + text.count(b"{") > DEEPEST and is_too_deep(value):
            raise ValueError("The JSON text is nested too deeply.")
    return value


def _decoded(data: bytes | bytearray | memoryview) -> Any:
    if not _has_odd_numbers(data):
        try:
            return _fast(data)
        except orjson.JSONDecodeError:
            pass  # perhaps NaN or a lone surrogate: the standard library knows
    try:
        text = bytes(data).decode("utf-8-sig", "replace")
        value = json.loads(text, parse_constant=_constant, parse_float=_float, parse_int=_integer)
        return _replace(value, _SURROGATE, "�")
    except RecursionError as error:
        raise ValueError("The JSON text is nested too deeply.") from error


def is_too_deep(value: Any) -> bool:
    """Say whether a value is nested beyond ``DEEPEST``."""
    # orjson stops at a depth of its own.
    for _ in range(_ORJSON_DEEPEST - DEEPEST):
        value = [value]
    try:
        orjson.dumps(value)
    except TypeError as error:
        return "Recursion" in str(error) or _depth_exceeds(value, _ORJSON_DEEPEST)
    return False


def _depth_exceeds(value: Any, limit: int) -> bool:
    """Do the same without orjson, which refuses some values for other reasons."""
    level = [value]
    while level := [
        inner
        for item in level
        if isinstance(item, dict | list)
        for inner in (item.values() if isinstance(item, dict) else item)
    ]:
        limit -= 1
        if limit < 0:
            return True
    return False


def _has_odd_numbers(data: bytes | bytearray | memoryview) -> bool:
    """Say whether there may be numbers that orjson gets wrong: 19 digits in a row, or a large exponent."""
    data = bytes(data)
    if len(data) <= _SLICE:
        return _slice_has_odd_numbers(data)
    return any(
        _slice_has_odd_numbers(data[start : start + _SLICE + _OVERLAP])
        for start in range(0, len(data), _SLICE)
    )


def _slice_has_odd_numbers(part: bytes) -> bool:
    numbers = part.translate(_NUMBERS)  # a regular expression alone takes ten times as long
    return _RUN in numbers or (_POWER in numbers and _HUGE.search(part) is not None)


def _fast(data: bytes | bytearray | memoryview) -> Any:
    if len(data) <= _LARGE or not gc.isenabled():
        return orjson.loads(data)
    # All other threads stand still meanwhile; searching a million new objects for garbage again and
    # again, which there cannot be, would make that several times as long.
    pause = object()
    _pauses.add(pause)
    gc.disable()
    try:
        return orjson.loads(data)
    finally:
        gc.enable()
        _pauses.discard(pause)


_pauses: set[object] = set()
"""For each thread that has stopped the search for garbage, for a moment."""


def _search_on() -> None:
    """Go on searching in a forked child, which has not got the thread that would have done so."""
    if _pauses:
        _pauses.clear()
        gc.enable()


os.register_at_fork(after_in_child=_search_on)


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


def _integer(digits: str) -> int | None:
    """Convert; an integer that is too long for that is as good as infinite."""
    return int(digits) if len(digits) <= _LONGEST_INTEGER else None


def _float(text: str) -> float | None:
    """Convert; what no float can hold would come out as infinite."""
    value = float(text)
    return value if math.isfinite(value) else None


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
