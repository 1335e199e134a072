"""Arguments as models send them: read, held to the tool's schema, refused with words that help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_client_app import json_codec
from mcp_client_app.exceptions import InvalidArgumentsError
from mcp_client_app.json_schema import SchemaChecker
from mcp_client_app.toolsets.text import shorten

__all__ = ["ArgumentChecker", "invalid_arguments", "parse_arguments"]

LONGEST_PROBLEM = 300
LONGEST_GIVEN = 1000
LONGEST_SCHEMA = 3000


def parse_arguments(
    given: object, *, tool: str, server: str | None = None, schema: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return arguments that a model gave as an object, or as the JSON text of one.

    Nothing at all (None, empty text) means no arguments; what is no JSON never does.

    Raises:
        InvalidArgumentsError: No JSON, or no object.
    """
    value = given
    if given is None or (isinstance(given, str | bytes) and not given.strip()):
        return {}
    if isinstance(given, str | bytes):
        try:
            value = json_codec.loads(given if isinstance(given, bytes) else given.encode("utf-8", "replace"))
        except ValueError:
            raise invalid_arguments(
                ["the arguments are no valid JSON"], tool=tool, server=server, given=given, schema=schema
            ) from None
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise invalid_arguments(
            ["the arguments must be one JSON object"], tool=tool, server=server, given=given, schema=schema
        )
    return dict(value)


class ArgumentChecker:
    """Holds arguments to a tool's schema, offline; a schema that cannot be used checks nothing."""

    def __init__(self, schema: Mapping[str, Any], shown: Mapping[str, Any] | None = None) -> None:
        """Compile. ``shown`` is the schema without the fixed arguments, if there are any."""
        self._whole = SchemaChecker(schema)
        self._shown = SchemaChecker(shown) if shown is not None else None
        self._discreet = SchemaChecker(schema, discreet=True) if shown is not None else None

    @property
    def problem(self) -> str | None:
        """Why the schema checks nothing, or None."""
        return None if self._whole.problem is None else shorten(self._whole.problem, LONGEST_PROBLEM)

    def errors(self, merged: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
        """Return what is wrong with what would be sent, as ``place: message``.

        ``merged`` decides. What is said comes from ``given``, the model's own part, where
        possible, and quotes no value otherwise: fixed arguments are not the model's to know.
        """
        found = self._whole.errors(merged)
        if found and self._shown is not None and self._discreet is not None:
            own = self._shown.errors(given)
            found = own or [
                f"together with what is fixed for this tool: {problem}"
                for problem in self._discreet.errors(merged) or ["the arguments do not fit"]
            ]
        return [shorten(problem, LONGEST_PROBLEM) for problem in found]


def invalid_arguments(
    problems: Sequence[str],
    *,
    tool: str,
    given: object,
    schema: Mapping[str, Any] | None,
    server: str | None = None,
) -> InvalidArgumentsError:
    """Build the error, whose message has a bounded length and all that a model needs to do better.

    ``schema`` is the one that the model has seen, ``given`` what it sent.
    """
    lines = [f"The arguments of {shorten(tool, 100)} do not fit.", "Problems:"]
    lines += [f"- {shorten(problem, LONGEST_PROBLEM)}" for problem in problems]
    lines.append(f"Given: {shorten(_json(given), LONGEST_GIVEN)}")
    if schema is not None:
        lines.append(f"Schema: {shorten(_json(schema), LONGEST_SCHEMA)}")
    lines.append("Nothing was called. Correct the arguments and call again.")
    return InvalidArgumentsError(
        "\n".join(lines),
        server=server,
        tool=tool,
        schema=schema,
        arguments=given if isinstance(given, Mapping) else None,
    )


def _json(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    try:
        return json_codec.dumps(value).decode("utf-8", "replace")
    except TypeError:  # no JSON form
        return repr(value)
