"""The one place where foreign exceptions become ours.

Exception groups are unwrapped to their root; JSON-RPC codes are told apart; messages of
servers are redacted and cut. Nothing else may catch the SDK's exceptions for translation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    REQUEST_TIMEOUT,
    URL_ELICITATION_REQUIRED,
)
from pydantic import ValidationError

from mcp_client_app.client.inputs import url_requests
from mcp_client_app.client.redaction import redacted_value
from mcp_client_app.exceptions import (
    ConnectionLostError,
    InputRequiredError,
    InvalidArgumentsError,
    MCPClientError,
    ProtocolError,
    RequestTimeoutError,
    TransportError,
    UnknownPromptError,
    UnknownResourceError,
)

__all__ = ["carrying", "from_foreign", "root_cause", "safe_cause", "untraced"]

RESOURCE_NOT_FOUND = -32002
LONGEST_MESSAGE = 2000

_WITH_ARGUMENTS = ("tools/call", "prompts/get", "completion/complete")


def root_cause(error: BaseException) -> BaseException:
    """Return the first leaf of nested exception groups that says why, not just that all was cancelled."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [root_cause(inner) for inner in error.exceptions]
    return next((leaf for leaf in leaves if not isinstance(leaf, asyncio.CancelledError)), leaves[0])


def from_foreign(
    error: BaseException,
    *,
    server: str,
    method: str,
    redact: Callable[[str], str] = str,
    sent: bool = True,
) -> MCPClientError:
    """Translate whatever a request or the SDK raised; raise the result ``from`` the original.

    ``CancelledError`` and other ``BaseException``s are not for translation: re-raise them.
    """
    error = root_cause(error)
    if (ours := _ours(error)) is not None:
        return ours
    if isinstance(error, MCPError):
        return _from_rpc(error, server, method, redact, sent)
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the result"
        return ProtocolError(
            f"The answer of {server!r} to {method!r} breaks the protocol: {place}: {first['msg']}.",
            server=server,
        )
    if isinstance(error, TimeoutError):
        return RequestTimeoutError(
            f"The server {server!r} did not answer {method!r} in time.", server=server, sent=sent
        )
    if isinstance(error, TypeError | ValueError) and method in _WITH_ARGUMENTS and not sent:
        why = str(error).rstrip(".")
        return InvalidArgumentsError(
            f"The arguments cannot be written as JSON: {_cut(redact(why))}.", server=server
        )
    if isinstance(error, RuntimeError) and "protocol version" in str(error):
        return ProtocolError(f"The server {server!r} speaks no protocol version that we know.", server=server)
    if isinstance(error, OSError):
        return TransportError(
            f"The transport to {server!r} failed: {error.strerror or type(error).__name__}.",
            server=server,
            sent=sent,
        )
    return TransportError(
        f"The link to {server!r} failed: {_cut(redact(f'{type(error).__name__}: {error}'))}",
        server=server,
        sent=sent,
    )


def safe_cause(error: BaseException) -> BaseException | None:
    """Return what a translated exception may be raised ``from``: it is printed in tracebacks and logs.

    An exception of the SDK's or of pydantic's quotes what the server sent, secrets that it echoes
    included; the translation has said all that is fit to be said.
    """
    return error if isinstance(root_cause(error), MCPClientError | OSError | TimeoutError) else None


def untraced(error: MCPClientError) -> MCPClientError:
    """Take the tracebacks out of an exception that is kept, and out of what lies behind it; returns it.

    Their frames would keep the link alive that has failed, and all that it holds.
    """
    seen: set[int] = set()
    behind: list[BaseException | None] = [error]
    while behind:
        each = behind.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.__traceback__ = None
        behind += (each.__cause__, each.__context__)
        behind += [part for part in each.args if isinstance(part, BaseException)]  # see ``carrying``
        if isinstance(each, BaseExceptionGroup):
            behind += each.exceptions
    return error


def carrying(error: MCPClientError) -> MCPError:
    """Return an exception of the SDK's that carries ours through code of the SDK, which expects no other.

    No server can send such a one: ``data`` holds the exception itself.
    """
    return MCPError(INTERNAL_ERROR, str(error), error)


def _ours(error: object) -> MCPClientError | None:
    """Return the exception of ours that ``error`` is, carries or was caused by."""
    while isinstance(error, BaseException):
        if isinstance(error, MCPClientError):
            return error
        error = error.error.data if isinstance(error, MCPError) else error.__cause__
    return None


def _from_rpc(
    error: MCPError, server: str, method: str, redact: Callable[[str], str], sent: bool
) -> MCPClientError:
    code, text = error.error.code, _cut(redact(error.error.message))
    if code == CONNECTION_CLOSED and text.startswith("Connection closed"):
        return ConnectionLostError(f"The connection to {server!r} was lost.", server=server, sent=sent)
    if code == REQUEST_TIMEOUT and "timed out" in text:
        return RequestTimeoutError(
            f"The server {server!r} did not answer {method!r} in time.", server=server, sent=sent
        )
    if method == "resources/read" and _means_no_resource(code, text, error.error.data):
        return UnknownResourceError(text, server=server)
    if method == "prompts/get" and code == INVALID_PARAMS and _says_unknown(text):
        return UnknownPromptError(text, server=server)
    if method in _WITH_ARGUMENTS and code == INVALID_PARAMS:
        return InvalidArgumentsError(text, server=server)
    if code == URL_ELICITATION_REQUIRED and (asked := url_requests(error.error.data, server=server)):
        return InputRequiredError(
            f"The server {server!r} asks the user to visit a URL; call again after that.",
            server=server,
            requests=asked,
        )
    return ProtocolError(text, server=server, rpc_code=code, data=redacted_value(error.error.data, redact))


def _means_no_resource(code: int, text: str, data: object) -> bool:
    if code == RESOURCE_NOT_FOUND:
        return True
    # 2026-07-28 gives the general code, and the URI that was not found beside it.
    return code == INVALID_PARAMS and (_says_unknown(text) or (isinstance(data, dict) and "uri" in data))


def _says_unknown(text: str) -> bool:
    return any(word in text.lower() for word in ("unknown", "not found", "no such"))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + " …"
