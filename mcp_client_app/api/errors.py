"""How failures are answered: one form, and one table from codes to HTTP statuses.

The form is ``{"code", "detail", "server", ...}``: the code for machines, one sentence for
people, the server or null, and what the error knows besides. A server's own 401 or 403 is
never passed on as ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation, ValidationError
from django.http import Http404
from rest_framework import exceptions as drf

from mcp_client_app.exceptions import MCPClientError

__all__ = ["STATUSES", "Answer", "MissingPermission", "RequestTooLarge", "answer_to", "described"]

STATUSES: Final[Mapping[str, int]] = {
    "bad_tool_name": 400,
    "invalid_arguments": 400,
    "invalid_history": 400,
    "invalid_input": 400,
    "permission_denied": 403,
    "tool_blocked": 403,
    "unknown_server": 404,
    "unknown_tool": 404,
    "unknown_resource": 404,
    "unknown_prompt": 404,
    "unknown_agent": 404,
    "unknown_run": 404,
    "configuration": 409,
    "ambiguous_tool": 409,
    "duplicate_server": 409,
    "duplicate_agent": 409,
    "call_in_progress": 409,
    "input_required": 409,
    "approval_required": 409,
    "approval_invalid": 409,
    "run_state": 409,
    "stale_revision": 412,
    "key_reused": 422,
    "busy": 429,
    "throttled": 429,
    "protocol_error": 502,
    "transport_error": 502,
    "auth_required": 502,
    "model_error": 502,
    "result_too_large": 502,
    "backend_unavailable": 503,
    "server_unavailable": 503,
    "not_connected": 503,
    "server_crashed": 503,
    "connection_lost": 503,
    "manager_closed": 503,
    "timeout": 504,
}
"""Code to HTTP status. An error that is not listed is a mistake of the program: 500."""


@dataclass(frozen=True)
class Answer:
    """A failure as it is sent."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    is_expected: bool = True
    """False for a mistake of the program, which should be reported."""


class RequestTooLarge(drf.APIException):
    """The body is longer than ``DATA_UPLOAD_MAX_MEMORY_SIZE``."""

    status_code = 413
    default_detail = "The request is too large."
    default_code = "request_too_large"


class MissingPermission(drf.PermissionDenied):
    """The user lacks the permission of an endpoint."""

    def __init__(self, permission: str) -> None:
        super().__init__(f"This needs the permission {permission!r}.")
        self.permission = permission


def answer_to(error: Exception) -> Answer:
    """Return what is answered; anything unknown becomes a 500 that tells nothing."""
    match error:
        case MCPClientError():
            return _our_own(error)
        case drf.ValidationError():
            return _invalid(dict(_flattened(error.detail)))
        case ValidationError():
            return _invalid(_messages(error))
        case drf.APIException():
            return _rest_framework(error)
        case Http404():
            return Answer(404, _body("not_found", "There is nothing here."))
        case PermissionDenied():
            return Answer(403, _body("permission_denied", str(error) or "You may not do this."))
        case RequestDataTooBig():
            return _rest_framework(RequestTooLarge())
        case SuspiciousOperation():
            return Answer(400, _body("bad_request", "The request cannot be read."))
    return Answer(500, _body("error", "The request failed for an internal reason."), is_expected=False)


def described(error: MCPClientError) -> dict[str, Any]:
    """Return an error as an entry of ``errors`` in a partial answer, where its server is the key."""
    return {"code": error.code, "detail": str(error), **error.details()}


def _body(code: str, detail: str, server: str | None = None, **details: Any) -> dict[str, Any]:
    return {"code": code, "detail": detail, "server": server, **details}


def _our_own(error: MCPClientError) -> Answer:
    status = STATUSES.get(error.code, 500)
    body = _body(error.code, str(error), error.server, **error.details())
    if status == 500:
        body = _body(error.code, "The request failed for an internal reason.", error.server)
    return Answer(status, body, _retry_after(getattr(error, "retry_after", None)), status != 500)


def _rest_framework(error: drf.APIException) -> Answer:
    codes = error.get_codes()
    code = codes if isinstance(codes, str) else error.default_code
    details = {"permission": error.permission} if isinstance(error, MissingPermission) else {}
    headers = _retry_after(getattr(error, "wait", None))
    return Answer(error.status_code, _body(code, str(error.detail), **details), headers)


def _retry_after(seconds: float | None) -> dict[str, str]:
    return {} if seconds is None else {"Retry-After": str(max(1, math.ceil(seconds)))}


def _invalid(messages: dict[str, list[str]]) -> Answer:
    """Name the fields in the sentence and tell about each in ``fields``."""
    told = " ".join(
        f"{name}: {' '.join(found)}" if name else " ".join(found) for name, found in messages.items()
    )
    return Answer(400, _body("invalid", told or "The request is not valid.", fields=messages))


def _messages(error: ValidationError) -> dict[str, list[str]]:
    if not hasattr(error, "error_dict"):
        return {"": list(error.messages)}
    return {"" if name == "__all__" else name: found for name, found in error.message_dict.items()}


def _flattened(detail: Any, place: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield the messages of a nested answer by path, such as ``args.0``."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            key = "" if name == "non_field_errors" else str(name)
            yield from _flattened(inner, ".".join(filter(None, (place, key))))
    elif isinstance(detail, list) and not all(isinstance(item, str) for item in detail):
        for index, inner in enumerate(detail):
            if inner:
                yield from _flattened(inner, f"{place}.{index}".lstrip("."))
    else:
        yield place, [str(item) for item in (detail if isinstance(detail, list) else [detail])]
