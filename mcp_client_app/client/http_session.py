"""What one HTTP connection remembers between requests: the legacy session and the version spoken."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp_client_app.client.http_faults import Refusal
from mcp_client_app.datatypes import StrictOptions
from mcp_client_app.exceptions import ProtocolError

__all__ = ["EVENT_STREAM", "PROTOCOL_VERSION", "SESSION_ID", "HttpSession"]

EVENT_STREAM = "text/event-stream"
PROTOCOL_VERSION = "mcp-protocol-version"
SESSION_ID = "mcp-session-id"

_OPENING = ("initialize", "server/discover")
_VISIBLE = re.compile(r"[\x21-\x7e]+\Z")


class HttpSession:
    """Makes the headers of each request. The session id is a secret: kept here, never shown or stored."""

    def __init__(self, server: str, strict: StrictOptions | None = None) -> None:
        self._server = server
        self._strict = strict or StrictOptions()
        self.session_id: str | None = None
        self.version: str | None = None
        """As the SDK's session last stamped it on a request."""

    @property
    def is_modern(self) -> bool:
        """Whether 2026-07-28 is spoken: no session, no GET stream; closing a POST cancels it."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    def begin(self) -> None:
        """Forget everything: ``initialize`` must carry neither a session nor a probe's version."""
        self.session_id = self.version = None

    def learn(self, session_id: str | None) -> None:
        """Keep the id that the server gave with its answer to ``initialize``."""
        if session_id is not None and _VISIBLE.match(session_id):
            self.session_id = session_id

    def post_headers(self, stamped: Mapping[str, str] | None) -> dict[str, str]:
        """Return the headers of a POST; ``stamped`` are those that the SDK's session asks for."""
        if stamped and PROTOCOL_VERSION in stamped:
            self.version = stamped[PROTOCOL_VERSION]
        return {
            "accept": f"application/json, {EVENT_STREAM}",
            "content-type": "application/json",
            **self.headers(),
            **(stamped or {}),
        }

    def get_headers(self, last_event_id: str | None) -> dict[str, str]:
        """Return the headers of the GET that opens, or takes up again, an event stream."""
        headers = {"accept": EVENT_STREAM, "cache-control": "no-store", **self.headers()}
        if last_event_id is not None:
            headers["last-event-id"] = last_event_id
        return headers

    def headers(self) -> dict[str, str]:
        """Return what every request of the session carries."""
        headers = {}
        if self.session_id is not None:
            headers[SESSION_ID] = self.session_id
        if self.version is not None:
            headers[PROTOCOL_VERSION] = self.version
        return headers

    def ended_by(self, refusal: Refusal, method: str = "", request_id: object = None) -> bool:
        """Say whether the answer to a request of the session means that the server knows us no more.

        Without a session id it is then another server, or one of another version, that came in its place.
        """
        if method in _OPENING:
            return False
        if self.session_id is not None:
            return refusal.ends_session(request_id)
        return refusal.asks_for_handshake(request_id)

    def redact(self, text: str) -> str:
        """Take the session id out of a text."""
        return text.replace(self.session_id, "***") if self.session_id else text

    def check_version(self, named: str | None) -> None:
        """Compare the version that an answer's header names with the one spoken.

        Raises:
            ProtocolError: They differ, and ``strict.protocol_header`` is set.
        """
        if self._strict.protocol_header and named and self.version and named != self.version:
            raise ProtocolError(
                f"The server {self._server!r} answered in protocol version {named[:20]!r} "
                f"instead of {self.version!r}.",
                server=self._server,
            )

    def check_handshake(self, named: str | None, result: Mapping[str, Any]) -> None:
        """Look at the result of ``initialize``; ``named`` is the version in the answer's header.

        Raises:
            ProtocolError: It breaks a rule that ``strict`` asks to be kept.
        """
        if self._strict.session_header and self.session_id is None:
            raise ProtocolError(f"The server {self._server!r} gave no session id.", server=self._server)
        agreed = result.get("protocolVersion")
        if self._strict.version_consistency and named is not None and named != agreed:
            raise ProtocolError(
                f"The server {self._server!r} names different protocol versions in header and body.",
                server=self._server,
            )
