"""Connecting, disconnecting, and how servers stand: here and in other processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mcp_client_app.datatypes import LogMessage, ServerStatus
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import ServerConfig, ServerState
from mcp_client_app.runtime import get_mcp_manager, row_source, started_manager
from mcp_client_app.services.permissions import CONNECT, VIEW, require
from mcp_client_app.services.servers import get_server

__all__ = [
    "TestReport",
    "TestStep",
    "connect",
    "connect_all",
    "disconnect",
    "refresh",
    "server_logs",
    "server_status",
    "server_statuses",
    "server_stderr",
    "test_server",
    "worker_states",
]

OnSettled = Callable[[str, ServerStatus], None]


@dataclass(frozen=True, kw_only=True)
class TestStep:
    """One step of a test."""

    __test__ = False
    name: str
    ok: bool
    seconds: float = 0.0
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class TestReport:
    """What a test of a server found. A fresh connection is used, so that the running one is not disturbed."""

    __test__ = False
    server: str
    steps: tuple[TestStep, ...] = ()
    status: ServerStatus | None = None

    @property
    def ok(self) -> bool:
        """Whether every step succeeded."""
        return all(step.ok for step in self.steps)


def server_status(name: str, *, user: Any = None) -> ServerStatus:
    """Return how a server stands in this process; never connects."""
    require(user, VIEW, server=name)
    return get_mcp_manager().status(name)


def server_statuses(*, user: Any = None) -> list[ServerStatus]:
    """Return how all servers stand in this process; never connects."""
    require(user, VIEW)
    return get_mcp_manager().statuses()


def worker_states(name: str | None = None, *, user: Any = None) -> list[ServerState]:
    """Return the rows in which live processes of the site say how their connections stand."""
    require(user, VIEW)
    states = ServerState.objects.current().select_related("worker", "server")
    return list(states.filter(server__name__iexact=name) if name is not None else states)


def connect(name: str, *, user: Any = None) -> ServerStatus:
    """Connect a server in this process, and allow it again in all.

    Raises:
        MCPClientError: Why it cannot be connected.
    """
    require(user, CONNECT, server=name)
    _allow([name])
    return get_mcp_manager().connect(name)


def connect_all(
    names: Iterable[str] | None = None, *, on_progress: OnSettled | None = None, user: Any = None
) -> dict[str, ServerStatus]:
    """Connect all enabled servers, or some, in parallel; no failure is raised: look at the status."""
    require(user, CONNECT)
    wanted = None if names is None else [get_server(name).name for name in names]
    _allow(wanted)
    return get_mcp_manager().connect_all(wanted, on_progress=on_progress)


def disconnect(name: str, *, user: Any = None) -> ServerStatus:
    """Disconnect a server in all processes, until somebody connects it."""
    require(user, CONNECT, server=name)
    row = get_server(name)
    if not row.stopped:
        row.stop()
    row_source.invalidate()
    manager = started_manager()
    if manager is not None:
        manager.disconnect(row.name)
    return get_mcp_manager().status(row.name)


def refresh(name: str, *, user: Any = None) -> ServerStatus:
    """Read the lists of a server anew."""
    require(user, CONNECT, server=name)
    return get_mcp_manager().refresh(name)


def test_server(name: str, *, user: Any = None) -> TestReport:
    """Connect a server freshly, look at what it offers, and close again; a failure is a step, not an exception."""
    require(user, CONNECT, server=name)
    name = get_server(name).name
    manager = get_mcp_manager()
    scope = manager.connect_server(name)
    steps: list[TestStep] = []
    status: ServerStatus | None = None
    began = time.monotonic()
    try:
        with scope:
            status = scope.status
            steps.append(
                TestStep(name="connect", ok=True, seconds=time.monotonic() - began, detail=_connected(status))
            )
            steps.append(TestStep(name="list", ok=True, detail=_offers(status)))
            began = time.monotonic()
        steps.append(TestStep(name="close", ok=True, seconds=time.monotonic() - began))
    except MCPClientError as error:
        step = "connect" if status is None else "close"
        steps.append(TestStep(name=step, ok=False, seconds=time.monotonic() - began, detail=str(error)))
    return TestReport(server=name, steps=tuple(steps), status=status)


test_server.__test__ = False  # type: ignore[attr-defined]  # not a test of pytest's


def server_logs(name: str, *, user: Any = None) -> tuple[LogMessage, ...]:
    """Return the last log messages of a server in this process."""
    require(user, VIEW, server=name)
    return get_mcp_manager().server_logs(get_server(name).name)


def server_stderr(name: str, *, user: Any = None) -> tuple[str, ...]:
    """Return the last lines of standard error of a server in this process."""
    require(user, VIEW, server=name)
    return get_mcp_manager().stderr(name)


def _allow(names: list[str] | None) -> None:
    """Take back the stop that holds for all processes."""
    rows = ServerConfig.objects.filter(stopped=True)
    for row in rows:
        if names is None or row.name.casefold() in {name.casefold() for name in names}:
            row.unstop()
    row_source.invalidate()


def _connected(status: ServerStatus) -> str:
    who = " ".join(filter(None, (status.server_name, status.server_version))) or "a server without a name"
    return f"{who}, protocol {status.protocol_version}"


def _offers(status: ServerStatus) -> str:
    counts = {
        "tools": status.tools,
        "resources": status.resources,
        "resource templates": status.resource_templates,
        "prompts": status.prompts,
    }
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())
