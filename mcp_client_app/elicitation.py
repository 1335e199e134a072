"""Answers of people to what servers ask them, held to what was asked. Pure, and without the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_client_app.datatypes import InputRequest
from mcp_client_app.exceptions import InvalidInputError
from mcp_client_app.json_schema import SchemaChecker

__all__ = ["ACTIONS", "elicitation_answer", "misfit"]

ACTIONS: Final = ("accept", "decline", "cancel")


def elicitation_answer(
    request: InputRequest | None, action: str, content: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return an answer in the wire's form; ``request`` is what it answers, if that is known.

    Raises:
        InvalidInputError: It does not fit what was asked for; tells no value of it.
    """
    if action not in ACTIONS:
        raise misfit(request, [f"the action must be one of {', '.join(ACTIONS)}"])
    if action != "accept" or content is None:
        return {"action": action}
    schema = request.requested_schema if request is not None else None
    if schema is not None and (errors := SchemaChecker(schema, discreet=True).errors(dict(content))):
        raise misfit(request, errors)
    return {"action": "accept", "content": dict(content)}


def misfit(request: InputRequest | None, errors: list[str]) -> InvalidInputError:
    """Return the error for an answer that does not fit."""
    kind = request.kind.value if request is not None else "input"
    return InvalidInputError(
        f"The answer to a request for {kind} does not fit: {'; '.join(errors)}.",
        server=request.server if request is not None else None,
        key=(request.key or None) if request is not None else None,
        errors=errors,
    )
