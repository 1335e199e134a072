"""What servers ask of us in the course of a call, and how it is answered.

A server may ask the user something (elicitation), a model (sampling), or for the folders that
it may look at (roots). Nothing is answered unless the project names a handler.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from mcp_client_app.datatypes.states import SHARED

__all__ = ["InputAnswer", "InputHandler", "InputKind", "InputRequest", "defer_input"]


class InputKind(StrEnum):
    """What a server asks for."""

    ELICITATION = "elicitation"
    """The user: to fill in a form, or to visit a URL."""
    SAMPLING = "sampling"
    """A model's answer."""
    ROOTS = "roots"
    """The folders that it may look at."""

    @property
    def method(self) -> str:
        """The name of the request in the protocol."""
        return _METHODS[self]


_METHODS = {
    InputKind.ELICITATION: "elicitation/create",
    InputKind.SAMPLING: "sampling/createMessage",
    InputKind.ROOTS: "roots/list",
}


@dataclass(frozen=True, kw_only=True)
class InputRequest:
    """One request of a server. Answer it with ``accept``, ``decline`` or ``cancel``."""

    server: str
    kind: InputKind
    principal: str = SHARED
    tool: str | None = None
    """The tool whose call it belongs to; None if the server does not say."""
    key: str = ""
    """The name of its answer among the ``input_responses`` of a call; empty if it belongs to no call."""
    params: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """As the server sent them."""

    @property
    def message(self) -> str:
        """What the server wants the user to be told. It may say anything: show whose words it is."""
        return str(self.params.get("message") or "")

    @property
    def mode(self) -> Literal["form", "url"] | None:
        """How an elicitation wants to be answered; None for the other kinds."""
        if self.kind is not InputKind.ELICITATION:
            return None
        return "url" if self.params.get("mode") == "url" else "form"

    @property
    def url(self) -> str | None:
        """The address that the user shall visit. Never opened by us; show it before anybody does."""
        url = self.params.get("url")
        return url if self.mode == "url" and isinstance(url, str) else None

    @property
    def requested_schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema of the form's content: an object of plain properties."""
        schema = self.params.get("requestedSchema")
        return schema if self.mode == "form" and isinstance(schema, Mapping) else None

    @property
    def defaults(self) -> dict[str, Any]:
        """The default values of the form, by property: what a form shows before anything is typed."""
        properties = (self.requested_schema or {}).get("properties")
        return {
            name: schema["default"]
            for name, schema in (properties.items() if isinstance(properties, Mapping) else ())
            if isinstance(schema, Mapping) and "default" in schema
        }

    def accept(self, content: Mapping[str, Any] | None = None) -> InputAnswer:
        """Answer; what the content of a form leaves out gets its default value.

        Args:
            content: The form's values by property; nothing for a URL. For sampling the message in the
                wire's form (``role``, ``content``, ``model``), for roots ``{"roots": [{"uri": ...}]}``.
        """
        if self.mode == "url":
            return InputAnswer("accept", None, self)
        return InputAnswer("accept", {**self.defaults, **(content or {})}, self)

    def decline(self) -> InputAnswer:
        """Answer that the user said no."""
        return InputAnswer("decline", None, self)

    def cancel(self) -> InputAnswer:
        """Answer that the user made no choice."""
        return InputAnswer("cancel", None, self)

    def as_json(self) -> dict[str, Any]:
        """Return the request as the protocol writes it in a result: ``method`` and ``params``."""
        return {"method": self.kind.method, "params": dict(self.params)}


@dataclass(frozen=True)
class InputAnswer:
    """An answer to an ``InputRequest``, which makes it."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] | None = field(default=None, repr=False)
    request: InputRequest | None = field(default=None, repr=False)
    """What it answers; the content is held to its schema."""


InputHandler = Callable[[InputRequest], InputAnswer | Awaitable[InputAnswer | None] | None]
"""Answers requests of servers; may be a coroutine function. None leaves the request unanswered."""


def defer_input(request: InputRequest) -> None:
    """Leave a request open: as a handler, it has the call end with ``InputRequiredError``.

    Servers are told that they may ask, and the call goes on once somebody has answered. Only servers
    that speak 2026-07-28 can wait like that.
    """
