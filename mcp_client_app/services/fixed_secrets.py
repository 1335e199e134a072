"""Fixed arguments are not for models: their values are taken out of what servers say.

In errors and in audit rows every value counts. In results only what is a secret by its name or
its looks is masked: a fixed folder is part of the paths that a model has to read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from mcp_client_app.client.redaction import redacted_value, spellings
from mcp_client_app.datatypes import Progress, ToolResult
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.services.redaction import is_sensitive

__all__ = ["FixedSecrets"]

SHORTEST: Final = 6
"""Shorter values are left: they would mask half of an ordinary text."""
MASK: Final = "***"

_KEY_LIKE: Final = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_.+=-]{16,}\Z")


class FixedSecrets:
    """Masks the fixed arguments of one call."""

    def __init__(self, fixed: Mapping[str, Any]) -> None:
        values = list(_texts(fixed, is_secret=False))
        self.names = tuple(fixed)
        self._all = _masking([text for text, _ in values])
        self._secret = _masking([text for text, is_secret in values if is_secret or _KEY_LIKE.match(text)])

    def conceal(self, value: Any) -> Any:
        """Return JSON, or a text, without any of the values."""
        return redacted_value(value, self._all)

    def error(self, error: MCPClientError) -> MCPClientError:
        """Return an error without any of the values, in its message or in what it carries."""
        if self._all is str:
            return error
        told = error.copy()
        for name, value in vars(error).items():
            if isinstance(value, str | Mapping | list):
                setattr(told, name, self.conceal(value))
            elif isinstance(value, tuple) and all(isinstance(item, str) for item in value):
                setattr(told, name, tuple(map(self._all, value)))
        said = "\n".join(_said(error))
        if vars(told) == vars(error) and self._all(said) == said:
            return error
        told.args = (told.message,)
        told.__cause__ = None
        return told

    def progress(self, told: Callable[[Progress], Any] | None) -> Callable[[Progress], Any] | None:
        """Return what tells of a call's progress without any of the values."""
        if told is None or self._all is str:
            return told
        return lambda progress: told(replace(progress, message=self.conceal(progress.message)))

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the call as they may be written down."""
        return {**given, **dict.fromkeys(self.names, MASK)}

    def result(self, result: ToolResult) -> ToolResult:
        """Return a result as a model may read it."""
        if self._all is str:
            return result
        return replace(
            result,
            content=tuple(redacted_value(block, self._secret) for block in result.content),
            structured=redacted_value(result.structured, self._secret),
            raw=redacted_value(result.raw, self._secret),
            warnings=tuple(self._all(warning) for warning in result.warnings),
        )


def _said(error: BaseException | None) -> Iterator[str]:
    """Yield what an error says, and those behind it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        yield str(error)
        seen.add(id(error))
        error = error.__cause__ or error.__context__


def _texts(value: Any, *, is_secret: bool) -> Iterator[tuple[str, bool]]:
    """Yield the texts in a value, and whether the name of one of the keys above makes it a secret."""
    if isinstance(value, str):
        yield value, is_secret
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, is_secret=is_secret or is_sensitive(str(key)))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, is_secret=is_secret)


def _masking(texts: list[str]) -> Callable[[str], str]:
    found = spellings(text for text in texts if len(text) >= SHORTEST)
    if not found:
        return str
    pattern = re.compile("|".join(map(re.escape, found)))
    return lambda text: pattern.sub(MASK, text)
