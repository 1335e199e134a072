"""Mends what servers get wrong, on the raw dict, before the SDK's typed layer sees it.

The typed layer refuses a whole listing for one bad entry and a whole result for one
unknown block. Here bad entries are quarantined, unknown blocks replaced, broken optional
fields dropped; each repair is reported in words. The received dict itself is never
changed. Knows the shapes of results and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp_client_app.client.leniency import handshake, listings, results
from mcp_client_app.client.leniency.fields import mend_envelope
from mcp_client_app.client.leniency.results import placeholder
from mcp_client_app.client.leniency.terms import DEFAULT_STRICTNESS, Terms
from mcp_client_app.datatypes import StrictOptions
from mcp_client_app.exceptions import ProtocolError

__all__ = ["Repairer", "placeholder"]

Repair = Callable[[Terms, dict[str, Any], list[str]], dict[str, Any]]
"""Mends a shallow copy of a result, adding to the notes what was mended."""

_REPAIRS: dict[str, Repair] = {
    "initialize": handshake.initialize,
    "server/discover": handshake.discover,
    "tools/list": listings.tools,
    "resources/list": listings.resources,
    "resources/templates/list": listings.templates,
    "prompts/list": listings.prompts,
    "tools/call": results.call,
    "resources/read": results.read,
    "prompts/get": results.get_prompt,
    "completion/complete": results.complete,
}


class Repairer:
    """Repairs results for one connection."""

    def __init__(self, server: str, strict: StrictOptions = DEFAULT_STRICTNESS) -> None:
        self._terms = Terms(server, strict)

    @property
    def modern(self) -> bool:
        """Whether 2026-07-28 is spoken; set once that is known."""
        return self._terms.modern

    @modern.setter
    def modern(self, value: bool) -> None:
        self._terms.modern = value

    def repair(self, method: str, result: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Return the result fit for the typed layer, and what was mended.

        Raises:
            ProtocolError: With ``strict.contract_errors``, something had to be mended.
        """
        repair = _REPAIRS.get(method)
        if repair is None:
            return result, []
        notes: list[str] = []
        mended = dict(result)
        mend_envelope(self._terms, method, mended, notes)
        mended = repair(self._terms, mended, notes)
        if notes and self._terms.strict.contract_errors:
            server, first = self._terms.server, "; ".join(notes[:5])
            raise ProtocolError(
                f"The server {server!r} broke the contract of {method!r}: {first}.", server=server
            )
        return mended, notes
