"""What toolsets show, kept for others of the same rules: those made for each request convert nothing anew.

A selection depends on rules and on tools, never on a user: whether somebody may use it is asked at
each call, and its rules are held against each call.
"""

from __future__ import annotations

import operator
import os
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from mcp_client_app import json_codec
from mcp_client_app.datatypes import ToolInfo
from mcp_client_app.runtime import after_close
from mcp_client_app.toolsets import ToolSelection
from mcp_client_app.toolsets.rules import ToolRules

__all__ = ["SharedSelections", "same_tools", "shared_selections"]

MOST: Final = 64
"""So many are kept: those that were used last."""

Tools = tuple[ToolInfo, ...]


def same_tools(some: Tools, others: Tools) -> bool:
    """Say whether these are the same objects, which tools stay until their server offers others."""
    return len(some) == len(others) and all(map(operator.is_, some, others))


class SharedSelections:
    """Keeps the last selection of each set of rules. All methods may be called from any thread."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Keep nothing; also in a forked child, where a thread that is gone may hold the lock."""
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Tools, ToolSelection]] = OrderedDict()

    def of(self, rules: ToolRules, tools: Tools, *, is_stored: bool) -> ToolSelection:
        """Return the selection of these tools; the same object for the same tools and equal rules.

        Args:
            rules: The rules.
            tools: What servers offer.
            is_stored: Whether the rules are those of a stored agent. The fixed arguments of others
                are their makers', who may change them.
        """
        key = _key(rules, is_stored=is_stored)
        if key is None:
            return ToolSelection(tools, rules)
        with self._lock:
            known = self._kept.get(key)
            if known is not None and same_tools(known[0], tools):
                self._kept.move_to_end(key)
                return known[1]
        made = ToolSelection(tools, rules)
        with self._lock:
            self._kept[key] = (tools, made)
            self._kept.move_to_end(key)
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return made


def _key(rules: ToolRules, *, is_stored: bool) -> Hashable | None:
    """Return what equal rules have in common; None for rules that nobody else is to have."""
    fixed = {name: server.fixed_arguments for name, server in rules.servers.items() if server.fixed_arguments}
    if not is_stored and (fixed or rules.fixed_arguments):
        return None
    # As JSON: to Python True is 1, to a tool it is not.
    values = json_codec.canonical([rules.fixed_arguments, fixed])
    servers = tuple((name, server.filter, server.own_filter) for name, server in rules.servers.items())
    key = (rules.all_servers, rules.filter, servers, values)
    try:
        hash(key)
    except TypeError:  # a filter that was made of lists, which may change
        return None
    return key


shared_selections = SharedSelections()
"""Those of this process."""
after_close(shared_selections.forget)
os.register_at_fork(after_in_child=shared_selections.forget)
