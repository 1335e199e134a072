"""The verbs for stored servers: list, add, remove, enable, disable."""

from __future__ import annotations

import argparse
from typing import Any

from mcp_client_app import services
from mcp_client_app.datatypes import Transport
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.management import documents, parsing
from mcp_client_app.management.console import Console
from mcp_client_app.management.failures import error_document, explained, failure, usage_error
from mcp_client_app.management.tables import Column
from mcp_client_app.management.tools import show_tools
from mcp_client_app.management.verbs import Verbs
from mcp_client_app.models import ServerConfig

__all__ = ["add_verbs"]


def add_verbs(verbs: Verbs) -> None:
    """Add this module's verbs."""
    verbs.add("list", list_servers, help="list all servers and where they come from")
    _add_add(verbs)
    remove = verbs.add("remove", remove_server, help="delete a server")
    remove.add_argument("name", metavar="NAME")
    remove.add_argument("--yes", action="store_true", help="do not ask")
    for name, run, text in (
        ("enable", enable_servers, "allow the use of servers"),
        ("disable", disable_servers, "forbid the use of servers"),
    ):
        verb = verbs.add(name, run, help=text)
        verb.add_argument("names", metavar="NAME", nargs="+")


def _add_add(verbs: Verbs) -> None:
    verb = verbs.add(
        "add",
        add_server,
        help="store a server, connect it and show its tools",
        epilog=(
            'A local process: add NAME "npx -y package" (split into words, no shell), or add NAME -- npx -y '
            "package. Values may refer to variables of the environment: --env 'TOKEN=${MY_TOKEN}'."
        ),
    )
    verb.add_argument("name", metavar="NAME", help="a letter, then letters, digits, '-' and '_'")
    verb.add_argument("command", metavar="COMMAND", nargs="*", help="program and arguments, in one text")
    verb.add_argument("--url", help="address of an HTTP server")
    verb.add_argument(
        "--transport",
        choices=[Transport.STREAMABLE_HTTP.value, Transport.SSE.value],
        help="how an HTTP server is reached (default: streamable_http)",
    )
    verb.add_argument(
        "--in-process", metavar="KEY", default="", help="a key of MCP_CLIENT_IN_PROCESS_SERVERS"
    )
    verb.add_argument(
        "--header",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=parsing.header_pair,
        help="a header for each request; repeatable",
    )
    verb.add_argument(
        "--env",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=parsing.environment_pair,
        help="a variable for the process; repeatable",
    )
    verb.add_argument("--cwd", metavar="DIR", default="", help="working directory of the process")
    verb.add_argument("--label", metavar="TEXT", default="", help="the name to show; any text")
    verb.add_argument("--description", metavar="TEXT", default="", help="what the server is for")
    for option, field in (("--timeout", "call_timeout"), ("--connect-timeout", "connect_timeout")):
        verb.add_argument(
            option,
            dest=field,
            metavar="SECONDS",
            type=parsing.seconds,
            help=f"time limit for {'calls' if field == 'call_timeout' else 'connecting'}; 0 = none",
        )
    verb.add_argument(
        "--allow-tool", metavar="GLOB", action="append", help="allow only tools like this; repeatable"
    )
    verb.add_argument(
        "--block-tool",
        metavar="GLOB",
        action="append",
        default=[],
        help="block tools like this, even allowed ones; repeatable",
    )
    verb.add_argument("--disabled", action="store_true", help="store it, but do not allow its use yet")
    verb.add_argument("--no-connect", action="store_true", help="store it only")


# What the verbs do ---------------------------------------------------------------------


def list_servers(options: argparse.Namespace, console: Console) -> None:
    """Show all stored servers; connects nothing."""
    servers = services.list_servers()
    if console.as_json:
        console.document({"servers": [documents.server_document(server) for server in servers]})
        return
    console.table(
        [
            Column("NAME"),
            Column("USE", paint=console.paint),
            Column("TRANSPORT"),
            Column("TARGET", can_shrink=True),
            Column("SOURCE"),
            Column("DESCRIPTION", can_shrink=True),
        ],
        [
            (
                server.name,
                use_of(server),
                server.transport,
                documents.target_of(server),
                server.source,
                server.description or (server.label if server.label != server.name else ""),
            )
            for server in servers
        ],
        empty='There are no servers yet. Add one: mcp_client add NAME "npx -y package".',
    )


