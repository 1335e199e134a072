"""The fifty servers: their rows, and the processes that those over HTTP live in."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_client_app.models import ServerConfig

HERE = Path(__file__).parent
HOST = "127.0.0.1"
CALM = "calm"
"""The process of the servers that nobody disturbs."""
PATIENCE = 30.0


class HttpProcess:
    """One process with many servers; keeps its port from start to start."""

    def __init__(self, name: str, journal: Path) -> None:
        self.name = name
        self._journal = journal
        # Bound and never listening: keeps others from taking the port while nobody serves it.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._reserved.bind((HOST, 0))
        self.port: int = self._reserved.getsockname()[1]
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start unless it runs; returns once it answers."""
        if self._process is not None:
            return
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", str(HERE / "http_peer.py"), str(self._journal), str(self.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line != "READY\n":
            raise RuntimeError(f"The HTTP process {self.name!r} did not start.")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it runs."""
        if self._process is not None:
            self._process.send_signal(number)

    def end(self, *, hard: bool) -> None:
        """Kill it, or let it end in good order."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        if hard:
            process.kill()
        process.stdin.close()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def close(self) -> None:
        """End it for good."""
        self.end(hard=False)
        self._reserved.close()


@dataclass(frozen=True)
class Member:
    """One server."""

    name: str
    fields: dict[str, Any]
    """Of its row."""
    is_calm: bool = False
    """Nobody disturbs it: no error is allowed."""
    host: str = ""
    """The process that it lives in, if that is one of ours."""
    reports: bool = True
    """Whether its way of answering can carry progress."""

    @property
    def trusted(self) -> bool:
        return bool(self.fields.get("trust_annotations"))


@dataclass
class Fleet:
    """All servers, and what errors callers may see of each: it grows with what is done to it."""

    directory: Path
    hosts: dict[str, HttpProcess] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    allowed: dict[str, set[str]] = field(default_factory=dict)

    @property
    def journal(self) -> Path:
        return self.directory / "journal"

    def raise_up(self) -> None:
        """Start the HTTP processes and store the rows."""
        self.journal.touch()
        for name in (CALM, "first", "second"):
            self.hosts[name] = HttpProcess(name, self.journal)
            self.hosts[name].start()
        self.members = [*self._stdio(), *self._http(), *self._sse(), *self._in_process()]
        for member in self.members:
            self.allowed[member.name] = set()
            ServerConfig.objects.create(name=member.name, **member.fields)

    def close(self) -> None:
        for host in self.hosts.values():
            host.signal(signal.SIGCONT)
            host.close()

    @property
    def calm(self) -> list[Member]:
        return [member for member in self.members if member.is_calm]

    @property
    def targets(self) -> list[Member]:
        return [member for member in self.members if not member.is_calm]

    def needs(self) -> dict[str, int]:
        """Return how many objects of which class it takes to be connected to all."""
        transports = Counter(member.fields["transport"] for member in self.members)
        servers, processes, inside = len(self.members), transports["stdio"], transports["in_process"]
        over_http = transports["streamable_http"] + transports["sse"]
        stock = sum(bool(member.fields.get("link")) for member in self.members) + transports["sse"]
        return {
            "Connection": servers,
            "Catalogue": servers,
            "Link": servers,
            "BaseDispatcher": servers - stock,
            "StockTransport": stock,
            "ChildProcess": processes,
            "StdioChannel": processes,
            "HttpClient": over_http,
            "Response": over_http,  # the stream on which each tells of changes
            "Pending": servers - stock,  # the subscription to changes
            "OpenRequest": stock,
            "Job": inside,  # each server in this process runs as one
            "Frame": 0,
        }

    # The kinds -------------------------------------------------------------------------

    def _stdio(self) -> Iterator[Member]:
        for number in range(28):
            era = "modern" if number % 2 else "handshake"
            options = ["--modern"] if number % 2 else (["--die-on-probe"] if number % 8 == 0 else [])
            fields: dict[str, Any] = {
                "transport": "stdio",
                "command": sys.executable,
                "args": [
                    "-S",
                    "-E",
                    str(HERE / "stdio_peer.py"),
                    str(self.journal),
                    *options,
                    *(["--noisy"] if number % 3 == 0 else []),
                ],
                "link": "stock" if number % 7 == 6 else "",
                "trust_annotations": number % 4 == 1,
                "max_concurrency": 2 if number % 5 == 4 else None,
                "shutdown_timeout": 2,
            }
            yield Member(f"stdio-{era}-{number}", fields, is_calm=number < 4)

    def _http(self) -> Iterator[Member]:
        for number in range(14):
            era, shape = ("modern", "handshake")[number % 2], ("json", "stream")[number // 2 % 2]
            host = CALM if number < 4 else ("first", "second")[number // 4 % 2]
            name = f"http-{era}-{shape}-{number}"
            fields: dict[str, Any] = {
                "transport": "streamable_http",
                "url": f"http://{HOST}:{self.hosts[host].port}/{era}/{shape}/{name}",
                "headers": {"X-Soak": "0"},
                "link": "stock" if number in (3, 8, 13) else "",
                "trust_annotations": number % 5 == 4,
                "max_concurrency": 3 if number % 6 == 5 else None,
                "shutdown_timeout": 2,
            }
            yield Member(name, fields, is_calm=host == CALM, host=host, reports=shape == "stream")

    def _sse(self) -> Iterator[Member]:
        for number, host in enumerate((CALM, "first", "second", "second")):
            name = f"sse-{number}"
            fields = {
                "transport": "sse",
                "url": f"http://{HOST}:{self.hosts[host].port}/sse/{name}",
                "shutdown_timeout": 2,
            }
            yield Member(name, fields, is_calm=host == CALM, host=host)

    def _in_process(self) -> Iterator[Member]:
        for number in range(4):
            fields = {"transport": "in_process", "in_process": "soak", "shutdown_timeout": 2}
            yield Member(f"inside-{number}", fields, is_calm=number < 2)


def signal_child(pid: int, number: signal.Signals) -> bool:
    """Send a signal to a child of ours, and to nobody else that may have its number by now."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if parent != os.getpid():
            return False
        signal.pidfd_send_signal(descriptor, number)
    except (OSError, ValueError):
        return False
    finally:
        os.close(descriptor)
    return True
