"""Trying a server out, step by step."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async

from mcp_client_app.client.loop import forbid_running_loop
from mcp_client_app.datatypes import ServerStatus
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.runtime import get_mcp_manager
from mcp_client_app.services.permissions import CONNECT, require
from mcp_client_app.services.servers import get_server

__all__ = ["TestReport", "TestStep", "atest_server", "test_server"]


@dataclass(frozen=True, kw_only=True)
class TestStep:
    """One step of a test."""

    __test__ = False
    name: str
    """``connect``, ``list``, ``ping`` or ``close``."""
    ok: bool
    seconds: float = 0.0
    detail: str = ""
    """What was found, or why the step failed."""


@dataclass(frozen=True, kw_only=True)
class TestReport:
    """What a test of a server found. The steps end with the first that fails."""

    __test__ = False
    server: str
    steps: tuple[TestStep, ...] = ()
    status: ServerStatus | None = None
    """How the server stood while it was connected."""

    @property
    def ok(self) -> bool:
        """Whether every step succeeded."""
        return all(step.ok for step in self.steps)


def test_server(
    name: str,
    *,
    user: Any = None,  # noqa: PT028 (no test)
    wait: float | None = None,  # noqa: PT028
) -> TestReport:
    """Connect a server, have its lists read and a ping answered, and disconnect it.

    A connection of its own is used, so that the running one is not disturbed. A failure of
    the server is a step of the report, not an exception. So is that it was not done with
    everything within ``wait`` seconds; None waits as long as the server's own limits say.

    Raises:
        PermissionDeniedError: The user may not connect servers.
        UnknownServerError: There is none of this name.
    """
    forbid_running_loop("test_server")
    name = _permitted(name, user)
    manager = get_mcp_manager()
    trial = _Trial(name, wait)
    with contextlib.suppress(MCPClientError), contextlib.ExitStack() as stack:
        with trial.step("connect"):
            connection = stack.enter_context(manager.connect_server(name, wait=trial.left()))
            trial.connected(connection.status)
        with trial.step("list"):
            trial.listed(manager.refresh(name, principal=connection.principal, wait=trial.left()))
        with trial.step("ping"):
            manager.ping(name, principal=connection.principal, timeout=trial.left())
        with trial.step("close"):
            stack.close()
    return trial.report()


async def atest_server(name: str, *, user: Any = None, wait: float | None = None) -> TestReport:
    """Async twin of ``test_server``."""
    name = await sync_to_async(_permitted)(name, user)
    manager = get_mcp_manager()
    trial = _Trial(name, wait)
    with contextlib.suppress(MCPClientError):
        async with contextlib.AsyncExitStack() as stack:
            with trial.step("connect"):
                connection = await stack.enter_async_context(manager.connect_server(name, wait=trial.left()))
                trial.connected(await manager.astatus(name, principal=connection.principal))
            with trial.step("list"):
                trial.listed(await manager.arefresh(name, principal=connection.principal, wait=trial.left()))
            with trial.step("ping"):
                await manager.aping(name, principal=connection.principal, timeout=trial.left())
            with trial.step("close"):
                await stack.aclose()
    return trial.report()


test_server.__test__ = False  # type: ignore[attr-defined]  # pytest collects functions of this name


def _permitted(name: str, user: Any) -> str:
    require(user, CONNECT, server=name)
    return get_server(name).name


class _Trial:
    """Collects the steps of one test."""

    def __init__(self, server: str, wait: float | None) -> None:
        self._server = server
        self._end = None if wait is None else time.monotonic() + wait
        self._steps: list[TestStep] = []
        self._status: ServerStatus | None = None
        self._detail = ""

    def left(self) -> float | None:
        """Return the seconds that are left for the next step."""
        # To the core, 0 is no limit.
        return None if self._end is None else max(0.001, self._end - time.monotonic())

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._detail = ""
        began = time.monotonic()

        def end(ok: bool, detail: str) -> None:
            seconds = time.monotonic() - began
            self._steps.append(TestStep(name=name, ok=ok, seconds=seconds, detail=detail))

        try:
            yield
        except MCPClientError as error:
            end(False, str(error))
            raise
        end(True, self._detail)

    def connected(self, status: ServerStatus) -> None:
        self._status = status
        who = " ".join(filter(None, (status.server_name, status.server_version)))
        self._detail = f"{who or 'a server without a name'}, protocol {status.protocol_version}"

    def listed(self, status: ServerStatus) -> None:
        self._status = status
        self._detail = (
            f"{status.tools} tools, {status.resources} resources, "
            f"{status.resource_templates} resource templates, {status.prompts} prompts"
        )

    def report(self) -> TestReport:
        return TestReport(server=self._server, steps=tuple(self._steps), status=self._status)