def add_server(options: argparse.Namespace, console: Console) -> None:
    """Store a server; then connect it, unless that is not wanted."""
    fields = _fields(options)
    server = services.add_server(options.name, **fields)
    if options.no_connect or not server.enabled:
        if console.as_json:
            console.document({"server": documents.server_document(server)})
        else:
            console.line(f"Stored {server.name}.")
        return
    _try_out(server, console)


def _try_out(server: ServerConfig, console: Console) -> None:
    error: MCPClientError | None = None
    with console.progress() as progress:
        progress.waiting(f"connecting {server.name} ...")
        try:
            services.connect(server.name)
            tools = list(services.list_tools(server.name).items)
        except MCPClientError as reason:
            error, tools = reason, []
    if console.as_json:
        document: dict[str, Any] = {"server": documents.server_document(server)}
        if error is None:
            document["tools"] = [documents.tool_document(tool) for tool in tools]
        else:
            document["error"] = error_document(error)
        console.document(document)
    else:
        console.line(f"Stored {server.name}.")
        if error is None:
            show_tools(console, tools)
    if error is not None:
        raise failure(f"The server is stored, but it cannot be connected: {explained(error)}") from error


def remove_server(options: argparse.Namespace, console: Console) -> None:
    """Delete a server, once somebody has said yes."""
    server = services.get_server(options.name)
    if not options.yes:
        answer = console.ask(f"Delete the server {server.name!r}?")
        if answer is None:
            raise usage_error("Nobody can be asked here. Repeat the command with --yes.")
        if not answer:
            raise failure("Nothing was deleted.")
    services.remove_server(server.name)
    if console.as_json:
        console.document({"removed": server.name})
    else:
        console.line(f"Removed {server.name}.")


def enable_servers(options: argparse.Namespace, console: Console) -> None:
    """Allow the use of servers."""
    _switch(options, console, is_on=True)


def disable_servers(options: argparse.Namespace, console: Console) -> None:
    """Forbid the use of servers; running processes close their connections."""
    _switch(options, console, is_on=False)


def _switch(options: argparse.Namespace, console: Console, *, is_on: bool) -> None:
    # All names are looked up first: a slip in the second must not leave the first half done.
    names = [services.get_server(name).name for name in options.names]
    switch = services.enable_server if is_on else services.disable_server
    servers = [switch(name) for name in names]
    if console.as_json:
        console.document({"servers": [documents.server_document(server) for server in servers]})
        return
    for server in servers:
        console.line(f"{'Enabled' if is_on else 'Disabled'} {server.name}.")


def use_of(server: ServerConfig) -> str:
    """Return the operator's wish in a word; whether the server can be reached is another matter."""
    if not server.enabled:
        return "disabled"
    return "stopped" if server.stopped else "enabled"


def _fields(options: argparse.Namespace) -> dict[str, Any]:
    ways = [bool(options.command), options.url is not None, bool(options.in_process)]
    if sum(ways) != 1:
        raise usage_error("Give exactly one of COMMAND, --url and --in-process.")
    fields: dict[str, Any] = {
        "label": options.label,
        "description": options.description,
        "call_timeout": options.call_timeout,
        "connect_timeout": options.connect_timeout,
        "allowed_tools": options.allow_tool,
        "blocked_tools": options.block_tool,
        "enabled": not options.disabled,
        # Given for any transport: the model says which it has no use for.
        "env": dict(options.env),
        "headers": dict(options.header),
        "cwd": options.cwd,
    }
    if options.url is not None:
        return fields | {"transport": options.transport or Transport.STREAMABLE_HTTP, "url": options.url}
    if options.transport:
        raise usage_error("--transport: it is for servers with --url; leave it out.")
    if options.in_process:
        return fields | {"transport": Transport.IN_PROCESS, "in_process": options.in_process}
    command, *args = parsing.command_words(options.command)
    return fields | {"transport": Transport.STDIO, "command": command, "args": args}
