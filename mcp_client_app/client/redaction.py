"""Takes a server's secrets out of text that people will see.

Every value of ``env`` and ``headers`` counts as a secret, as do credentials, path and query
of the URL: the app cannot know which are harmless.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

from mcp_client_app.datatypes import ServerSpec

__all__ = ["Redactor", "redacted_value", "spellings", "without_input"]

SHORTEST = 6
"""Shorter values are left: they would mask half of an ordinary text."""


class Redactor:
    """Replaces the secrets of one server by ``***``."""

    def __init__(self, spec: ServerSpec) -> None:
        longest_first = spellings(value for value in _secrets(spec) if len(value) >= SHORTEST)
        self._secrets = longest_first
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        return text if self._pattern is None else self._pattern.sub("***", text)

    def beginning(self, text: str) -> str:
        """Return a text that was cut at its end: without secrets, and without one that the cut has halved."""
        text = self(text)
        halves = (secret[:size] for secret in self._secrets for size in range(len(secret) - 1, 0, -1))
        half = max((half for half in halves if text.endswith(half)), key=len, default="")
        return text[: len(text) - len(half)] + ("***" if half else "")


def spellings(texts: Iterable[str]) -> list[str]:
    """Return texts as they are and as JSON, Python, HTML and URLs write them, longest first.

    Servers quote what they were given, and a quotation mark or an umlaut is another text then.
    """
    found: set[str] = set()
    for text in texts:
        found |= {
            text,
            json.dumps(text)[1:-1],
            json.dumps(text)[1:-1].replace("/", "\\/"),
            json.dumps(text, ensure_ascii=False)[1:-1],
            repr(text)[1:-1],
            html.escape(text),
            quote(text, safe="", errors="replace"),
            quote(text, errors="replace"),
            quote_plus(text, errors="replace"),
        }
    return sorted(found, key=len, reverse=True)


def redacted_value(value: Any, redact: Callable[[str], str]) -> Any:
    """Return JSON from a server with every text in it redacted, keys included."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {redact(str(key)): redacted_value(item, redact) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted_value(item, redact) for item in value]
    return value


def without_input(message: Any) -> Any:
    """Return a message as it may be logged: without what people answered a server, and without its state."""
    if not isinstance(message, Mapping):
        return message
    shown = dict(message)
    for place in ("params", "result"):
        inner = message.get(place)
        if not isinstance(inner, Mapping):
            continue
        private = {"inputResponses", "requestState"} & set(inner)
        if place == "result" and "action" in inner:  # the answer to an elicitation
            private |= {"content"} & set(inner)
        if private:
            shown[place] = {**inner, **dict.fromkeys(private, "***")}
    return shown


def _secrets(spec: ServerSpec) -> list[str]:
    found = list(spec.env.values())
    for value in spec.headers.values():
        found += [value, *value.split()]
    try:
        parts = urlsplit(spec.url)
        found += [parts.password or "", parts.query, *parts.query.split("&")]
        found += [pair.partition("=")[2] for pair in parts.query.split("&")]
        found += [segment for segment in parts.path.split("/") if len(segment) >= 16]
    except ValueError:
        pass
    return [*found, *map(unquote, found)]
