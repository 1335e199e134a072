"""Chooses the link class for a server."""

from __future__ import annotations

import importlib

from mcp_client_app.client.link import Link, LinkContext
from mcp_client_app.client.own_link import OwnLink
from mcp_client_app.client.stock_link import StockLink
from mcp_client_app.datatypes import Transport
from mcp_client_app.exceptions import ConfigurationError

__all__ = ["make_link"]


def make_link(context: LinkContext) -> Link:
    """Build the link that the server, or else the manager's options, ask for.

    Raises:
        ConfigurationError: There is no such class.
    """
    spec = context.spec
    name = spec.link or context.options.default_link
    if name == "own" and spec.transport is Transport.SSE:
        name = "stock"  # the old transport is carried by the SDK alone
    if name == "own":
        return OwnLink(context)
    if name == "stock":
        return StockLink(context)
    module, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        link_class = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"The link {name!r} of {spec.name!r} could not be loaded; use 'own', 'stock' or a dotted path.",
            server=spec.name,
            field="link",
        ) from error
    link = link_class(context)
    if not isinstance(link, Link):
        raise ConfigurationError(
            f"The link {name!r} of {spec.name!r} is no Link.", server=spec.name, field="link"
        )
    return link
