"""Breaks and mends: kills, hangs and restarts servers, edits, stops and deletes rows, at random."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable

from django.db import connections

from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.exceptions import MCPClientError
from mcp_client_app.models import ServerConfig
from tests.soak.fleet import CALM, Fleet, HttpProcess, Member, signal_child
from tests.soak.score import Score

PAUSE = 0.08
"""Seconds between two deeds, on average."""
LOST = frozenset({"connection_lost", "timeout"})
DOWN = frozenset({"server_unavailable", "transport_error"})

Deed = Callable[[], object]


class Saboteur:
    """One thread. What it breaks it mends after a moment, or at once when told."""

    def __init__(self, manager: MCPClientManager, fleet: Fleet, score: Score, seed: int) -> None:
        self._manager = manager
        self._fleet = fleet
        self._score = score
        self._random = random.Random(f"{seed} saboteur")
        self._mendings: list[tuple[float, int, Deed]] = []
        self._numbers = itertools.count()
        self._busy: set[str] = set()
        """Servers and processes that are broken at the moment: nothing else is done to them."""
        self._gate = threading.Event()
        self._resting = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="soak-saboteur", daemon=True)
        local = {
            self._kill: 12,
            self._freeze: 5,
            self._edit: 6,
            self._edit_limits: 3,
            self._misconfigure: 2,
            self._disable: 4,
            self._delete: 3,
            self._stop: 4,
            self._disconnect: 4,
            self._ask_anew: 2,
        }
        self._deeds, self._weights = list(local), list(local.values())

    def start(self) -> None:
        self._gate.set()
        self._thread.start()

    def rest(self) -> None:
        """Mend everything and do nothing more; returns when that is so."""
        self._gate.clear()
        self._resting.wait()

    def go_on(self) -> None:
        if not self._ended.is_set():  # else nobody is there to rest again
            self._resting.clear()
        self._gate.set()

    def end(self) -> None:
        """Leave; to be called while resting."""
        self._ended.set()
        self._gate.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            while True:
                if not self._gate.is_set():
                    self._mend(everything=True)
                    self._resting.set()
                    self._gate.wait()
                if self._ended.is_set():
                    return
                self._mend()
                self._act()
                self._ended.wait(self._random.expovariate(1 / PAUSE))
        except Exception:  # noqa: BLE001 - whatever it is, it fails the soak
            self._score.complain(f"the saboteur has ended: {traceback.format_exc()}")
            self._ended.set()
            self._resting.set()
        finally:
            connections.close_all()

    # Planning --------------------------------------------------------------------------

    def _act(self) -> None:
        if self._random.random() < 0.05:
            host = self._random.choice([host for host in self._fleet.hosts.values() if host.name != CALM])
            if host.name not in self._busy:
                self._random.choice([self._restart, self._hang_process])(host)
            return
        member = self._random.choice(self._fleet.targets)
        if member.name in self._busy:
            return
        deed = self._random.choices(self._deeds, self._weights)[0]
        with self._score.under_way(f"{deed.__name__} of {member.name}", 60.0):
            deed(member)

    def _may_fail(self, member: Member, *codes: str) -> None:
        self._fleet.allowed[member.name] |= LOST.union(codes)

    def _later(self, name: str, longest: float, deed: Deed) -> None:
        """Mend in a moment; until then ``name`` is left alone."""
        self._busy.add(name)
        due = time.monotonic() + self._random.uniform(0.05, longest)

        def mend() -> None:
            self._busy.discard(name)
            deed()

        heapq.heappush(self._mendings, (due, next(self._numbers), mend))

    def _mend(self, *, everything: bool = False) -> None:
        while self._mendings and (everything or self._mendings[0][0] <= time.monotonic()):
            deed = heapq.heappop(self._mendings)[-1]
            with self._score.under_way("mending", 60.0):
                deed()

    def _row(self, member: Member) -> ServerConfig:
        return ServerConfig.objects.get(name=member.name)

    # Processes -------------------------------------------------------------------------

    def _kill(self, member: Member) -> None:
        pid = self._pid(member)
        if pid is not None:
            self._may_fail(member, "server_crashed", *DOWN)
            number = self._random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
            if signal_child(pid, number):
                self._score.disturbed("killed")

    def _freeze(self, member: Member) -> None:
        pid = self._pid(member)
        if pid is None:
            return
        # Too long for some, whose connection is then given up and whose process is killed.
        self._may_fail(member, "server_crashed", *DOWN)
        if signal_child(pid, signal.SIGSTOP):
            self._score.disturbed("hung")
            self._later(member.name, 3.0, lambda: signal_child(pid, signal.SIGCONT))

    def _pid(self, member: Member) -> int | None:
        with contextlib.suppress(MCPClientError):
            return self._manager.status(member.name).pid
        return None

    def _restart(self, host: HttpProcess) -> None:
        for member in self._fleet.members:
            if member.host == host.name:
                self._may_fail(member, *DOWN)
        host.end(hard=self._random.random() < 0.7)
        self._score.disturbed("HTTP process restarted")
        self._later(host.name, 1.5, host.start)

    def _hang_process(self, host: HttpProcess) -> None:
        for member in self._fleet.members:
            if member.host == host.name:
                self._may_fail(member, *DOWN)
        host.signal(signal.SIGSTOP)
        self._score.disturbed("HTTP process hung")
        self._later(host.name, 1.5, lambda: host.signal(signal.SIGCONT))

    # Rows ------------------------------------------------------------------------------

    def _edit(self, member: Member) -> None:
        """Change what is connected to: the connection has to be made anew."""
        self._may_fail(member, *DOWN)
        row, mark = self._row(member), str(self._random.random())
        if row.transport == "stdio":
            row.env = {"SOAK": mark}
        elif row.transport == "in_process":
            row.max_concurrency = self._random.randint(2, 5)
        else:
            row.headers = {"X-Soak": mark}
        row.save()
        self._score.disturbed("edited")

    def _edit_limits(self, member: Member) -> None:
        """Change what concerns no connection: nobody may notice."""
        ServerConfig.objects.filter(name=member.name).update(call_timeout=self._random.uniform(20, 60))
        self._score.disturbed("limits edited")

    def _misconfigure(self, member: Member) -> None:
        """Make it unusable for a while."""
        if member.fields["transport"] == "in_process":
            return
        self._may_fail(member, "configuration", "server_crashed", *DOWN)
        row = self._row(member)
        if row.transport == "stdio":
            row.command, field = "no-such-program-of-the-soak", "command"
        else:
            row.url, field = "http://127.0.0.1:9/", "url"
        row.save()
        self._score.disturbed("misconfigured")

        def mend() -> None:
            row = self._row(member)
            setattr(row, field, member.fields[field])
            row.save()

        self._later(member.name, 1.0, mend)

    def _disable(self, member: Member) -> None:
        self._may_fail(member, "unknown_server", "unknown_tool", *DOWN)
        self._row(member).disable()
        self._score.disturbed("disabled")
        self._later(member.name, 1.0, lambda: self._row(member).enable())

    def _delete(self, member: Member) -> None:
        self._may_fail(member, "unknown_server", "unknown_tool", *DOWN)
        self._row(member).delete()
        self._score.disturbed("deleted")

        def mend() -> None:
            ServerConfig.objects.create(name=member.name, **member.fields)

        self._later(member.name, 1.0, mend)

    def _stop(self, member: Member) -> None:
        """Stop it for all processes, as an operator does."""
        self._may_fail(member, "not_connected", *DOWN)
        self._row(member).stop()
        self._score.disturbed("stopped")
        self._later(member.name, 1.0, lambda: self._row(member).unstop())

    # The manager -----------------------------------------------------------------------

    def _disconnect(self, member: Member) -> None:
        self._may_fail(member, "not_connected", *DOWN)
        with contextlib.suppress(MCPClientError):
            self._manager.disconnect(member.name)
            self._score.disturbed("disconnected")
        self._later(member.name, 1.0, lambda: self._connect(member))

    def _connect(self, member: Member) -> None:
        # Its process may hang or be down just now; then the state says so, and rest() tries again.
        with contextlib.suppress(MCPClientError):
            self._manager.connect(member.name, wait=5.0)

    def _ask_anew(self, member: Member) -> None:
        with contextlib.suppress(MCPClientError):
            self._manager.refresh(member.name, wait=5.0)
            self._score.disturbed("lists read anew")
