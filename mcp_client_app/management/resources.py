"""The verb ``resources``."""

from __future__ import annotations

import argparse

from mcp_client_app import services
from mcp_client_app.datatypes import ResourceInfo, ResourceTemplateInfo
from mcp_client_app.management import documents
from mcp_client_app.management.blocks import show_contents
from mcp_client_app.management.console import Console
from mcp_client_app.management.listing import listed, required_server, summary
from mcp_client_app.management.questions import answered_here
from mcp_client_app.management.tables import Column
from mcp_client_app.management.verbs import Verbs

__all__ = ["add_verbs"]


def add_verbs(verbs: Verbs) -> None:
    """Add this module's verb."""
    verb = verbs.add("resources", list_resources, help="list resources, or read one")
    verb.add_argument("server", metavar="SERVER", nargs="?")
    which = verb.add_mutually_exclusive_group()
    which.add_argument("--read", metavar="URI", help="read this resource of SERVER")
    which.add_argument("--templates", action="store_true", help="list templates for URIs instead")


def list_resources(options: argparse.Namespace, console: Console) -> None:
    """Connect and list resources or templates, or read one resource."""
    if options.read is not None:
        _read_resource(options, console)
    elif options.templates:
        _list_templates(options, console)
    else:
        _list_plain_resources(options, console)


def _list_plain_resources(options: argparse.Namespace, console: Console) -> None:
    listing = listed(services.list_resources, options.server, console)
    if console.as_json:
        listing.write(console, "resources", documents.resource_document)
    else:
        console.table(
            [
                Column("SERVER"),
                Column("URI"),
                Column("TYPE", can_shrink=True),
                Column("DESCRIPTION", can_shrink=True),
            ],
            [(item.server, item.uri, item.mime_type or "", _about(item)) for item in listing.items],
            empty="No resources.",
        )
    listing.conclude()


def _list_templates(options: argparse.Namespace, console: Console) -> None:
    listing = listed(services.list_resource_templates, options.server, console)
    if console.as_json:
        listing.write(console, "resource_templates", documents.template_document)
    else:
        console.table(
            [
                Column("SERVER"),
                Column("TEMPLATE"),
                Column("TYPE", can_shrink=True),
                Column("DESCRIPTION", can_shrink=True),
            ],
            [(item.server, item.uri_template, item.mime_type or "", _about(item)) for item in listing.items],
            empty="No resource templates.",
        )
    listing.conclude()


def _read_resource(options: argparse.Namespace, console: Console) -> None:
    server = required_server(options, "--read")
    with console.progress() as progress, answered_here(console, progress):
        progress.waiting(f"reading from {server} ...")
        result = services.read_resource(server, options.read)
    if console.as_json:
        console.document({"resource": documents.resource_result_document(result)})
    else:
        show_contents(console, result.contents)


def _about(item: ResourceInfo | ResourceTemplateInfo) -> str:
    return summary(item.description or item.title or item.name)
