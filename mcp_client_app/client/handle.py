"""One server of a manager, with the server's name filled in; also the scoped connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from mcp_client_app.client.plans import OnProgress
from mcp_client_app.client.private_servers import SCOPE
from mcp_client_app.client.rounds import InputResponses
from mcp_client_app.datatypes import (
    SHARED,
    InputHandler,
    PromptInfo,
    PromptResult,
    ResourceInfo,
    ResourceResult,
    ServerStatus,
    ToolInfo,
)
from mcp_client_app.exceptions import NotConnectedError, RequestTimeoutError

__all__ = ["SCOPE", "ScopedConnection", "ServerHandle"]


class Manager(Protocol):
    """The part of a manager that a handle uses."""

    def connect(self, name: str, *, principal: str = ..., wait: float | None = ...) -> ServerStatus: ...
    async def aconnect(
        self, name: str, *, principal: str = ..., wait: float | None = ...
    ) -> ServerStatus: ...
    def release(self, name: str, principal: str) -> None: ...
    async def arelease(self, name: str, principal: str) -> None: ...
    def status(self, name: str, *, principal: str = ...) -> ServerStatus: ...
    def known(self, kind: str, name: str, principal: str) -> tuple[Any, ...]: ...
    @property
    def call_tool(self) -> Callable[..., Any]: ...
    @property
    def acall_tool(self) -> Callable[..., Awaitable[Any]]: ...
    def read_resource(self, server: str, uri: str, *, principal: str = ...) -> ResourceResult: ...
    async def aread_resource(self, server: str, uri: str, *, principal: str = ...) -> ResourceResult: ...
    def get_prompt(
        self, server: str, name: str, arguments: Mapping[str, str] | None = ..., *, principal: str = ...
    ) -> PromptResult: ...
    async def aget_prompt(
        self, server: str, name: str, arguments: Mapping[str, str] | None = ..., *, principal: str = ...
    ) -> PromptResult: ...


class ServerHandle:
    """A view on one server. Stays good across reconnects and edits: it holds a name, not a link."""

    def __init__(self, manager: Manager, name: str, principal: str = SHARED) -> None:
        self._manager = manager
        self.name = name
        self.principal = principal

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @property
    def status(self) -> ServerStatus:
        """How the connection stands."""
        return self._manager.status(self.name, principal=self.principal)

    @property
    def tools(self) -> tuple[ToolInfo, ...]:
        """The tools, as last known; never waits."""
        return self._manager.known("tools", self.name, self.principal)

    @property
    def resources(self) -> tuple[ResourceInfo, ...]:
        """The resources, as last known; never waits."""
        return self._manager.known("resources", self.name, self.principal)

    @property
    def prompts(self) -> tuple[PromptInfo, ...]:
        """The prompts, as last known; never waits."""
        return self._manager.known("prompts", self.name, self.principal)

    def _usable(self) -> str:
        """Return the principal, if the handle may be used."""
        return self.principal

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_input: Mapping[str, InputHandler] | None = None,
        input_responses: InputResponses | None = None,
        request_state: str | None = None,
        raise_on_error: bool = False,
    ) -> Any:
        """Call one of the server's tools; see ``MCPClientManager.call_tool``."""
        return self._manager.call_tool(
            name,
            arguments,
            server=self.name,
            timeout=timeout,
            on_progress=on_progress,
            on_input=on_input,
            input_responses=input_responses,
            request_state=request_state,
            raise_on_error=raise_on_error,
            principal=self._usable(),
        )

    async def acall_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_input: Mapping[str, InputHandler] | None = None,
        input_responses: InputResponses | None = None,
        request_state: str | None = None,
        raise_on_error: bool = False,
    ) -> Any:
        """Async twin of ``call_tool``."""
        return await self._manager.acall_tool(
            name,
            arguments,
            server=self.name,
            timeout=timeout,
            on_progress=on_progress,
            on_input=on_input,
            input_responses=input_responses,
            request_state=request_state,
            raise_on_error=raise_on_error,
            principal=self._usable(),
        )

    def read_resource(self, uri: str) -> ResourceResult:
        """Read one of the server's resources."""
        return self._manager.read_resource(self.name, uri, principal=self._usable())

    async def aread_resource(self, uri: str) -> ResourceResult:
        """Async twin of ``read_resource``."""
        return await self._manager.aread_resource(self.name, uri, principal=self._usable())

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> PromptResult:
        """Fill in one of the server's prompts."""
        return self._manager.get_prompt(self.name, name, arguments, principal=self._usable())

    async def aget_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> PromptResult:
        """Async twin of ``get_prompt``."""
        return await self._manager.aget_prompt(self.name, name, arguments, principal=self._usable())


class ScopedConnection(ServerHandle):
    """A connection of its own that lives within a ``with`` or ``async with`` block."""

    def __init__(self, manager: Manager, name: str, principal: str, wait: float | None = None) -> None:
        super().__init__(manager, name, principal)
        self._wait = wait
        self._is_open = False

    def _usable(self) -> str:
        if not self._is_open:  # it would connect again, and nobody would ever close that
            raise NotConnectedError(
                f"The connection to {self.name!r} belongs to a 'with' block, and is used outside of it.",
                server=self.name,
            )
        return self.principal

    def _insist(self, status: ServerStatus) -> None:
        if self._wait is not None and not status.is_ready:
            raise RequestTimeoutError(
                f"The server {self.name!r} was not ready within {self._wait:.3g} s.",
                server=self.name,
                seconds=self._wait,
            )

    def __enter__(self) -> Self:
        try:
            self._insist(self._manager.connect(self.name, principal=self.principal, wait=self._wait))
        except BaseException:
            self._manager.release(self.name, self.principal)
            raise
        self._is_open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        self._manager.release(self.name, self.principal)

    async def __aenter__(self) -> Self:
        try:
            self._insist(await self._manager.aconnect(self.name, principal=self.principal, wait=self._wait))
        except BaseException:
            await self._manager.arelease(self.name, self.principal)
            raise
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        await self._manager.arelease(self.name, self.principal)
