"""JSON Schema checks: the one wrapper around jsonschema-rs, which must never go to the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

__all__ = ["SchemaChecker"]

MOST = 5
"""Errors reported at most; the first ones tell enough."""


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
