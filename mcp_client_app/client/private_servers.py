"""Servers that belong to one holder alone, such as a toolset, and that are stored nowhere.

They lie beside what a manager's source supplies. Their names hold a ``~``, which no other
name may hold, and only who names their principal reaches them: no listing shows them.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable

from mcp_client_app.client.sources import ServerEntry, Snapshot

__all__ = ["SCOPE", "PrivateServers", "is_private", "private_name", "private_principal"]

SCOPE = "scope-"
"""Begins the principal of a connection that belongs to one block or holder: no interest of others."""

_numbers = itertools.count(1)


def private_name(name: str) -> str:
    """Return a name of its own, in this process, for a private server that its holder calls ``name``."""
    return f"{name}~{next(_numbers)}"


def is_private(name: str) -> bool:
    """Say whether this is the name of a private server."""
    return "~" in name


def private_principal() -> str:
    """Return the principal of a holder of private servers."""
    return f"{SCOPE}holder-{next(_numbers)}"


class PrivateServers:
    """The private servers of one manager. Usable from any thread, also while garbage is collected."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: dict[str, ServerEntry] = {}
        self._public = Snapshot(version=0)
        self._merged: Snapshot | None = None
        """None = what is there has changed."""
        self._is_used = False

    def offer(self, entries: Iterable[ServerEntry]) -> None:
        """Add servers, or what has changed of them."""
        with self._lock:
            wanted = {entry.name: entry for entry in entries}
            if any(self._entries.get(name) is not entry for name, entry in wanted.items()):
                self._entries = {**self._entries, **wanted}
                self._merged, self._is_used = None, True

    def withdraw(self, names: Iterable[str]) -> None:
        """Take servers away; their connections end with the next use of the manager."""
        with self._lock:
            gone = set(names) & self._entries.keys()
            if gone:
                self._entries = {name: entry for name, entry in self._entries.items() if name not in gone}
                self._merged = None

    def beside(self, public: Snapshot) -> Snapshot:
        """Return a snapshot with the private servers in it; ``public`` itself if there never were any."""
        if public.version > self._public.version:
            with self._lock:
                if public.version > self._public.version:
                    self._public, self._merged = public, None
        if not self._is_used:
            return public
        with self._lock:
            if self._merged is None:
                self._merged = Snapshot(self._public.entries, private=self._entries)
            return self._merged

    def latest(self) -> Snapshot:
        """Return the last snapshot with what is private now."""
        return self.beside(self._public)

    def forget_locks(self) -> None:
        """After a fork, in the child: a thread of the parent may have held the lock."""
        self._lock = threading.RLock()
