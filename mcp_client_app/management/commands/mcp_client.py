"""``manage.py mcp_client``: parses, dispatches, turns errors into exit codes, leaves nothing behind."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.management.color import no_style
from django.db import DatabaseError, connections, router
from django.db.migrations.executor import MigrationExecutor

from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.management import (
    agent_runs,
    agents,
    calls,
    prompts,
    resources,
    runs,
    servers,
    status,
    tools,
    transfer,
    trials,
)
from mcp_client_app.management import connections as connection_verbs
from mcp_client_app.management.console import Console
from mcp_client_app.management.failures import (
    ExitCode,
    error_document,
    exit_code_of,
    explained,
    failure,
    usage_error,
)
from mcp_client_app.management.verbs import Verbs
from mcp_client_app.models import ServerConfig
from mcp_client_app.runtime import close_mcp_manager, started_manager

__all__ = ["Command"]

APP_LABEL: Final = "mcp_client_app"

_MODULES = (
    servers,
    connection_verbs,
    status,
    trials,
    agents,
    agent_runs,
    runs,
    tools,
    calls,
    resources,
    prompts,
    transfer,
)
"""In the order of the help."""


class Command(BaseCommand):
    """The command line of the app. Each verb is a function in a module of ``management``."""

    help = "Manage MCP servers, and use what they offer."
    # What is wrong with the configuration is shown by the verbs themselves, which help to mend it.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = (
            "Exit codes: 0 all went well; 1 it failed; 2 something has to be changed first "
            "(an option, a name, a configuration); 3 a part of it failed."
        )
        verbs = Verbs(parser)
        for module in _MODULES:
            module.add_verbs(verbs)

    def handle(self, *args: Any, **options: Any) -> None:
        run = options.pop("run")
        if os.environ.get("NO_COLOR") and not options["force_color"]:
            self.style = no_style()
            self.stderr.style_func = None
        console = Console(
            self.stdout,
            self.stderr,
            self.style,
            as_json=options["json"],
            force_color=options["force_color"],
            is_quiet=not options["verbosity"],
        )
        with _translated_errors(console), _closed_manager():
            run(argparse.Namespace(**options), console)
            self.stdout.flush()


@contextmanager
def _closed_manager() -> Iterator[None]:
    """Close what the verb has connected; a manager that this process had before goes on."""
    before = started_manager()
    try:
        yield
    finally:
        if before is None:
            close_mcp_manager()


@contextmanager
def _translated_errors(console: Console) -> Iterator[None]:
    """Turn errors into ``CommandError``, with an exit code and, for machines, a document.

    Raises:
        CommandError: for everything that the user or the operator can do something about.
    """
    try:
        yield
    except (MCPClientError, ValidationError, ImproperlyConfigured, DatabaseError) as error:
        known = _unmigrated(error) or error
        if console.as_json:
            console.document({"error": error_document(known)})
        if isinstance(known, CommandError):
            raise known from error
        if isinstance(known, DatabaseError):
            raise failure(f"The database failed: {known}") from error
        raise failure(explained(known), exit_code_of(known)) from error
    except CommandError as error:
        if console.as_json and not console.has_written:
            console.document({"error": error_document(error)})
        raise
    except KeyboardInterrupt:
        raise failure("Interrupted.", ExitCode.INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read has seen enough, as with "| head". Nothing may be flushed into the pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.FAILED)


def _unmigrated(error: Exception) -> CommandError | None:
    """Return a better error if the tables are the reason for this one."""
    if not isinstance(error, DatabaseError) and not isinstance(error.__cause__, DatabaseError):
        return None
    label = APP_LABEL
    try:
        executor = MigrationExecutor(connections[router.db_for_write(ServerConfig)])
        targets = [key for key in executor.loader.graph.leaf_nodes() if key[0] == label]
        is_behind = bool(executor.migration_plan(targets))
    except DatabaseError:
        return None
    if not is_behind:
        return None
    return usage_error(f"The tables of {label} are not up to date. Run 'manage.py migrate' first.")
