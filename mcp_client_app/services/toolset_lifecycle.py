"""Connecting and disconnecting a toolset, and changing its servers while it is used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.datatypes import ConnectionState, ServerStatus, Transport
from mcp_client_app.exceptions import MCPClientError, UnknownServerError
from mcp_client_app.runtime import get_mcp_manager, started_manager
from mcp_client_app.services.permissions import VIEW, require
from mcp_client_app.services.steps import Step, Steps, adrive, drive, in_thread
from mcp_client_app.services.toolset_core import ToolsetCore

if TYPE_CHECKING:
    from mcp_client_app.client.manager import MCPClientManager

__all__ = ["ToolsetLifecycle"]

UNTIL_SETTLED: Final = 86_400.0
"""Seconds, for waiting until each attempt has ended by the server's own limit for connecting."""


class ToolsetLifecycle(ToolsetCore):
    """Stored servers are connected by their use, as for everybody; to stop them is for operators."""

    def connect(self, *, wait: float | None = None) -> list[ServerStatus]:
        """Connect all servers, side by side; one that fails does not keep the others. Fine to repeat.

        What an operator has stopped stays so.

        Args:
            wait: Seconds after which to return although some still connect; None = when each has come up
                or failed.

        Returns:
            How each of them stands.
        """
        forbid_running_loop("connect")
        return drive(self._connecting(wait))

    async def aconnect(self, *, wait: float | None = None) -> list[ServerStatus]:
        """Async twin of ``connect``."""
        return await adrive(self._connecting(wait))

    def disconnect(self) -> None:
        """End the toolset's own servers; until ``connect``, nothing can be called. Fine to repeat."""
        forbid_running_loop("disconnect")
        drive(self._disconnecting())

    async def adisconnect(self) -> None:
        """Async twin of ``disconnect``."""
        await adrive(self._disconnecting())

    def add_server(self, name: str, config: Mapping[str, Any] | None = None) -> None:
        """Add a stored server by its name, or one of the toolset's own, which is connected at once.

        Raises:
            DuplicateServerError: The toolset has a server of this name.
            ConfigurationError: This cannot name a server.
            PermissionDeniedError: It runs code, and the user may not have code run.
        """
        forbid_running_loop("add_server")
        drive(self._adding(name, config))

    async def aadd_server(self, name: str, config: Mapping[str, Any] | None = None) -> None:
        """Async twin of ``add_server``."""
        await adrive(self._adding(name, config))

    def remove_server(self, name: str) -> None:
        """Take a server out, and end it if it is the toolset's own. Fine if there is none."""
        forbid_running_loop("remove_server")
        drive(self._removing(name))

    async def aremove_server(self, name: str) -> None:
        """Async twin of ``remove_server``."""
        await adrive(self._removing(name))

    def status(self) -> list[ServerStatus]:
        """Return how each server stands in this process, in order; never connects.

        Raises:
            PermissionDeniedError: The user may not see servers.
        """
        forbid_running_loop("status")
        return drive(self._telling())

    async def astatus(self) -> list[ServerStatus]:
        """Async twin of ``status``."""
        return await adrive(self._telling())

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.disconnect()

    async def __aenter__(self) -> Self:
        await self.aconnect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.adisconnect()

    # Steps -----------------------------------------------------------------------------

    def _connecting(self, wait: float | None) -> Steps[list[ServerStatus]]:
        was_closed, self.is_closed = self.is_closed, False
        try:
            spec = yield self.admitting()
        except BaseException:
            self.is_closed = was_closed
            raise
        manager = get_mcp_manager()
        yield from self.look(manager, spec, wait=UNTIL_SETTLED if wait is None else wait)
        return (yield from self._statuses(manager))

    def _disconnecting(self) -> Steps[None]:
        self.is_closed = True
        yield from self._release(list(self.servers.own()))

    def _adding(self, name: str, config: Mapping[str, Any] | None) -> Steps[None]:
        given: Any = name if config is None else config
        if isinstance(config, Mapping):
            given = {**config, "name": name}
        yield in_thread(partial(self.servers.add, given, self.server_names))
        manager = started_manager()
        if config is not None and manager is not None and not self.is_closed:
            self.servers.offer(manager)
            targets = [self.servers.target(name)]
            # One that fails is shown as unavailable, as it would be had it been there from the start.
            yield Step(
                lambda: manager.listings("tools", targets, wait=UNTIL_SETTLED),
                lambda: manager.alistings("tools", targets, wait=UNTIL_SETTLED),
            )

    def _removing(self, name: str) -> Steps[None]:
        entry = self.servers.remove(name)
        if entry is not None:
            yield from self._release([entry.name])

    def _release(self, names: Iterable[str]) -> Steps[None]:
        manager = started_manager()
        if manager is None:
            return
        # The first one has the manager notice that all are gone; the others end meanwhile.
        for name, principal in self.servers.withdraw(manager, names):
            yield Step(partial(manager.release, name, principal), partial(manager.arelease, name, principal))

    def _telling(self) -> Steps[list[ServerStatus]]:
        yield in_thread(lambda: require(self.user, VIEW))
        return (yield from self._statuses(get_mcp_manager()))

    def _statuses(self, manager: MCPClientManager) -> Steps[list[ServerStatus]]:
        found = []
        self.servers.offer(manager)
        for name in self.server_names:
            target, principal = self.servers.target(name)
            try:
                status = yield Step(
                    partial(manager.status, target, principal=principal),
                    partial(manager.astatus, target, principal=principal),
                )
            except UnknownServerError as error:
                status = _failed(name, error)
            found.append(_called(status, target, name))
        return found


def _called(status: ServerStatus, target: str, name: str) -> ServerStatus:
    """Return the status with the name by which the toolset knows the server."""
    warnings = tuple(warning.replace(target, name) for warning in status.warnings)
    return replace(status, name=name, reason=status.reason.replace(target, name), warnings=warnings)


def _failed(name: str, error: MCPClientError) -> ServerStatus:
    return ServerStatus(
        name=name,
        transport=Transport.STDIO,
        enabled=False,
        state=ConnectionState.FAILED,
        reason=str(error),
        code=error.code,
    )
