"""Requests of servers for input, and their answers: from and to the form that the wire has. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from pydantic import TypeAdapter, ValidationError

from mcp_client_app.datatypes import SHARED, InputAnswer, InputHandler, InputKind, InputRequest
from mcp_client_app.elicitation import ACTIONS, elicitation_answer, misfit
from mcp_client_app.exceptions import ConfigurationError, InvalidInputError, ProtocolError

__all__ = ["by_kind", "is_input_required", "read_requests", "url_requests", "wire_answer", "wire_responses"]

_KINDS = {kind.method: kind for kind in InputKind}
_FORMS: dict[InputKind, TypeAdapter[Any]] = {
    InputKind.SAMPLING: TypeAdapter(types.CreateMessageResultWithTools | types.CreateMessageResult),
    InputKind.ROOTS: TypeAdapter(types.ListRootsResult),
}


def by_kind(handlers: Mapping[str, InputHandler]) -> dict[InputKind, InputHandler]:
    """Return handlers by kind.

    Raises:
        ConfigurationError: A key is no kind, or a value cannot be called.
    """
    found = {}
    for name, handler in handlers.items():
        try:
            kind = InputKind(name)
        except ValueError:
            kinds = ", ".join(map(repr, map(str, InputKind)))
            raise ConfigurationError(
                f"Servers do not ask for {name!r}; handlers answer {kinds}.", field="on_input"
            ) from None
        if not callable(handler):
            raise ConfigurationError(f"The handler of {name!r} cannot be called.", field="on_input")
        found[kind] = handler
    return found


def is_input_required(result: Mapping[str, Any]) -> bool:
    """Say whether a result is none yet: the server asks for something first."""
    return result.get("resultType") == "input_required"


def read_requests(
    result: Mapping[str, Any], *, server: str, principal: str = SHARED, tool: str | None = None
) -> tuple[InputRequest, ...]:
    """Return what a result asks for; nothing means: ask again later.

    Raises:
        ProtocolError: It cannot be read, or cannot be gone on from.
    """
    asked, state = result.get("inputRequests"), result.get("requestState")
    is_sound = isinstance(asked, Mapping | None) and isinstance(state, str | None)
    if not is_sound or (not asked and state is None):
        raise ProtocolError(
            f"The server {server!r} asks for input without saying what for, or how to go on.", server=server
        )
    requests = []
    for key, item in (asked or {}).items():
        kind = _KINDS.get(str(item.get("method"))) if isinstance(item, Mapping) else None
        params = item.get("params") if isinstance(item, Mapping) else None
        if kind is None or not isinstance(params, Mapping | None):
            raise ProtocolError(
                f"The server {server!r} asks for something unknown as {key!r}.", server=server
            )
        requests.append(
            InputRequest(
                server=server, kind=kind, principal=principal, tool=tool, key=str(key), params=params or {}
            )
        )
    return tuple(requests)


def url_requests(data: Any, *, server: str) -> tuple[InputRequest, ...]:
    """Return which URLs a server of 2025-11-25 wants to be visited before it takes a call that it refused."""
    items = data.get("elicitations") if isinstance(data, Mapping) else None
    return tuple(
        InputRequest(
            server=server,
            kind=InputKind.ELICITATION,
            key=str(item.get("elicitationId") or number),
            params={"mode": "url", **item},
        )
        for number, item in enumerate(items if isinstance(items, list) else ())
        if isinstance(item, Mapping) and isinstance(item.get("url"), str)
    )


def wire_answer(answer: InputAnswer) -> dict[str, Any] | None:
    """Return an answer in the wire's form; None if the protocol has no form for it: it is refused.

    Raises:
        InvalidInputError: The content does not fit what was asked for; tells no value of it.
    """
    request = answer.request
    if request is None or request.kind is InputKind.ELICITATION:
        return elicitation_answer(request, answer.action, answer.content)
    if answer.action not in ACTIONS:
        raise misfit(request, [f"the action must be one of {', '.join(ACTIONS)}"])
    if answer.action != "accept":
        return None
    try:
        form = _FORMS[request.kind].validate_python(dict(answer.content or {}), by_name=False)
    except ValidationError as error:
        raise misfit(request, _places(error)) from None
    wire: dict[str, Any] = form.model_dump(by_alias=True, mode="json", exclude_none=True)
    return wire


def wire_responses(responses: Mapping[str, InputAnswer | Mapping[str, Any]]) -> dict[str, Any]:
    """Return the answers for going on with a call, in the wire's form.

    Raises:
        InvalidInputError: One of them is no answer, or is one that the protocol cannot express.
    """
    wire = {}
    for key, response in responses.items():
        if isinstance(response, InputAnswer):
            form = wire_answer(response)
            if form is None:
                raise InvalidInputError(
                    f"The answer {key!r} says no, which the protocol knows for elicitation only.", key=key
                )
            wire[key] = form
        else:
            wire[key] = _given(key, response)
    return wire


def _given(key: str, response: Any) -> dict[str, Any]:
    """Return an answer that came in the wire's form: what it answers is known to the server only."""
    if not isinstance(response, Mapping) or not {"action", "role", "roots"} & set(response):
        raise InvalidInputError(
            f"The answer {key!r} is none: give an 'action' for elicitation, a message for sampling, "
            "or 'roots'.",
            key=key,
        )
    if "action" in response and response["action"] not in ACTIONS:
        raise InvalidInputError(
            f"The action of the answer {key!r} must be one of {', '.join(ACTIONS)}.", key=key
        )
    if not isinstance(response.get("content", {}), Mapping | list | None):
        raise InvalidInputError(f"The content of the answer {key!r} must be an object.", key=key)
    return {name: value for name, value in response.items() if value is not None}


def _places(error: ValidationError) -> list[str]:
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in found[:3]]
