"""Answers of people to the stored questions of servers: complete, and held to what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_client_app.datatypes import InputKind, InputRequest
from mcp_client_app.elicitation import elicitation_answer, misfit
from mcp_client_app.exceptions import InvalidInputError

__all__ = ["checked_answers", "questions"]

_KINDS: Final = {kind.method: kind for kind in InputKind}
_SHAPES: Final = {
    InputKind.SAMPLING: "the model's message: 'role', 'content' and 'model'",
    InputKind.ROOTS: "the folders: {'roots': [{'uri': 'file:///...'}]}",
}


def questions(
    requests: Mapping[str, Any], *, server: str, tool: str | None = None
) -> tuple[InputRequest, ...]:
    """Return what was asked, as it was before it was stored."""
    return tuple(
        InputRequest(
            server=server,
            kind=_KINDS.get(str(asked.get("method")), InputKind.ELICITATION),
            tool=tool,
            key=key,
            params=asked.get("params") or {},
        )
        for key, asked in requests.items()
    )


def checked_answers(asked: tuple[InputRequest, ...], responses: Any) -> dict[str, dict[str, Any]]:
    """Return the answers in the wire's form, one for each question.

    An answer to an elicitation is ``{"action": "accept", "content": {...}}``, or says ``decline``
    or ``cancel``; what the content leaves out gets its default. The other kinds take the wire's form.

    Raises:
        InvalidInputError: One is missing, answers nothing, or does not fit; tells no value of it.
    """
    keys = [request.key for request in asked]
    if not isinstance(responses, Mapping):
        raise InvalidInputError("Give an object of answers, by the keys of the questions.")
    for key in responses:
        if key not in keys:
            raise InvalidInputError(
                f"There is no question {str(key)[:100]!r}; answer {', '.join(keys)}.", key=str(key)[:100]
            )
    for key in keys:
        if key not in responses:
            raise InvalidInputError(f"The question {key!r} has no answer.", key=key)
    return {request.key: _checked(request, responses[request.key]) for request in asked}


def _checked(request: InputRequest, response: Any) -> dict[str, Any]:
    if not isinstance(response, Mapping):
        raise misfit(request, ["it must be an object"])
    if request.kind is not InputKind.ELICITATION:
        return _other(request, response)
    content = response.get("content")
    if not isinstance(content, Mapping | None):
        raise misfit(request, ["its content must be an object"])
    action = str(response.get("action"))
    accepted = request.accept(content).content if action == "accept" else None
    return elicitation_answer(request, action, accepted)


def _other(request: InputRequest, response: Mapping[str, Any]) -> dict[str, Any]:
    if request.kind is InputKind.ROOTS:
        roots = response.get("roots")
        is_sound = isinstance(roots, list) and all(
            isinstance(root, Mapping) and isinstance(root.get("uri"), str) for root in roots
        )
    else:
        is_sound = all(isinstance(response.get(name), str) for name in ("role", "model"))
        is_sound = is_sound and isinstance(response.get("content"), Mapping | list)
    if not is_sound:
        raise misfit(request, [f"give {_SHAPES[request.kind]}"])
    return dict(response)
