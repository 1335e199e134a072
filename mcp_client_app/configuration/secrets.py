"""What leaves with an export, and what an import puts back.

A literal secret leaves as null; an import of null keeps the stored value. Every value of
``env`` and ``headers`` counts as secret unless it consists of references to variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_client_app.configuration.expansion import consists_of_references, placeholders
from mcp_client_app.datatypes import safe_url

__all__ = [
    "SecretChanges",
    "keep_masked_values",
    "keep_stored_json",
    "keep_stored_values",
    "keeps_masked_values",
    "visible_url",
    "without_secrets",
    "without_secrets_json",
]

_SECRET_KEY = re.compile(
    r"api[-_]?key|authorization|cookie|credential|passw|private[-_]?key|secret|token|\Aenv\Z|\A(?:extra_)?headers\Z",
    re.IGNORECASE,
)
_HARMLESS_KEY = re.compile(r"(?:endpoint|env[-_]?var|expires?(?:[-_]?in)?|type|uri|url)\Z", re.IGNORECASE)


@dataclass(frozen=True)
class SecretChanges:
    """An edit of ``env`` or ``headers`` by somebody who sees the keys and not the values."""

    values: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    """New values; None keeps the stored one."""
    removed: frozenset[str] = frozenset()
    """Keys to take out, whether they are there or not."""
    replace: bool = False
    """``values`` names all keys; else the others stay as they are."""

    def whole(self, stored: Mapping[str, str], *, ignore_case: bool) -> dict[str, str | None]:
        """Return the whole mapping, in which None stands for the stored value.

        Args:
            stored: What the row has.
            ignore_case: A key that differs by case alone is the same, as it is for headers.
        """

        def normal(key: str) -> str:
            return key.casefold() if ignore_case else key

        spelling = {normal(key): key for key in stored}
        changed: dict[str, str | None] = {}
        for key, value in self.values.items():
            # A value that is kept is found by its stored key.
            changed[spelling.get(normal(key), key) if value is None else key] = value
        gone = {normal(key) for key in (*self.removed, *self.values)}
        others = {} if self.replace else {key: None for key in stored if normal(key) not in gone}
        return {**others, **changed}


def visible_url(url: str) -> str:
    """Return the URL for people who may not see secrets: no path and query, unless all is a reference."""
    return url if not url or consists_of_references(url, bare_words=False) else safe_url(url)


def without_secrets(values: Mapping[str, str]) -> dict[str, str | None]:
    """Return ``env`` or ``headers`` with null for each literal value."""
    return {
        name: text if consists_of_references(text, bare_words=True) else None for name, text in values.items()
    }


def without_secrets_json(value: Any, *, is_secret: bool = False) -> Any:
    """Return any JSON value with null for each string below a key that sounds secret."""
    if isinstance(value, Mapping):
        return {
            key: without_secrets_json(item, is_secret=is_secret or _sounds_secret(key))
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [without_secrets_json(item, is_secret=is_secret) for item in value]
    if is_secret and isinstance(value, str) and not consists_of_references(value, bare_words=False):
        return None
    return value


def keep_stored_values(given: Mapping[str, str | None], stored: Mapping[str, str]) -> dict[str, str]:
    """Return ``env`` or ``headers`` after an import: exactly the keys given.

    Null and ``${input:...}`` stand for the stored value. Where there is none, the value is
    ``${input:NAME}``, with which a server cannot be enabled.
    """
    return {
        name: stored.get(name, text or f"${{input:{name}}}") if text is None or placeholders(text) else text
        for name, text in given.items()
    }


def keep_stored_json(given: Any, stored: Any) -> Any:
    """Fill in what an export left out of any JSON value, from what is stored at the same place."""
    if given is None:
        return stored
    if isinstance(given, Mapping):
        old = stored if isinstance(stored, Mapping) else {}
        return {key: keep_stored_json(item, old.get(key)) for key, item in given.items()}
    if isinstance(given, list) and isinstance(stored, list) and len(given) == len(stored):
        return [keep_stored_json(item, old) for item, old in zip(given, stored, strict=True)]
    return given


def keep_masked_values(given: Any, stored: Any) -> Any:
    """Put back what ``without_secrets_json`` took out of ``stored``, where it comes back as null."""
    return _with_masked(given, stored, without_secrets_json(stored))


def keeps_masked_values(given: Any, stored: Any) -> bool:
    """Say whether anything that ``without_secrets_json`` takes out of ``stored`` is still at its place."""
    return _keeps_masked(given, stored, without_secrets_json(stored))


def _keeps_masked(given: Any, stored: Any, shown: Any) -> bool:
    if isinstance(given, Mapping) and isinstance(stored, Mapping):
        return any(_keeps_masked(given[key], stored[key], shown[key]) for key in given if key in stored)
    if isinstance(given, list) and isinstance(stored, list):
        return any(_keeps_masked(*items) for items in zip(given, stored, shown, strict=False))
    return shown is None and stored is not None and bool(given == stored)


def _with_masked(given: Any, stored: Any, shown: Any) -> Any:
    if given is None:
        return stored if shown is None else None
    if isinstance(given, Mapping) and isinstance(stored, Mapping):
        return {
            key: _with_masked(item, stored[key], shown[key]) if key in stored else item
            for key, item in given.items()
        }
    if isinstance(given, list) and isinstance(stored, list) and len(given) == len(stored):
        return [_with_masked(*items) for items in zip(given, stored, shown, strict=True)]
    return given


def _sounds_secret(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None and _HARMLESS_KEY.search(key) is None
