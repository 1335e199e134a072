"""The root of the error tree, and how its instances are copied and described."""

from __future__ import annotations

from typing import Any, ClassVar, Self

__all__ = ["MCPClientError", "outcome", "present"]


class MCPClientError(Exception):
    """The MCP client failed."""

    code: ClassVar[str] = "error"
    """Stable, English, for machines: the ``code`` of API answers and audit rows."""

    def __init__(self, message: str | None = None, *, server: str | None = None) -> None:
        self.message: str = message or (type(self).__doc__ or "").partition("\n")[0]
        self.server = server
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses take different keywords; the attributes are the whole state.
        return _rebuild, (type(self), self.__dict__.copy())

    def details(self) -> dict[str, Any]:
        """Return what a machine may want to know besides code and message; JSON-able, free of secrets."""
        return {}

    def copy(self) -> Self:
        """Return an equal, untraced instance: one failure may be raised in many waiting threads."""
        clone: Self = _rebuild(type(self), self.__dict__.copy())
        clone.__cause__ = self.__cause__
        return clone


def _rebuild(cls: type[MCPClientError], state: dict[str, Any]) -> Any:
    error = cls.__new__(cls)
    error.__dict__.update(state)
    error.args = (state["message"],)
    return error


def present(**values: Any) -> dict[str, Any]:
    """Return the values that are there."""
    return {name: value for name, value in values.items() if value is not None}


def outcome(sent: bool) -> dict[str, Any]:
    """Say what is known of a request that failed on its way."""
    return {"outcome": "unknown" if sent else "not_sent"}
