"""Who is told what happens: methods are called off the loop, in order per server, and may block."""

from __future__ import annotations

from mcp_client_app.datatypes import LogMessage, ServerStatus, StderrLine

__all__ = ["Observer"]


class Observer:
    """Override what you want to hear. An exception is logged and costs that one call."""

    def state_changed(self, status: ServerStatus) -> None:
        """A connection moved to another state."""

    def catalogue_changed(self, status: ServerStatus) -> None:
        """The lists of a server were read, the first time or anew."""

    def logged(self, message: LogMessage) -> None:
        """A server sent a log message."""

    def stderr(self, line: StderrLine) -> None:
        """A stdio server wrote a line to its standard error."""

    def tick(self) -> None:
        """A minute has passed while at least one server is connected."""

    def forked(self) -> None:
        """This is a forked child: forget the parent's; locks may be held by threads that are gone."""

    def closed(self) -> None:
        """The manager was closed. Called in the thread that closed it, perhaps at exit."""
