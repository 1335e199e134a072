"""JSON Schema checks: the one wrapper around jsonschema-rs, which must never go to the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

__all__ = ["SchemaChecker", "schema_problem"]

MOST = 5
"""Errors reported at most; the first ones tell enough."""


LONGEST_PROBLEM = 300

DRAFTS = {
    "json-schema.org/draft-04/schema": "http://json-schema.org/draft-04/schema#",
    "json-schema.org/draft-06/schema": "http://json-schema.org/draft-06/schema#",
    "json-schema.org/draft-07/schema": "http://json-schema.org/draft-07/schema#",
    "json-schema.org/draft/2019-09/schema": "https://json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema": "https://json-schema.org/draft/2020-12/schema",
}
"""The meta-schemas that the library has built in, by what all spellings of their names have in common."""


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a schema by its own rules, as ``place: message``, or None; quick.

    References and regular expressions are not looked at: a ``SchemaChecker`` finds these out.
    """
    named = schema.get("$schema", "https://json-schema.org/draft/2020-12/schema")
    draft = DRAFTS.get(str(named).partition("://")[2].rstrip("#"))
    if draft is None:  # the library would fetch it from wherever it points
        return f"its $schema {str(named)[:100]!r} is not known"
    try:
        jsonschema_rs.meta.validate({**schema, "$schema": draft})
    except jsonschema_rs.ValidationError as error:
        place = "/".join(str(part) for part in error.instance_path)
        return f"{place}: {error.message}"[:LONGEST_PROBLEM] if place else error.message[:LONGEST_PROBLEM]
    except ValueError as error:
        return str(error).partition("\n")[0]
    return None


class SchemaChecker:
    """A compiled schema. One that cannot be compiled checks nothing and says why."""

    def __init__(self, schema: Mapping[str, Any], *, discreet: bool = False) -> None:
        """Compile; a ``discreet`` checker also checks formats, and keeps values out of its messages."""
        self.problem: str | None = None
        """Why the schema itself is unusable."""
        self._validator: Any = None
        try:
            # Without offline=True the library would fetch "$ref" and "$schema" from wherever they point.
            self._validator = jsonschema_rs.validator_for(
                dict(schema),
                offline=True,
                validate_formats=True if discreet else None,
                mask="the value" if discreet else None,
            )
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
            self.problem = str(error).partition("\n")[0]

    def errors(self, value: Any) -> list[str]:
        """Return what is wrong with ``value``, as ``place: message``; empty if nothing is."""
        if self._validator is None:
            return []
        try:
            if self._validator.is_valid(value):
                return []
            found = []
            for error in self._validator.iter_errors(value):
                place = "/".join(str(part) for part in error.instance_path)
                found.append(f"{place}: {error.message}" if place else str(error.message))
                if len(found) == MOST:
                    break
        except ValueError as error:  # a value that JSON cannot hold
            return [str(error).partition("\n")[0]]
        return found
