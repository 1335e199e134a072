"""Has whoever sits at the terminal answer what a server asks in the course of a request."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from mcp_client_app.datatypes import InputAnswer, InputKind, InputRequest
from mcp_client_app.json_schema import SchemaChecker
from mcp_client_app.management.console import Console
from mcp_client_app.management.progress import ProgressLine
from mcp_client_app.runtime import get_mcp_manager, started_manager

__all__ = ["answered_here"]

_YES: Final = ("y", "yes", "true", "1")
_NO: Final = ("n", "no", "false", "0")
_REQUIRED: Final = "An answer is needed here; Ctrl-D gives up."


@contextmanager
def answered_here(console: Console, progress: ProgressLine) -> Iterator[None]:
    """Let servers ask the person at the terminal meanwhile.

    Not if nobody sits there, if the project names a handler of its own, or in a process whose connections
    are not the command's alone: these have told their servers already who answers.
    """
    if not console.has_somebody or started_manager() is not None:
        yield
        return
    handlers = get_mcp_manager().input_handlers
    if InputKind.ELICITATION in handlers:
        yield
        return
    handlers[InputKind.ELICITATION] = person = _Person(console, progress)
    try:
        yield
    finally:
        del handlers[InputKind.ELICITATION]
        person.leave()


class _GaveUpError(Exception):
    """The input has ended."""


class _Person:
    """Asks one question after the other; called in threads of the manager."""

    def __init__(self, console: Console, progress: ProgressLine) -> None:
        self._console = console
        self._progress = progress
        self._lock = threading.Lock()

    def leave(self) -> None:
        """End the line of a question that is still open."""
        if self._lock.locked():
            self._console.tell("")

    def __call__(self, request: InputRequest) -> InputAnswer:
        with self._lock:
            self._progress.clear()
            self._console.tell(f"The server {request.server!r} asks: {request.message}")
            try:
                return self._answer(request)
            except _GaveUpError:
                self._console.tell("")
                return request.cancel()

    def _answer(self, request: InputRequest) -> InputAnswer:
        if request.mode == "url":
            self._console.tell(f"It wants you to visit {request.url}")
            is_done = self._decided("Only do so if you trust that address. Are you done there?")
            return request.accept() if is_done else request.decline()
        if not self._decided("Answer it?"):
            return request.decline()
        schema = request.requested_schema or {}
        required = schema.get("required") or ()
        content = {}
        for name, field in (schema.get("properties") or {}).items():
            known = field if isinstance(field, Mapping) else {}
            value = self._field(name, known, is_required=name in required)
            if value is not None:
                content[name] = value
        return request.accept(content)

    def _decided(self, question: str) -> bool:
        while True:
            word = self._read(f"{question} [y/n] ").casefold()
            if word in _YES or word in _NO:
                return word in _YES

    def _field(self, name: str, schema: Mapping[str, Any], *, is_required: bool) -> Any:
        """Return the value of a field; None leaves it to its default, or out."""
        if about := schema.get("description"):
            self._console.tell(f"  {about}")
        checker = SchemaChecker(schema)
        while True:
            text = self._read(_prompt(name, schema, is_required=is_required))
            if not text:
                if not is_required or "default" in schema:
                    return None
                self._console.tell(f"  {_REQUIRED}")
                continue
            try:
                value = _value(text, schema)
            except ValueError as error:
                self._console.tell(f"  {error}")
                continue
            problems = checker.errors(value)
            if not problems:
                return value
            self._console.tell(f"  {'; '.join(problems)}")

    def _read(self, prompt: str) -> str:
        line = self._console.read_line(prompt)
        if line is None:
            raise _GaveUpError
        return line.strip()


def _prompt(name: str, schema: Mapping[str, Any], *, is_required: bool) -> str:
    choices = _choices(schema)
    what = f"of {', '.join(choices)}" if choices else str(schema.get("type", "value"))
    if schema.get("type") == "array":
        what = f"any {what}, with commas between them" if choices else "texts, with commas between them"
    elif choices:
        what = f"one {what}"
    note = f" [{_shown(schema['default'])}]" if "default" in schema else ""
    return f"  {schema.get('title') or name} ({what}{'' if is_required else ', optional'}){note}: "


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _value(text: str, schema: Mapping[str, Any]) -> Any:
    """Read what was typed.

    Raises:
        ValueError: It is nothing of the kind, in words for the person.
    """
    match schema.get("type"):
        case "boolean":
            word = text.casefold()
            if word not in _YES and word not in _NO:
                raise ValueError("Answer yes or no.")
            return word in _YES
        case "integer" | "number" as kind:
            try:
                return int(text) if kind == "integer" else float(text)
            except ValueError:
                wanted = "a whole number" if kind == "integer" else "a number"
                raise ValueError(f"This has to be {wanted}.") from None
        case "array":
            choices = _choices(schema)
            return [choices.get(each, each) for part in text.split(",") if (each := part.strip())]
        case _:
            return _choices(schema).get(text, text)


def _choices(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return what may be chosen, by what is shown of it: the forms of ``EnumSchema`` in the specification."""
    of = schema.get("items") if schema.get("type") == "array" else schema
    if not isinstance(of, Mapping):
        return {}
    titled = of.get("oneOf") or of.get("anyOf")
    if isinstance(titled, list):
        options = [option for option in titled if isinstance(option, Mapping) and "const" in option]
        return {str(option.get("title") or option["const"]): option["const"] for option in options}
    values = of.get("enum") or []
    names = of.get("enumNames") or values
    return dict(zip(map(str, names), values, strict=False))
