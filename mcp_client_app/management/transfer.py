"""The verbs that move configurations: import, export, sync."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_client_app import services
from mcp_client_app.management import parsing
from mcp_client_app.management.console import Console
from mcp_client_app.management.failures import ExitCode, failure, outcome, usage_error
from mcp_client_app.management.tables import Column
from mcp_client_app.management.verbs import Verbs
from mcp_client_app.models import ImportEntry

__all__ = ["add_verbs"]


def add_verbs(verbs: Verbs) -> None:
    """Add this module's verbs."""
    verb = verbs.add("import", import_servers, help="take over servers from an mcp.json, of any client")
    verb.add_argument("file", metavar="FILE", help="the file, or '-' for standard input")
    verb.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    switch = verb.add_mutually_exclusive_group()
    switch.add_argument(
        "--enable", dest="enable", action="store_true", default=None, help="enable what is imported"
    )
    switch.add_argument("--disable", dest="enable", action="store_false", help="disable what is imported")

    verb = verbs.add("export", export_servers, help="write servers as an mcp.json, without secrets")
    verb.add_argument(
        "file", metavar="FILE", nargs="?", default=parsing.STANDARD_STREAM, help="the file, or '-' (default)"
    )
    verb.add_argument("names", metavar="NAME", nargs="*", help="these only; otherwise all of the database")
    verb.add_argument("--force", action="store_true", help="replace a file that exists")

    verbs.add("sync", sync_servers, help="make the rows for servers from settings and file")


# Import --------------------------------------------------------------------------------


def import_servers(options: argparse.Namespace, console: Console) -> None:
    """Import a file and show what became of each entry."""
    data = parsing.read_input(options.file, sys.stdin)
    report = services.import_servers(data, dry_run=options.dry_run, enable=options.enable)
    if console.as_json:
        entries = [_entry_document(entry) for entry in report.entries]
        console.document({"dry_run": options.dry_run, "entries": entries})
    else:
        console.table(
            [Column("SERVER"), Column("ACTION", paint=console.paint), Column("DETAILS", can_shrink=True)],
            [row for entry in report.entries for row in _entry_rows(entry)],
            empty="There are no servers in it.",
        )
        if options.dry_run:
            console.line("Nothing was changed: this was a dry run.")
    if report.failed:
        is_all = len(report.failed) == len(report.entries)
        raise failure(
            f"Could not be imported: {', '.join(report.failed)}.",
            ExitCode.USAGE if is_all else ExitCode.PARTLY,
        )


def _entry_rows(entry: ImportEntry) -> Iterator[tuple[str, str, str]]:
    """Yield a line for each thing to say; the first one carries name and action."""
    details = [entry.error] if entry.error else []
    details += [*entry.changes, *(f"note: {notice}" for notice in entry.notices)]
    for index, detail in enumerate(details or [""]):
        yield ("", "", detail) if index else (entry.name, entry.action, detail)


def _entry_document(entry: ImportEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "label": entry.label,
        "action": entry.action,
        "changes": list(entry.changes),
        "notices": list(entry.notices),
        "error": entry.error,
    }


# Export --------------------------------------------------------------------------------


def export_servers(options: argparse.Namespace, console: Console) -> None:
    """Write servers to a file or to standard output."""
    names = [services.get_server(name).name for name in options.names]
    document = services.export_servers(names or None)
    if options.file == parsing.STANDARD_STREAM:
        # An mcp.json is JSON already, with --json and without.
        console.document(document)
        return
    exported = list(document["mcpServers"])
    _write_file(Path(options.file), json.dumps(document, indent=2, ensure_ascii=False) + "\n", options.force)
    if console.as_json:
        console.document({"file": options.file, "servers": exported})
    else:
        console.line(f"Wrote {len(exported)} servers to {options.file}.")


def _write_file(path: Path, text: str, replace: bool) -> None:
    """Write a file that only its owner can read: arguments and URLs may hold what should not be seen."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        if replace:
            draft.replace(path)
        else:
            path.hardlink_to(draft)
    except FileExistsError:
        raise usage_error(
            f"FILE: {str(path)!r} exists. Choose another file, or replace it with --force."
        ) from None
    except OSError as error:
        raise usage_error(f"FILE: {str(path)!r} cannot be written: {error.strerror}.") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


# Sync ----------------------------------------------------------------------------------


def sync_servers(options: argparse.Namespace, console: Console) -> None:
    """Make rows for the servers of settings and file."""
    report = services.sync_servers()
    done = {"created": report.created, "updated": report.updated, "removed": report.removed}
    if console.as_json:
        console.document({key: list(names) for key, names in done.items()} | {"errors": dict(report.errors)})
    else:
        rows = [(name, word, "") for word, names in done.items() for name in names]
        rows += [(name, "error", error) for name, error in report.errors.items()]
        console.table(
            [Column("SERVER"), Column("ACTION", paint=console.paint), Column("DETAILS", can_shrink=True)],
            rows,
            empty="Nothing to do.",
        )
    if report.errors:
        changed = sum(len(names) for names in done.values())
        code = outcome(len(report.errors), len(report.errors) + changed)
        message = f"Not usable: {', '.join(report.errors)}. Mend the entry where it is defined."
        raise failure(message, ExitCode.USAGE if code is ExitCode.FAILED else code)
