"""Raw stdio peers as tests of the core see them: what they are started as, and what reached them."""

from __future__ import annotations

import json
import os
import select
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp_client_app.client.observers import Observer
from mcp_client_app.datatypes import (
    ConnectionState,
    LogMessage,
    ServerSpec,
    ServerStatus,
    StderrLine,
    Transport,
)

SERVERS = Path(__file__).parents[1] / "servers"
FAULTY = SERVERS / "faulty_stdio.py"
MODERN = "2026-07-28"
PATIENCE = 20.0
"""Seconds after which an event that does not come fails the test; never a measure of speed."""


def stdio_spec(name: str, script: Path, *args: str, bare: bool = True, **fields: Any) -> ServerSpec:
    """Return the spec of a Python script; ``bare`` starts in no time, but has no packages."""
    return ServerSpec(
        name=name,
        transport=Transport.STDIO,
        command=sys.executable,
        args=(*(("-S", "-E") if bare else ()), str(script), *args),
        **fields,
    )


class Gate:
    """A callback that stays until the test lets it go."""

    def __init__(self) -> None:
        self._entered, self._opened = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self._entered.set()
        self._opened.wait(PATIENCE)

    def wait_until_entered(self) -> None:
        """Return once the callback is running."""
        assert self._entered.wait(PATIENCE)

    def open(self) -> None:
        """Let the callback go."""
        self._opened.set()


class WireTap:
    """The frames that reach a peer, through a FIFO in the place of its log: waiting needs no polling."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        # Opened for writing too, so that it never ends while peers come and go.
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._rest = b""
        self._frames: list[dict[str, Any]] = []

    def frames(self) -> list[dict[str, Any]]:
        """Return all frames so far."""
        while self._read(0):
            pass
        return list(self._frames)

    def wait_for(self, fits: Callable[[dict[str, Any]], bool], count: int = 1) -> dict[str, Any]:
        """Return the ``count``-th frame that fits, as soon as it is there."""
        while len(found := [frame for frame in self.frames() if fits(frame)]) < count:
            assert self._read(PATIENCE), (
                f"no such frame; there are: {[f.get('method') for f in self._frames]}"
            )
        return found[count - 1]

    def _read(self, seconds: float) -> bool:
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return False
        *lines, self._rest = (self._rest + os.read(self._descriptor, 1 << 20)).split(b"\n")
        self._frames += map(json.loads, lines)
        return True

    def close(self) -> None:
        os.close(self._descriptor)


class Peer:
    """One faulty peer: its spec, the processes that it became, the frames that it got."""

    def __init__(
        self, directory: Path, name: str, scenarios: tuple[str, ...], options: dict[str, Any]
    ) -> None:
        self.directory = directory / name
        self.directory.mkdir()
        self._pids = self.directory / "pids"
        self.tap = WireTap(self.directory / "wire")
        args = [f"--scenario={scenario}" for scenario in scenarios]
        args += [f"--pid-file={self._pids}", f"--wire-log={self.tap.path}"]
        if options.pop("modern", False):
            args.append(f"--era={MODERN}")
        for option in ("once", "until"):
            if options.pop(option, False):
                args.append(f"--{option}={self.directory / option}")
        self.spec = stdio_spec(name, FAULTY, *args, **options)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def pids(self) -> list[int]:
        """The process ids so far, one for each start."""
        return [int(line) for line in self._pids.read_text().split()] if self._pids.exists() else []

    def methods(self) -> list[str | None]:
        """Return the method of each frame so far; None for an answer."""
        return [frame.get("method") for frame in self.tap.frames()]

    def calls(self) -> list[str]:
        """Return the names of the tools called so far."""
        return [f["params"]["name"] for f in self.tap.frames() if f.get("method") == "tools/call"]

    def wait_for(self, method: str, count: int = 1) -> dict[str, Any]:
        """Return the ``count``-th frame of this method, as soon as it is there."""
        return self.tap.wait_for(lambda frame: frame.get("method") == method, count)

    def let_go(self) -> None:
        """Have the peer go on whose scenario waits for a file ``go``."""
        (self.directory / "go").touch()


class Recorder(Observer):
    """Remembers what a manager tells; tests wait for it."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.states: list[ServerStatus] = []
        self.catalogues: list[ServerStatus] = []
        self.logs: list[LogMessage] = []
        self.lines: list[StderrLine] = []

    def state_changed(self, status: ServerStatus) -> None:
        self._note(self.states, status)

    def catalogue_changed(self, status: ServerStatus) -> None:
        self._note(self.catalogues, status)

    def logged(self, message: LogMessage) -> None:
        self._note(self.logs, message)

    def stderr(self, line: StderrLine) -> None:
        self._note(self.lines, line)

    def _note(self, place: list[Any], item: Any) -> None:
        with self.changed:
            place.append(item)
            self.changed.notify_all()

    def wait_for(self, fits: Callable[[], object]) -> None:
        """Wait until what was told fits."""
        with self.changed:
            assert self.changed.wait_for(fits, PATIENCE), "it was never told"

    def wait_for_state(self, name: str, state: ConnectionState, count: int = 1) -> ServerStatus:
        """Wait until a server has come into a state for the ``count``-th time; returns its status then."""

        def found() -> list[ServerStatus]:
            return [status for status in self.states if status.name == name and status.state is state]

        self.wait_for(lambda: len(found()) >= count)
        return found()[count - 1]

    def path(self, name: str) -> list[str]:
        """Return the states that a server went through."""
        with self.changed:
            return [status.state.value for status in self.states if status.name == name]
