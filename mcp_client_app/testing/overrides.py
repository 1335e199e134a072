"""Puts a manager of the test's own in the place of the process's, and takes everything back."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from django.db.transaction import TransactionManagementError
from django.test import override_settings
from mcp.server.lowlevel import Server as LowLevelServer
from mcp.server.mcpserver import MCPServer

from mcp_client_app.client.in_process import registered_servers
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.client.sources import Source, StaticSource
from mcp_client_app.conf import app_settings
from mcp_client_app.configuration.dialects import parse
from mcp_client_app.datatypes import ServerSpec, Transport
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models import ServerConfig
from mcp_client_app.runtime import end_callers, row_source, set_mcp_manager
from mcp_client_app.runtime.observer import DjangoObserver
from mcp_client_app.runtime.options import input_handlers, manager_options
from mcp_client_app.services.audit_rows import flush

__all__ = ["Server", "fresh_manager", "override_servers", "stored_server"]

Server = MCPServer[Any] | LowLevelServer[Any] | Mapping[str, Any] | ServerSpec
"""A server object, an entry of an ``mcp.json``, or a ready spec."""

_numbers = itertools.count(1)


@contextlib.contextmanager
def override_servers(servers: Mapping[str, Server]) -> Iterator[MCPClientManager]:
    """Have exactly these servers while the block (or the decorated function) runs; gives the manager.

    Needs no database, and reads and writes none: no stored server is seen, and calls leave no
    audit row. Tests that want these use ``MCPClientTestMixin`` or the pytest fixtures.

    Args:
        servers: By name.
    """
    with contextlib.ExitStack() as stack:
        specs = [_spec(name, server, stack) for name, server in servers.items()]
        stack.enter_context(override_settings(MCP_CLIENT_AUDIT=False))
        yield stack.enter_context(fresh_manager(StaticSource(specs)))


@contextlib.contextmanager
def fresh_manager(source: Source | None = None) -> Iterator[MCPClientManager]:
    """Use a new manager while the block runs, then close it: its connections, threads and processes.

    Rows are looked at before every call, so that what a test has just saved counts; servers of
    the settings and of a configuration file stay out.

    Args:
        source: Where servers come from; None = the rows.
    """
    settings = override_settings(
        MCP_CLIENT_SERVERS={},
        MCP_CLIENT_CONFIG_FILE=None,
        MCP_CLIENT_REVISION_INTERVAL=0,
        MCP_CLIENT_RECORD_STATES=False,
        MCP_CLIENT_REAPER=False,
    )
    with settings:
        row_source.forget()
        manager = MCPClientManager(
            source if source is not None else row_source, manager_options(), [DjangoObserver()]
        )
        manager.input_handlers.update(input_handlers())
        before = set_mcp_manager(manager)
        try:
            yield manager
        finally:
            end_callers()
            set_mcp_manager(before)
            manager.close()
            flush()
            # The rows that it knows are those of the test.
            row_source.forget()


@contextlib.contextmanager
def stored_server(name: str, server: Server, **fields: Any) -> Iterator[ServerConfig]:
    """Have a row for a server while the block runs.

    Args:
        name: Its name.
        server: What it is.
        **fields: Further fields of ``ServerConfig``.
    """
    with contextlib.ExitStack() as stack:
        row = _row(name, server, stack)
        for field, value in fields.items():
            setattr(row, field, value)
        row.judge_references(saver_may=True)
        row.full_clean()
        row.save()
        try:
            yield row
        finally:
            # A transaction that the test has broken takes the row with it.
            with contextlib.suppress(TransactionManagementError):
                ServerConfig.objects.filter(pk=row.pk).delete()


def _spec(name: str, server: Server, stack: contextlib.ExitStack) -> ServerSpec:
    if isinstance(server, ServerSpec):
        return server
    if not isinstance(server, Mapping):
        key = stack.enter_context(_registered(server))
        return ServerSpec(name=name, transport=Transport.IN_PROCESS, in_process=key)
    row = _row(name, server, stack)
    row.may_reference_environment = True
    return row.to_spec()


def _row(name: str, server: Server, stack: contextlib.ExitStack) -> ServerConfig:
    """Return an unsaved row."""
    if isinstance(server, ServerSpec):
        raise ConfigurationError("A row cannot be made from a spec; give an entry of an mcp.json.")
    row = ServerConfig(name=name)
    if not isinstance(server, Mapping):
        row.transport = Transport.IN_PROCESS.value
        row.in_process = name
        # A row names a key, never code: the key is made known for as long as the server is.
        path = stack.enter_context(_registered(server))
        known = {**app_settings.IN_PROCESS_SERVERS, name: path}
        stack.enter_context(override_settings(MCP_CLIENT_IN_PROCESS_SERVERS=known))
        return row
    (imported,) = parse({"mcpServers": {name: dict(server)}})
    if imported.error is not None:
        raise ConfigurationError(f"The server {name!r}: {imported.error}", server=name)
    row.apply_import(imported)
    return row


@contextlib.contextmanager
def _registered(server: Any) -> Iterator[str]:
    """Make a server object known to the core; gives what a setting would name it by."""
    path = f"{__name__}.server_{next(_numbers)}"
    registered_servers[path] = server
    try:
        yield path
    finally:
        del registered_servers[path]
