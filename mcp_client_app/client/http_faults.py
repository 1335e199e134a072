"""Reads an HTTP answer that is no MCP answer, and names the exception for it. Pure.

What must never look like an answer of the protocol (401, 403, 429, 5xx) is an exception of ours
whatever the body says; other refusals may carry a JSON-RPC error, which then is the answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND

from mcp_client_app import json_codec
from mcp_client_app.exceptions import (
    AuthRequiredError,
    MCPClientError,
    ServerUnavailableError,
    ThrottledError,
    TransportError,
)

__all__ = ["BODY_LIMIT", "FaultReader", "Refusal", "parse_retry_after"]

EXCERPT = 200
"""Characters of a body that an error message quotes."""
BODY_LIMIT = 65_536
"""Bytes of a refusal's body that are looked at."""

_MAY_HAVE_RUN = frozenset({408, 409, 499})
"""Refusals that do not prove that the request was not carried out."""
_PASSING = frozenset({408, 409, 425, 429})
_NO_SUCH_SESSION = re.compile(
    r"(?i)\b(?:session(?: id)?\b.{0,30}\b(?:not found|unknown|expired|invalid|terminated|does not exist)"
    r"|(?:unknown|expired|invalid|missing|no valid|no such) (?:mcp-)?session|server not initiali[sz]ed)\b"
)
_NO_SUCH_VERSION = re.compile(r"(?i)\bunsupported protocol version\b")


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer whose status or type is not what was asked for."""

    status: int
    content_type: str = ""
    body: bytes = b""
    """The body, or its beginning."""
    challenge: str | None = None
    """``WWW-Authenticate``."""
    retry_after: str | None = None

    @property
    def is_ours(self) -> bool:
        """Whether an exception of ours is due, even if the body holds a JSON-RPC error."""
        return self.status in (401, 403, 429) or self.status >= 500

    @property
    def may_have_run(self) -> bool:
        """Whether the request may have been carried out all the same."""
        return self.status < 300 or self.status >= 500 or self.status in _MAY_HAVE_RUN

    @property
    def is_final(self) -> bool:
        """Whether asking once more is of no use."""
        return self.status < 500 and self.status not in _PASSING

    @property
    def rpc_error(self) -> dict[str, Any] | None:
        """The JSON-RPC error message in the body, if it is one."""
        try:
            message = json_codec.loads(self.body)
        except ValueError:
            return None
        if isinstance(message, dict) and isinstance(message.get("error"), dict):
            return message
        return None

    def asks_for_handshake(self, request_id: object = None) -> bool:
        """Say whether the server does not know us: another one than we have been connected to."""
        if self.status != 400:
            return False
        return self.ends_session(request_id) or _NO_SUCH_VERSION.search(self._text[:1000]) is not None

    def ends_session(self, request_id: object = None) -> bool:
        """Say whether this means, to a request that named a session, that the session is gone."""
        if self.status == 400:
            is_about_params = self._answers(request_id, INVALID_PARAMS)
            return not is_about_params and _NO_SUCH_SESSION.search(self._text[:1000]) is not None
        return self.status in (404, 410) and not self._answers(request_id, METHOD_NOT_FOUND)

    def _answers(self, request_id: object, code: int) -> bool:
        """Say whether the body is this very error of this very request."""
        message = self.rpc_error
        if message is None or request_id is None:
            return False
        return bool(message.get("id") == request_id and message["error"].get("code") == code)

    @property
    def _text(self) -> str:
        message = self.rpc_error
        if message is not None:
            return str(message["error"].get("message", ""))
        return self.body.decode("utf-8", "replace")


class FaultReader:
    """Names the exceptions for one server's refusals, free of its secrets."""

    def __init__(self, server: str, redact: Callable[[str], str]) -> None:
        self._server = server
        self._redact = redact

    def fault(self, refusal: Refusal) -> MCPClientError:
        """Return the exception for a status that is no success."""
        status, name = refusal.status, f"The server {self._server!r}"
        said = self._quote(refusal)
        retry_after = parse_retry_after(refusal.retry_after)
        if status in (401, 403):
            verb = "asks for credentials" if status == 401 else "refuses the credentials"
            return AuthRequiredError(
                f"{name} {verb} (HTTP {status}){said}",
                server=self._server,
                status=status,
                challenge=refusal.challenge,
            )
        if status == 429:
            return ThrottledError(
                f"{name} asks to slow down (HTTP 429){said}", server=self._server, retry_after=retry_after
            )
        if status >= 500:
            return ServerUnavailableError(
                f"{name} failed with HTTP {status}{said}", server=self._server, retry_after=retry_after
            )
        return TransportError(
            f"{name} refused the request with HTTP {status}{said}",
            server=self._server,
            retry_after=retry_after,
            status=status,
            sent=refusal.may_have_run,
        )

    def no_answer(self, refusal: Refusal, why: str = "") -> TransportError:
        """Return the exception for a success whose body is no MCP answer."""
        kind = refusal.content_type or "no content type"
        if not why:
            why = f"is no MCP answer (HTTP {refusal.status}, {kind})"
        return TransportError(
            f"The answer of the server {self._server!r} {why}{self._quote(refusal)}",
            server=self._server,
            status=refusal.status,
        )

    def _quote(self, refusal: Refusal) -> str:
        message = refusal.rpc_error
        text = message["error"].get("message") if message else refusal.body.decode("utf-8", "replace")
        # Redacted before it is cut: a secret must not escape by being cut in two.
        words = self._redact(" ".join("".join(filter(_is_shown, str(text or ""))).split()))
        if not words:
            return "." if message or refusal.body else ", with an empty body."
        return f": {words[:EXCERPT]}{'…' if len(words) > EXCERPT else ''}"


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds that a ``Retry-After`` header means: a number, or a date."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except (TypeError, ValueError):
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _is_shown(character: str) -> bool:
    return character.isprintable() or character.isspace()
