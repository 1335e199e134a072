"""What an operator should look at before an agent is used: nothing is connected, no model is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from django.utils.translation import gettext as _

from mcp_client_app.models import AgentConfig
from mcp_client_app.models.agent_fields import is_readable_variable

__all__ = ["agent_problems"]


def agent_problems(row: AgentConfig) -> list[str]:
    """Return what keeps an agent from doing what it looks like, in the language of the thread."""
    return [*_of_servers(row), *_of_tools(row), *_of_model(row), *_of_key(row)]


def _of_servers(row: AgentConfig) -> Iterator[str]:
    chosen = list(row.agent_servers.all())
    if not chosen and not row.all_servers:
        yield _("It has no servers, and therefore no tools.")
    for each in chosen:
        if not each.server.enabled:
            yield _("The server %(name)r is disabled.") % {"name": each.server.name}
        elif each.server.stopped:
            yield _("The server %(name)r was disconnected by hand.") % {"name": each.server.name}


def _of_tools(row: AgentConfig) -> Iterator[str]:
    if row.allowed_tools == [] or _blocks_all(row.blocked_tools):
        yield _("No tool is allowed.")
    for each in row.agent_servers.all():
        if each.allowed_tools == [] or _blocks_all(each.blocked_tools):
            yield _("No tool of %(name)r is allowed.") % {"name": each.server.name}


def _blocks_all(patterns: Any) -> bool:
    return "*" in patterns


def _of_model(row: AgentConfig) -> Iterator[str]:
    if row.model and find_spec("pydantic_ai") is None:
        yield _("Its model needs the extra 'agents', which is not installed in this process.")


def _of_key(row: AgentConfig) -> Iterator[str]:
    name = row.api_key_variable
    if not name:
        return
    if not is_readable_variable(name, granted=row.may_reference_environment):
        yield _("The variable %(name)r of the API key may not be read.") % {"name": name}
    elif not os.environ.get(name):
        yield _("The variable %(name)r of the API key is not set in this process.") % {"name": name}
