"""Chooses the link class for a server."""

from __future__ import annotations

import importlib
import logging

from mcp_client_app.client.compat import dispatcher_signature_problem
from mcp_client_app.client.link import Link, LinkContext
from mcp_client_app.client.own_link import OwnLink
from mcp_client_app.client.stock_link import StockLink
from mcp_client_app.datatypes import Transport
from mcp_client_app.exceptions import ConfigurationError

logger = logging.getLogger(__name__)

__all__ = ["make_link"]


def make_link(context: LinkContext) -> Link:
    """Build the link that the server, or else the manager's options, ask for.

    Raises:
        ConfigurationError: There is no such class.
    """
    spec = context.spec
    name = spec.link or context.options.default_link
    if name == "stock" and not spec.link and spec.transport is Transport.IN_PROCESS:
        name = "own"  # a default that cannot be meant for servers that only this one speaks to
    if name == "own" and not _must_be_stock(context):
        return OwnLink(context)
    if name in ("own", "stock"):
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


def _must_be_stock(context: LinkContext) -> bool:
    """Say whether ``own`` cannot be had, so that ``stock`` takes its place."""
    spec = context.spec
    if spec.transport is Transport.SSE:
        return True  # the transport of 2024-11-05 has no dispatcher of ours
    if spec.transport is Transport.IN_PROCESS:
        return False  # which ``stock`` does not speak
    problem = dispatcher_signature_problem()
    if problem is None:
        return False
    logger.warning("The link 'stock' takes over for %r: %s.", spec.name, problem)
    return True
